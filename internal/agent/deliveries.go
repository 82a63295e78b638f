package agent

import (
	"context"
	"errors"
	"sync"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	networkingv1alpha1 "github.com/namesake-io/namesake/api/networking/v1alpha1"
	workv1alpha1 "github.com/namesake-io/namesake/api/work/v1alpha1"
	"github.com/namesake-io/namesake/internal/apply"
	"github.com/namesake-io/namesake/internal/discovery"
	"github.com/namesake-io/namesake/internal/manifest"
	"github.com/namesake-io/namesake/internal/snapshot"
)

// deliveries are the plans for the agent's cluster, as the hub has delivered
// them, and tell the hub on each delivery whether its slices stand.
type deliveries struct {
	source snapshot.Source
	self   discovery.ClusterName
	writer apply.Writer
	words  *words

	mu sync.Mutex
	// made are the last plans, and waiting the services without a namespace.
	made    map[types.NamespacedName]made
	waiting map[types.NamespacedName]bool
}

// made is a plan and the deliveries that it was made of.
type made struct {
	plan  *discovery.Plan
	works []*workv1alpha1.Work
}

// newDeliveries returns the plans and the board of an agent's dispatcher.
func newDeliveries(source snapshot.Source, self discovery.ClusterName, writer apply.Writer, words *words) *deliveries {
	return &deliveries{
		source: source, self: self, writer: writer, words: words,
		made: map[types.NamespacedName]made{}, waiting: map[types.NamespacedName]bool{},
	}
}

// Services implements endpointslicedispatch.Plans.
func (d *deliveries) Services(ctx context.Context) ([]types.NamespacedName, error) {
	return servicesOf(ctx, d.source, networkingv1alpha1.PullDelivery)
}

// Plan implements endpointslicedispatch.Plans.
func (d *deliveries) Plan(ctx context.Context, service types.NamespacedName) (*discovery.Plan, error) {
	works, err := d.source.Pull(ctx, d.self, service)
	if err != nil {
		return nil, err
	}
	var delivered []*discoveryv1.EndpointSlice
	var of []*workv1alpha1.Work
	for _, work := range works {
		if !manifest.IsDelivery(work) {
			continue
		}
		of = append(of, work)
		if work.DeletionTimestamp != nil {
			continue
		}
		held, err := manifest.Collected(work)
		if err != nil {
			return nil, err
		}
		delivered = append(delivered, held...)
	}
	plan := discovery.Delivered(service, d.self, delivered)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.made[service] = made{plan: plan, works: of}
	return plan, nil
}

// Record implements endpointslicedispatch.Board. A cluster that cannot be reached
// says nothing on its deliveries: its Cluster does.
func (d *deliveries) Record(ctx context.Context, plan *discovery.Plan, _ discovery.ClusterName, outcome discovery.Outcome) error {
	d.mu.Lock()
	m := d.made[plan.Service]
	if m.plan == plan && len(m.works) == 0 {
		delete(d.made, plan.Service)
	}
	delete(d.waiting, plan.Service)
	if outcome.Reason == networkingv1alpha1.ReasonNamespaceNotFound {
		d.waiting[plan.Service] = true
	}
	d.mu.Unlock()
	if m.plan != plan || outcome.Reason == networkingv1alpha1.ReasonClusterUnreachable {
		return nil
	}
	is := metav1.Condition{
		Type: workv1alpha1.ConditionApplied, Status: metav1.ConditionTrue,
		Reason: workv1alpha1.ReasonAppliedSuccessful, Message: "the cluster holds every slice as the Work has it",
	}
	if outcome.Reason != "" {
		is.Status, is.Reason, is.Message = metav1.ConditionFalse, outcome.Reason, outcome.Message
	}
	var errs []error
	for _, work := range m.works {
		switch {
		case work.DeletionTimestamp == nil:
			errs = append(errs, d.words.say(ctx, work, is))
		case outcome.Reason == "":
			errs = append(errs, d.writer.RemoveFinalizer(ctx, work, workv1alpha1.ExecutionFinalizer))
		}
	}
	return errors.Join(errs...)
}

// Add and AddAll implement endpointslicedispatch.Board: all is told at once.
func (d *deliveries) Add(types.NamespacedName) {}

// AddAll implements endpointslicedispatch.Board.
func (d *deliveries) AddAll() {}

// WaitingForNamespace implements endpointslicedispatch.Board.
func (d *deliveries) WaitingForNamespace(discovery.ClusterName) []types.NamespacedName {
	d.mu.Lock()
	defer d.mu.Unlock()
	var out []types.NamespacedName
	for service := range d.waiting {
		out = append(out, service)
	}
	return out
}
