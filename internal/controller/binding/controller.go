package binding

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	clusterv1alpha1 "github.com/namesake-io/namesake/api/cluster/v1alpha1"
	networkingv1alpha1 "github.com/namesake-io/namesake/api/networking/v1alpha1"
	workv1alpha1 "github.com/namesake-io/namesake/api/work/v1alpha1"
	workv1alpha2 "github.com/namesake-io/namesake/api/work/v1alpha2"
	"github.com/namesake-io/namesake/internal/apply"
	"github.com/namesake-io/namesake/internal/manifest"
	"github.com/namesake-io/namesake/internal/snapshot"
)

// Name of the controller, as users pass it to --controllers.
const Name = "binding"

// Controller reconciles bindings.
type Controller struct {
	source snapshot.Source
	cache  cache.Cache
	writer apply.Writer
	wrote  *apply.Memory

	// controller is what watches are added to as kinds are first bound.
	controller controller.Controller
	mu         sync.Mutex
	watched    map[schema.GroupVersionKind]bool
}

// Add makes the controller and adds it to a manager.
func Add(mgr ctrl.Manager, gathered snapshot.Source) error {
	c := &Controller{
		source: gathered, cache: mgr.GetCache(), writer: apply.NewWriter(mgr.GetClient(), "namesake-binding"),
		wrote: apply.NewMemory(), watched: map[schema.GroupVersionKind]bool{},
	}
	var err error
	c.controller, err = ctrl.NewControllerManagedBy(mgr).Named(Name).
		For(&workv1alpha2.ResourceBinding{}).
		// What is said of a Work is no matter of the binding.
		Watches(&workv1alpha1.Work{}, handler.EnqueueRequestsFromMapFunc(bindingOfWork), builder.WithPredicates(predicate.Or(
			predicate.GenerationChangedPredicate{}, predicate.LabelChangedPredicate{}))).
		Watches(&clusterv1alpha1.Cluster{}, handler.EnqueueRequestsFromMapFunc(c.bindingsOfCluster)).
		Watches(&networkingv1alpha1.MultiClusterService{}, handler.EnqueueRequestsFromMapFunc(bindingOfWish),
			builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		WithOptions(controller.Options{MaxConcurrentReconciles: 8}).
		Build(c)
	if err != nil {
		return fmt.Errorf("adding controller %s: %w", Name, err)
	}
	return nil
}

// bindingOfWork returns the binding whose resource a Work holds.
func bindingOfWork(_ context.Context, obj client.Object) []reconcile.Request {
	work, ok := obj.(*workv1alpha1.Work)
	if !ok || !manifest.IsApplied(work) {
		return nil
	}
	var out []reconcile.Request
	for _, m := range work.Spec.Workload.Manifests {
		if id, err := manifest.IdentityOf(m); err == nil && id.Namespace != "" {
			out = append(out, request(id.Namespace, id.Kind, id.Name))
		}
	}
	return out
}

// bindingOfWish returns the binding that a MultiClusterService makes: what it says
// of ports is carried out here.
func bindingOfWish(_ context.Context, obj client.Object) []reconcile.Request {
	return []reconcile.Request{request(obj.GetNamespace(), snapshot.ServiceKind.Kind, obj.GetName())}
}

// bindingsOfCluster returns the bindings that name a cluster.
func (c *Controller) bindingsOfCluster(ctx context.Context, obj client.Object) []reconcile.Request {
	list := &workv1alpha2.ResourceBindingList{}
	if err := c.source.Reader.List(ctx, list, client.UnsafeDisableDeepCopy, client.MatchingFields{ClusterIndex: obj.GetName()}); err != nil {
		return nil
	}
	out := make([]reconcile.Request, 0, len(list.Items))
	for i := range list.Items {
		out = append(out, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
	}
	return out
}

// bindingOfResource returns the binding of a resource.
func bindingOfResource(_ context.Context, obj *unstructured.Unstructured) []reconcile.Request {
	return []reconcile.Request{request(obj.GetNamespace(), obj.GetKind(), obj.GetName())}
}

// request is for the binding of a resource.
func request(namespace, kind, name string) reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{
		Namespace: namespace, Name: workv1alpha2.BindingName(strings.ToLower(kind), name),
	}}
}

// watch makes changes of a kind of resource reach the controller.
func (c *Controller) watch(gvk schema.GroupVersionKind) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.watched[gvk] {
		return nil
	}
	obj := &unstructured.Unstructured{}
	obj.SetGroupVersionKind(gvk)
	if err := c.controller.Watch(source.Kind(c.cache, obj, handler.TypedEnqueueRequestsFromMapFunc(bindingOfResource))); err != nil {
		return fmt.Errorf("watching %s: %w", gvk, err)
	}
	c.watched[gvk] = true
	return nil
}

// Reconcile implements reconcile.Reconciler: one binding.
func (c *Controller) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	st, found, err := c.observe(ctx, req.NamespacedName)
	if err != nil || !found {
		return reconcile.Result{}, err
	}
	if wait := c.behind(st); wait > 0 {
		return reconcile.Result{RequeueAfter: wait}, nil
	}
	p, err := plan(st)
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("planning Works of binding %s: %w", req, err)
	}
	if p.Prepare {
		if err := c.writer.AddFinalizer(ctx, st.binding, workv1alpha2.Finalizer); err != nil {
			return reconcile.Result{}, err
		}
	}
	again, err := c.apply(ctx, p)
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("applying plan for binding %s: %w", req, err)
	}
	if p.Release {
		if err := c.writer.RemoveFinalizer(ctx, st.binding, workv1alpha2.Finalizer); err != nil {
			return reconcile.Result{}, err
		}
	}
	return reconcile.Result{RequeueAfter: max(again, p.Again)}, nil
}
