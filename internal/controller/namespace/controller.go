package namespace

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1alpha1 "github.com/namesake-io/namesake/api/cluster/v1alpha1"
	workv1alpha1 "github.com/namesake-io/namesake/api/work/v1alpha1"
	"github.com/namesake-io/namesake/internal/apply"
	"github.com/namesake-io/namesake/internal/manifest"
)

// Name of the controller, as users pass it to --controllers.
const Name = "namespace"

// Controller reconciles the hub's namespaces.
type Controller struct {
	reader client.Reader
	writer apply.Writer
	wrote  *apply.Memory
}

// Add makes the controller and adds it to a manager.
func Add(mgr ctrl.Manager) error {
	c := &Controller{reader: mgr.GetClient(), writer: apply.NewWriter(mgr.GetClient(), "namesake-namespace"), wrote: apply.NewMemory()}
	err := ctrl.NewControllerManagedBy(mgr).Named(Name).
		For(&corev1.Namespace{}).
		Watches(&workv1alpha1.Work{}, handler.EnqueueRequestsFromMapFunc(namespaceOfWork)).
		Watches(&clusterv1alpha1.Cluster{}, handler.EnqueueRequestsFromMapFunc(c.allNamespaces), builder.WithPredicates(comesOrGoes())).
		WithOptions(controller.Options{MaxConcurrentReconciles: 4}).
		Complete(c)
	if err != nil {
		return fmt.Errorf("adding controller %s: %w", Name, err)
	}
	return nil
}

// comesOrGoes passes on clusters that join, or begin to leave.
func comesOrGoes() predicate.Predicate {
	return predicate.Funcs{
		UpdateFunc: func(e event.UpdateEvent) bool {
			return (e.ObjectOld.GetDeletionTimestamp() == nil) != (e.ObjectNew.GetDeletionTimestamp() == nil)
		},
	}
}

// namespaceOfWork returns the namespace that a Work makes.
func namespaceOfWork(_ context.Context, obj client.Object) []reconcile.Request {
	work, ok := obj.(*workv1alpha1.Work)
	if !ok {
		return nil
	}
	for _, m := range work.Spec.Workload.Manifests {
		if id, err := manifest.IdentityOf(m); err == nil && id == identityOf(id.Name) {
			return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: id.Name}}}
		}
	}
	return nil
}

// allNamespaces returns every namespace of the hub that is to be in members. Of
// others a cluster that comes or goes changes nothing.
func (c *Controller) allNamespaces(ctx context.Context, _ client.Object) []reconcile.Request {
	list := &corev1.NamespaceList{}
	if err := c.reader.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		return nil
	}
	out := make([]reconcile.Request, 0, len(list.Items))
	for i := range list.Items {
		if propagates(&list.Items[i]) {
			out = append(out, reconcile.Request{NamespacedName: types.NamespacedName{Name: list.Items[i].Name}})
		}
	}
	return out
}

// Reconcile implements reconcile.Reconciler: one namespace of the hub.
func (c *Controller) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	st, err := c.observe(ctx, req.Name)
	if err != nil {
		return reconcile.Result{}, err
	}
	if wait := c.behind(st); wait > 0 {
		return reconcile.Result{RequeueAfter: wait}, nil
	}
	p, err := plan(st)
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("planning Works of namespace %s: %w", req.Name, err)
	}
	again, err := c.apply(ctx, p)
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("applying plan for namespace %s: %w", req.Name, err)
	}
	return reconcile.Result{RequeueAfter: again}, nil
}
