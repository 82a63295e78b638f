package agent

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	networkingv1alpha1 "github.com/namesake-io/namesake/api/networking/v1alpha1"
	workv1alpha1 "github.com/namesake-io/namesake/api/work/v1alpha1"
	"github.com/namesake-io/namesake/internal/apply"
	"github.com/namesake-io/namesake/internal/controller/endpointslicecollect"
	"github.com/namesake-io/namesake/internal/discovery"
	"github.com/namesake-io/namesake/internal/manifest"
	"github.com/namesake-io/namesake/internal/snapshot"
)

// orders are the demand for the cluster's own slices, as the hub has ordered them.
type orders struct {
	source snapshot.Source
	self   discovery.ClusterName
	words  *words
}

// Services implements endpointslicecollect.Demand.
func (o *orders) Services(ctx context.Context, _ discovery.ClusterName) ([]types.NamespacedName, error) {
	return servicesOf(ctx, o.source, networkingv1alpha1.PullOrder)
}

// Of implements endpointslicecollect.Demand.
func (o *orders) Of(ctx context.Context, _ discovery.ClusterName, service types.NamespacedName) (endpointslicecollect.Want, error) {
	order, err := o.order(ctx, service)
	if err != nil || order == nil {
		return endpointslicecollect.Want{}, err
	}
	return endpointslicecollect.Want{Wanted: true, PermanentID: order.Labels[networkingv1alpha1.PermanentIDLabel]}, nil
}

// Collected implements endpointslicecollect.Demand: the hub may rely on it.
func (o *orders) Collected(ctx context.Context, _ discovery.ClusterName, service types.NamespacedName) error {
	order, err := o.order(ctx, service)
	if err != nil || order == nil {
		return err
	}
	return o.words.say(ctx, order, metav1.Condition{
		Type: workv1alpha1.ConditionCollected, Status: metav1.ConditionTrue,
		Reason: workv1alpha1.ReasonCollectedSuccessful, Message: "the hub holds every slice of the service",
	})
}

// order returns the order for a service, nil when there is none.
func (o *orders) order(ctx context.Context, service types.NamespacedName) (*workv1alpha1.Work, error) {
	works, err := o.source.Pull(ctx, o.self, service)
	if err != nil {
		return nil, err
	}
	at := slices.IndexFunc(works, func(w *workv1alpha1.Work) bool { return manifest.IsOrder(w) && w.DeletionTimestamp == nil })
	if at < 0 {
		return nil, nil
	}
	return works[at], nil
}

// servicesOf returns the services of all orders, or of all deliveries.
func servicesOf(ctx context.Context, source snapshot.Source, role string) ([]types.NamespacedName, error) {
	works := &workv1alpha1.WorkList{}
	if err := source.Reader.List(ctx, works, client.UnsafeDisableDeepCopy,
		client.MatchingLabels{networkingv1alpha1.PullLabel: role}); err != nil {
		return nil, fmt.Errorf("listing Works with role %s: %w", role, err)
	}
	var out []types.NamespacedName
	for i := range works.Items {
		if service := manifest.ServiceOf(&works.Items[i]); service.Name != "" {
			out = append(out, service)
		}
	}
	return out, nil
}

// words are what the agent has said of Works. The cache may not show it yet.
type words struct {
	writer apply.Writer

	mu   sync.Mutex
	said map[types.UID]metav1.Condition
}

// newWords returns words that nothing was said in.
func newWords(writer apply.Writer) *words {
	return &words{writer: writer, said: map[types.UID]metav1.Condition{}}
}

// say writes a condition of a Work as it was read, unless that has it or has been
// given it.
func (w *words) say(ctx context.Context, work *workv1alpha1.Work, is metav1.Condition) error {
	is.ObservedGeneration = work.Generation
	is.LastTransitionTime = metav1.Time{Time: time.Now().Truncate(time.Second)}
	was := meta.FindStatusCondition(work.Status.Conditions, is.Type)
	w.mu.Lock()
	last, found := w.said[work.UID]
	w.mu.Unlock()
	if found && (was == nil || was.ObservedGeneration < last.ObservedGeneration || last.ObservedGeneration == work.Generation) {
		was = &last
	}
	if was != nil && same(*was, is) {
		return nil
	}
	if was != nil && was.Status == is.Status {
		is.LastTransitionTime = was.LastTransitionTime
	}
	conditions := slices.Clone(work.Status.Conditions)
	meta.SetStatusCondition(&conditions, is)
	// Whatever the status was: it is the agent's alone. But not that of another
	// Work which has come since under the name.
	written := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: work.Namespace, Name: work.Name}}
	if err := w.writer.StatusPatchOf(ctx, written, work.UID, map[string]any{"conditions": conditions}); err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.said[work.UID] = is
	return nil
}

// forget drops what was said of a Work that is gone.
func (w *words) forget(uid types.UID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.said, uid)
}

// same says that two conditions say the same.
func same(a, b metav1.Condition) bool {
	return a.Status == b.Status && a.Reason == b.Reason && a.Message == b.Message && a.ObservedGeneration == b.ObservedGeneration
}
