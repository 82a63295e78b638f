package endpointslicecollect

import (
	"context"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/namesake-io/namesake/api/cluster/v1alpha1"
	networkingv1alpha1 "github.com/namesake-io/namesake/api/networking/v1alpha1"
	"github.com/namesake-io/namesake/internal/discovery"
	"github.com/namesake-io/namesake/internal/member"
	"github.com/namesake-io/namesake/internal/snapshot"
)

// hubCache has one wish, or none, and some clusters.
type hubCache struct {
	client.Reader
	wish     *networkingv1alpha1.MultiClusterService
	clusters []string
	// lists counts how often the clusters were listed.
	lists int
	// meanwhile happens after they were.
	meanwhile func()
}

func (h *hubCache) Get(_ context.Context, key client.ObjectKey, obj client.Object, _ ...client.GetOption) error {
	if h.wish == nil {
		return apierrors.NewNotFound(schema.GroupResource{Resource: "multiclusterservices"}, key.Name)
	}
	if mcs, ok := obj.(*networkingv1alpha1.MultiClusterService); ok {
		h.wish.DeepCopyInto(mcs)
	}
	return nil
}

func (h *hubCache) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	h.lists++
	if clusters, ok := list.(*clusterv1alpha1.ClusterList); ok {
		for _, name := range h.clusters {
			clusters.Items = append(clusters.Items, clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name}})
		}
	}
	if h.meanwhile != nil {
		h.meanwhile()
	}
	return nil
}

// wishFor asks for a service of these providers; of all, without any.
func wishFor(id string, providers ...string) *networkingv1alpha1.MultiClusterService {
	out := &networkingv1alpha1.MultiClusterService{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: "foo", Labels: map[string]string{networkingv1alpha1.PermanentIDLabel: id},
	}}
	for _, name := range providers {
		out.Spec.ProviderClusters = append(out.Spec.ProviderClusters, networkingv1alpha1.ClusterSelector{Name: networkingv1alpha1.ClusterName(name)})
	}
	return out
}

func TestWishes(t *testing.T) {
	hub := &hubCache{wish: wishFor("id"), clusters: []string{"a", "b"}}
	interest := snapshot.NewInterest(networkingv1alpha1.UnreachableProviders{})
	interest.Add(hub.wish)
	w := NewWishes(snapshot.Source{Reader: hub, Members: member.NewRegistry(member.Options{}), Interest: interest})
	service := types.NamespacedName{Namespace: "shop", Name: "foo"}
	expect := func(title string, of discovery.ClusterName, want Want, lists int) {
		t.Helper()
		before := hub.lists
		got, err := w.Of(t.Context(), of, service)
		if err != nil || got != want || hub.lists != before+lists {
			t.Errorf("%s: %+v, %v after %d lists; want %+v after %d", title, got, err, hub.lists-before, want, lists)
		}
	}
	// Nothing may be wanted of a member only when that is known.
	expectServices := func(title string, of discovery.ClusterName, want int) {
		t.Helper()
		if got, err := w.Services(t.Context(), of); err != nil || len(got) != want {
			t.Errorf("%s: services %v of %s, %v; want %d", title, got, of, err, want)
		}
	}
	expectServices("nobody has asked", "a", 1)
	expect("at first", "a", Want{Wanted: true, PermanentID: "id"}, 1)
	expect("another member", "b", Want{Wanted: true, PermanentID: "id"}, 0)
	expect("one that has not joined", "c", Want{PermanentID: "id"}, 0)
	expectServices("of one that provides", "b", 1)
	expectServices("of one that has not joined", "c", 0)

	hub.wish = wishFor("other", "b")
	w.Forget(service)
	expectServices("of a stranger, after another wish", "c", 1)
	expect("after another wish", "a", Want{PermanentID: "other"}, 1)
	expect("after another wish, its provider", "b", Want{Wanted: true, PermanentID: "other"}, 0)
	expectServices("of one that provides no more", "a", 0)

	hub.wish, hub.clusters = wishFor("other"), []string{"a"}
	w.ForgetAll()
	expect("after a cluster has left", "b", Want{PermanentID: "other"}, 1)

	w.ForgetAll()
	hub.meanwhile = func() { w.Forget(service) }
	expect("while the wish changes", "a", Want{Wanted: true, PermanentID: "other"}, 1)
	hub.meanwhile = nil
	expect("after that", "a", Want{Wanted: true, PermanentID: "other"}, 1)

	hub.wish = nil
	w.Forget(service)
	expect("nobody wishes for it", "a", Want{}, 0)
	hub.wish = wishFor("again")
	expect("somebody does, who has not been told of yet", "a", Want{Wanted: true, PermanentID: "again"}, 1)
}
