package multiclusterservice

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1alpha1 "github.com/namesake-io/namesake/api/cluster/v1alpha1"
	networkingv1alpha1 "github.com/namesake-io/namesake/api/networking/v1alpha1"
	workv1alpha1 "github.com/namesake-io/namesake/api/work/v1alpha1"
	workv1alpha2 "github.com/namesake-io/namesake/api/work/v1alpha2"
	"github.com/namesake-io/namesake/internal/apply"
	"github.com/namesake-io/namesake/internal/snapshot"
)

// Name of the controller, as users pass it to --controllers.
const Name = "multiclusterservice"

// pendingWait is how long clusters that have not said yet how they took the
// Service are waited for before they are told to be missing.
const pendingWait = 5 * time.Second

// deletionWait is how long a deletion may take before it is told what it waits for.
const deletionWait = 2 * time.Second

// cleanInterval is how often it is looked whether all is gone that a deleted
// object gave. Most of it is in members, whose own events come in their time.
const cleanInterval = 100 * time.Millisecond

// Controller reconciles MultiClusterServices.
type Controller struct {
	source   snapshot.Source
	writer   apply.Writer
	status   apply.Writer
	wrote    memories
	recorder events.EventRecorder

	mu sync.Mutex
	// pendingSince is when clusters were first seen to be on their way.
	pendingSince map[types.NamespacedName]time.Time
}

// memories are of our own writes, by the kind that was written.
type memories struct {
	mcs, service, binding *apply.Memory
}

// behind returns how long to wait at most for the hub's cache to show our last
// writes. Zero: it shows them.
func (m memories) behind(st *state) time.Duration {
	var service, binding client.Object
	if st.template != nil {
		service = st.template
	}
	name := types.NamespacedName{Namespace: st.key.Namespace, Name: workv1alpha2.BindingName("service", st.key.Name)}
	if st.binding != nil {
		binding = st.binding
	}
	return max(m.mcs.Behind(st.key, st.mcs), m.service.Behind(st.key, service), m.binding.Behind(name, binding))
}

// Add makes the controller and adds it to a manager. clusterChanged passes on
// changes of Clusters that may change who takes part.
func Add(mgr ctrl.Manager, source snapshot.Source, clusterChanged predicate.Predicate) error {
	c := &Controller{
		source: source, writer: apply.NewWriter(mgr.GetClient(), "namesake-multiclusterservice"),
		status: apply.NewWriter(mgr.GetClient(), "namesake-multiclusterservice-status"),
		wrote:  memories{apply.NewMemory(), apply.NewMemory(), apply.NewMemory()}, recorder: mgr.GetEventRecorder("namesake-" + Name),
		pendingSince: map[types.NamespacedName]time.Time{},
	}
	service := &unstructured.Unstructured{}
	service.SetGroupVersionKind(snapshot.ServiceKind)
	err := ctrl.NewControllerManagedBy(mgr).Named(Name).
		For(&networkingv1alpha1.MultiClusterService{}, builder.WithPredicates(predicate.Or(
			predicate.GenerationChangedPredicate{}, predicate.LabelChangedPredicate{}))).
		Watches(service, handler.EnqueueRequestsFromMapFunc(c.sameName)).
		Watches(&workv1alpha2.ResourceBinding{}, handler.EnqueueRequestsFromMapFunc(c.claimant)).
		Watches(&workv1alpha1.Work{}, handler.EnqueueRequestsFromMapFunc(wisherOfWork)).
		Watches(&clusterv1alpha1.Cluster{}, handler.EnqueueRequestsFromMapFunc(c.all), builder.WithPredicates(clusterChanged)).
		WithOptions(controller.Options{MaxConcurrentReconciles: 8}).
		Complete(c)
	if err != nil {
		return fmt.Errorf("adding controller %s: %w", Name, err)
	}
	return nil
}

// sameName returns the MultiClusterService of a Service.
func (c *Controller) sameName(_ context.Context, obj client.Object) []reconcile.Request {
	key := client.ObjectKeyFromObject(obj)
	if !c.source.Interest.Has(key) {
		return nil
	}
	return []reconcile.Request{{NamespacedName: key}}
}

// claimant returns the MultiClusterService of a binding's Service, whoever made
// the binding.
func (c *Controller) claimant(_ context.Context, obj client.Object) []reconcile.Request {
	rb, ok := obj.(*workv1alpha2.ResourceBinding)
	if !ok || rb.Spec.Resource.Kind != snapshot.ServiceKind.Kind {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: rb.Namespace, Name: rb.Spec.Resource.Name}}}
}

// wisherOfWork returns the MultiClusterService that a Work is for.
func wisherOfWork(_ context.Context, obj client.Object) []reconcile.Request {
	return named(obj.GetLabels())
}

// named returns the MultiClusterService that labels or annotations name.
func named(marks map[string]string) []reconcile.Request {
	if marks[networkingv1alpha1.NameKey] == "" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{
		Namespace: marks[networkingv1alpha1.NamespaceKey], Name: marks[networkingv1alpha1.NameKey],
	}}}
}

// all returns every MultiClusterService: who takes part depends on all clusters.
func (c *Controller) all(ctx context.Context, _ client.Object) []reconcile.Request {
	list := &networkingv1alpha1.MultiClusterServiceList{}
	if err := c.source.Reader.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		return nil
	}
	out := make([]reconcile.Request, 0, len(list.Items))
	for i := range list.Items {
		out = append(out, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
	}
	return out
}

// Reconcile implements reconcile.Reconciler: one MultiClusterService.
func (c *Controller) Reconcile(ctx context.Context, req reconcile.Request) (_ reconcile.Result, err error) {
	defer func(start time.Time) {
		syncDuration.WithLabelValues(resultOf(err)).Observe(time.Since(start).Seconds())
	}(time.Now())
	st, found, err := c.observe(ctx, req.NamespacedName)
	if err != nil || !found {
		return reconcile.Result{}, err
	}
	if wait := c.wrote.behind(st); wait > 0 {
		return reconcile.Result{RequeueAfter: wait}, nil
	}
	p := plan(st)
	if err := c.apply(ctx, st, p); err != nil {
		err = fmt.Errorf("applying plan for %s: %w", req, err)
		if st.mcs.DeletionTimestamp == nil {
			_, reportErr := c.report(ctx, st)
			err = errors.Join(err, reportErr)
		}
		return reconcile.Result{}, err
	}
	if st.mcs.DeletionTimestamp != nil {
		if err := c.reportDeletion(ctx, st); err != nil {
			return reconcile.Result{}, client.IgnoreNotFound(err)
		}
		return reconcile.Result{RequeueAfter: p.Again}, nil
	}
	wait, err := c.report(ctx, st)
	if err != nil {
		return reconcile.Result{}, err
	}
	return reconcile.Result{RequeueAfter: wait}, nil
}
