package hub

import (
	"context"
	"fmt"
	"maps"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	clusterv1alpha1 "github.com/namesake-io/namesake/api/cluster/v1alpha1"
	networkingv1alpha1 "github.com/namesake-io/namesake/api/networking/v1alpha1"
	workv1alpha1 "github.com/namesake-io/namesake/api/work/v1alpha1"
	"github.com/namesake-io/namesake/internal/snapshot"
)

// hooks are what controllers want to be told of hub objects. They only enqueue.
type hooks struct {
	// wish: a MultiClusterService came, went, or asks for something else.
	wish []func(types.NamespacedName)
	// status: that of a MultiClusterService changed, whoever wrote it.
	status []func(types.NamespacedName)
	// service: the Service of a MultiClusterService changed.
	service []func(types.NamespacedName)
	// selection: a Cluster changed in a way that may change who takes part.
	selection []func()
	// work: a Work changed.
	work []func(*workv1alpha1.Work)
	// stop: the hub has ended.
	stop []func()
}

// install has the hooks called from the hub's cache, and keeps the interest.
func (h *hooks) install(ctx context.Context, c cache.Cache, interest *snapshot.Interest) error {
	service := &unstructured.Unstructured{}
	service.SetGroupVersionKind(snapshot.ServiceKind)
	handlers := map[client.Object]toolscache.ResourceEventHandler{
		&networkingv1alpha1.MultiClusterService{}: h.wishHandler(interest),
		service: each(func(old, current client.Object) {
			key := keyOf(old, current)
			if !interest.Has(key) {
				return
			}
			for _, call := range h.service {
				call(key)
			}
		}),
		&clusterv1alpha1.Cluster{}: each(func(old, current client.Object) {
			if selectionDiffers(old, current) {
				for _, call := range h.selection {
					call()
				}
			}
		}),
		&workv1alpha1.Work{}: each(func(old, current client.Object) {
			for _, obj := range []client.Object{old, current} {
				if work, ok := obj.(*workv1alpha1.Work); ok {
					for _, call := range h.work {
						call(work)
					}
				}
			}
		}),
	}
	for obj, handler := range handlers {
		informer, err := c.GetInformer(ctx, obj, cache.BlockUntilSynced(false))
		if err != nil {
			return fmt.Errorf("watching %T on the hub: %w", obj, err)
		}
		if _, err := informer.AddEventHandler(handler); err != nil {
			return fmt.Errorf("watching %T on the hub: %w", obj, err)
		}
	}
	return nil
}

// wishHandler keeps the interest first, and then tells: what a member saw before
// is found by the look that this starts.
func (h *hooks) wishHandler(interest *snapshot.Interest) toolscache.ResourceEventHandler {
	return each(func(old, current client.Object) {
		key := keyOf(old, current)
		if mcs, ok := current.(*networkingv1alpha1.MultiClusterService); ok {
			interest.Add(mcs)
		} else {
			interest.Remove(key)
		}
		if old != nil && current != nil && old.GetGeneration() == current.GetGeneration() && old.GetUID() == current.GetUID() &&
			equality.Semantic.DeepEqual(old.GetLabels(), current.GetLabels()) {
			for _, call := range h.status {
				call(key)
			}
			return
		}
		for _, call := range h.wish {
			call(key)
		}
	})
}

// each calls a function for every change: old is nil for what came, current for
// what went.
func each(call func(old, current client.Object)) toolscache.ResourceEventHandler {
	return toolscache.ResourceEventHandlerFuncs{
		AddFunc: func(obj any) {
			if o, ok := obj.(client.Object); ok {
				call(nil, o)
			}
		},
		UpdateFunc: func(before, after any) {
			a, okA := before.(client.Object)
			b, okB := after.(client.Object)
			if okA && okB {
				call(a, b)
			}
		},
		DeleteFunc: func(obj any) {
			if gone, ok := obj.(toolscache.DeletedFinalStateUnknown); ok {
				obj = gone.Obj
			}
			if o, ok := obj.(client.Object); ok {
				call(o, nil)
			}
		},
	}
}

// keyOf is the key of whichever object there is.
func keyOf(old, current client.Object) types.NamespacedName {
	if current != nil {
		return client.ObjectKeyFromObject(current)
	}
	return client.ObjectKeyFromObject(old)
}

// selectionChanged passes on changes of Clusters that may change who takes part.
func selectionChanged() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool { return selectionDiffers(e.ObjectOld, e.ObjectNew) }}
}

// selectionDiffers says whether a change of a Cluster is one to the core.
func selectionDiffers(old, current client.Object) bool {
	a, okA := old.(*clusterv1alpha1.Cluster)
	b, okB := current.(*clusterv1alpha1.Cluster)
	if !okA || !okB {
		return true
	}
	before, after := snapshot.FromCluster(a), snapshot.FromCluster(b)
	return a.UID != b.UID || before.Leaving != after.Leaving || before.LacksSlices != after.LacksSlices ||
		!before.UnreachableSince.Equal(after.UnreachableSince) || before.UnreachableWhy != after.UnreachableWhy || !maps.Equal(before.Labels, after.Labels)
}
