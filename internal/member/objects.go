package member

import (
	"context"
	"fmt"
	"maps"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha1 "github.com/namesake-io/namesake/api/work/v1alpha1"
)

// NamespaceKind is the kind of which the cache holds every object.
var NamespaceKind = corev1.SchemeGroupVersion.WithKind("Namespace")

// objects is a view of what the hub manages in a member: every object with our
// label, of the kinds that were asked for, and every Namespace.
type objects struct {
	cache  cache.Cache
	member *Member

	mu      sync.Mutex
	watched map[schema.GroupVersionKind]bool
}

// newObjects returns a view that is empty and not running yet.
func newObjects(config *rest.Config, opts cache.Options, m *Member) (*objects, error) {
	opts.DefaultLabelSelector = labels.SelectorFromSet(labels.Set{workv1alpha1.ManagedLabel: workv1alpha1.ManagedValue})
	opts.DefaultTransform = keepOwnMark
	opts.ByObject = map[client.Object]cache.ByObject{&corev1.Namespace{}: {Label: labels.Everything()}}
	c, err := cache.New(config, opts)
	if err != nil {
		return nil, fmt.Errorf("making a cache for member %q: %w", m.id.Name, err)
	}
	return &objects{cache: c, member: m, watched: map[schema.GroupVersionKind]bool{}}, nil
}

// keepOwnMark drops the bulk of managedFields, and keeps that we are among the
// managers: the mark of ours that an edit of labels and annotations leaves.
func keepOwnMark(obj any) (any, error) {
	u, ok := obj.(*unstructured.Unstructured)
	if !ok {
		return obj, nil
	}
	var mark []metav1.ManagedFieldsEntry
	for _, e := range u.GetManagedFields() {
		if e.Manager == workv1alpha1.ExecutionFieldManager {
			mark = []metav1.ManagedFieldsEntry{{Manager: e.Manager}}
		}
	}
	u.SetManagedFields(mark)
	return u, nil
}

// run keeps the view until the context ends. Namespaces are watched from the
// start: their coming is what waits in every controller.
func (o *objects) run(ctx context.Context) {
	go func() {
		if err := o.watch(ctx, NamespaceKind); err != nil && ctx.Err() == nil {
			klog.FromContext(ctx).Error(err, "Cannot watch Namespaces of a member")
		}
	}()
	if err := o.cache.Start(ctx); err != nil && ctx.Err() == nil {
		klog.FromContext(ctx).Error(err, "Cache of a member ended")
	}
}

// watch makes the view hold objects of a kind. It returns when they are known.
func (o *objects) watch(ctx context.Context, gvk schema.GroupVersionKind) error {
	obj := &unstructured.Unstructured{}
	obj.SetGroupVersionKind(gvk)
	informer, err := o.cache.GetInformer(ctx, obj)
	if err != nil {
		return fmt.Errorf("watching %s in member %q: %w", gvk.Kind, o.member.id.Name, err)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.watched[gvk] {
		return nil
	}
	if _, err := informer.AddEventHandler(o.handler(gvk)); err != nil {
		return fmt.Errorf("watching %s in member %q: %w", gvk.Kind, o.member.id.Name, err)
	}
	o.watched[gvk] = true
	return nil
}

// handler tells changes of one kind. The first list is told too; those who
// listen find that nothing is to do.
func (o *objects) handler(gvk schema.GroupVersionKind) toolscache.ResourceEventHandler {
	tell := func(obj any) {
		if deleted, ok := obj.(toolscache.DeletedFinalStateUnknown); ok {
			obj = deleted.Obj
		}
		u, ok := obj.(*unstructured.Unstructured)
		if !ok {
			return
		}
		annotations := u.GetAnnotations()
		o.member.emit(Event{
			Kind: EventObject, Member: o.member, GVK: gvk, Key: client.ObjectKeyFromObject(u),
			Work: types.NamespacedName{
				Namespace: annotations[workv1alpha1.NamespaceAnnotation],
				Name:      annotations[workv1alpha1.NameAnnotation],
			},
		})
	}
	return toolscache.ResourceEventHandlerFuncs{
		AddFunc: tell,
		UpdateFunc: func(old, current any) {
			// Both: an edit may have taken the mark of the Work off.
			if !sameMarks(old, current) {
				tell(old)
			}
			tell(current)
		},
		DeleteFunc: tell,
	}
}

// sameMarks says that an update left the annotations alone.
func sameMarks(old, current any) bool {
	a, okA := old.(*unstructured.Unstructured)
	b, okB := current.(*unstructured.Unstructured)
	return okA && okB && maps.Equal(a.GetAnnotations(), b.GetAnnotations())
}

// Object returns an object of the member as it stands there: from the view, and
// from the API server where the view does not hold it (an object without our
// label). found is false when there is none. The caller may change it.
func (m *Member) Object(ctx context.Context, gvk schema.GroupVersionKind, key types.NamespacedName) (_ *unstructured.Unstructured, found bool, err error) {
	if err := m.objects.watch(ctx, gvk); err != nil {
		return nil, false, err
	}
	obj := &unstructured.Unstructured{}
	obj.SetGroupVersionKind(gvk)
	err = m.objects.cache.Get(ctx, key, obj)
	if apierrors.IsNotFound(err) && gvk != NamespaceKind {
		err = m.client.Get(ctx, key, obj)
	}
	switch {
	case apierrors.IsNotFound(err):
		return nil, false, nil
	case err != nil:
		return nil, false, fmt.Errorf("reading %s %s in member %q: %w", gvk.Kind, key, m.id.Name, err)
	}
	return obj, true, nil
}
