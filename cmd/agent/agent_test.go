package main

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/namesake-io/namesake/api/cluster/v1alpha1"
	networkingv1alpha1 "github.com/namesake-io/namesake/api/networking/v1alpha1"
)

// register registers a member by a token of the hub, and returns the kubeconfig of
// its agent.
func register(t *testing.T, hub, member *site) string {
	t.Helper()
	dir := t.TempDir()
	token, kubeconfig := filepath.Join(dir, "token"), filepath.Join(dir, "agent.kubeconfig")
	hub.ctl(t, "token", "create", member.name, "--write", token)
	hub.ctl(t, "register", member.name, "--hub-kubeconfig", token, "--cluster-kubeconfig", member.kubeconfig, "--agent-kubeconfig", kubeconfig)
	return kubeconfig
}

// A hub with a member that it calls and one that calls it: a Service of both is
// known in both, nothing is written while nothing happens, the agent may go and
// come, and nothing is left when the member goes.
func TestMixedFleet(t *testing.T) {
	hub, members := startSites(t, "a", "b")
	a, b := members[0], members[1]
	runHub(t, hub)
	hub.create(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: clusterv1alpha1.SystemNamespace}})
	hub.ctl(t, "join", "a", "--cluster-kubeconfig", a.kubeconfig, "--token-wait", "100ms")
	kubeconfig := register(t, hub, b)
	start := func() (stop func()) { return runAgent(t, kubeconfig) } // until the whole test ends
	stop := start()
	hub.clusterReason(t, "b", clusterv1alpha1.ReasonClusterReady)

	shop(t, hub, "foo")
	for i, m := range members {
		eventually(t, "namespace in "+m.name, func(ctx context.Context) string {
			if err := m.Get(ctx, client.ObjectKey{Name: "shop"}, &corev1.Namespace{}); err != nil {
				return err.Error()
			}
			return ""
		})
		m.create(t, providerSlice("foo-"+m.name, fmt.Sprintf("10.%d.0.1", i)))
	}
	hub.create(t, wish("foo"))
	a.holds(t, "b-foo-b", "foo-a")
	b.holds(t, "a-foo-a", "foo-b")
	hub.serviceReason(t, "foo", networkingv1alpha1.ReasonAllReady)

	t.Run("no write at rest", func(t *testing.T) { staysAtRest(t, hub, a, b) })
	t.Run("edits are undone", func(t *testing.T) { editsAreUndone(t, b) })
	t.Run("changes travel both ways", func(t *testing.T) {
		b.create(t, providerSlice("foo-more", "10.1.0.2"))
		a.holds(t, "b-foo-b", "b-foo-more", "foo-a")
		a.create(t, providerSlice("foo-more", "10.0.0.2"))
		b.holds(t, "a-foo-a", "a-foo-more", "foo-b", "foo-more")
		for _, m := range members {
			if err := m.Delete(t.Context(), providerSlice("foo-more")); err != nil {
				t.Fatal(err)
			}
		}
		a.holds(t, "b-foo-b", "foo-a")
		b.holds(t, "a-foo-a", "foo-b")
	})
	t.Run("a slice is made anew with another address type", func(t *testing.T) {
		for i, m := range members {
			other := members[1-i]
			if err := m.Delete(t.Context(), providerSlice("foo-"+m.name)); err != nil {
				t.Fatal(err)
			}
			anew := providerSlice("foo-"+m.name, fmt.Sprintf("2001:db8::%d", i+1))
			anew.AddressType = discoveryv1.AddressTypeIPv6
			m.create(t, anew)
			hasAddressType(t, other, m.name+"-foo-"+m.name, discoveryv1.AddressTypeIPv6)
		}
	})
	t.Run("a silent agent takes nothing away", func(t *testing.T) {
		stop()
		hub.clusterReason(t, "b", clusterv1alpha1.ReasonAgentSilent)
		hasTaint(t, hub, "b", clusterv1alpha1.TaintUnreachable)
		hub.serviceReason(t, "foo", networkingv1alpha1.ReasonClusterUnreachable)
		// What it is told by nobody is not gone, and what is for it waits.
		if err := b.Delete(t.Context(), providerSlice("foo-b")); err != nil {
			t.Fatal(err)
		}
		a.create(t, providerSlice("foo-new", "10.0.0.3"))
		tick(t, time.Second)
		a.holds(t, "b-foo-b", "foo-a", "foo-new")
		b.holds(t, "a-foo-a")
		start()
		hub.clusterReason(t, "b", clusterv1alpha1.ReasonClusterReady)
		a.holds(t, "foo-a", "foo-new")
		b.holds(t, "a-foo-a", "a-foo-new")
		b.create(t, providerSlice("foo-b", "10.1.0.1"))
		a.holds(t, "b-foo-b", "foo-a", "foo-new")
		hub.serviceReason(t, "foo", networkingv1alpha1.ReasonAllReady)
	})
	t.Run("the wish goes and comes", func(t *testing.T) {
		if err := hub.Delete(t.Context(), wish("foo")); err != nil {
			t.Fatal(err)
		}
		gone(t, hub, wish("foo"))
		a.holds(t, "foo-a", "foo-new")
		b.holds(t, "foo-b")
		gone(t, b, &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "foo"}})
		hub.create(t, wish("foo"))
		a.holds(t, "b-foo-b", "foo-a", "foo-new")
		b.holds(t, "a-foo-a", "a-foo-new", "foo-b")
	})
	t.Run("unjoin leaves nothing", func(t *testing.T) {
		hub.ctl(t, "unjoin", "b", "--cluster-kubeconfig", b.kubeconfig)
		a.holds(t, "foo-a", "foo-new")
		b.holds(t, "foo-b")
		gone(t, b, &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "foo"}})
		gone(t, b, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: clusterv1alpha1.SystemNamespace, Name: clusterv1alpha1.AgentName}})
		gone(t, hub, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-es-b", Name: clusterv1alpha1.AgentName}})
	})
}

// hasAddressType waits until a slice has an address type, which cannot be changed.
func hasAddressType(t *testing.T, s *site, name string, want discoveryv1.AddressType) {
	t.Helper()
	eventually(t, "address type of "+name, func(ctx context.Context) string {
		slice := &discoveryv1.EndpointSlice{}
		if err := s.Get(ctx, client.ObjectKey{Namespace: "shop", Name: name}, slice); err != nil {
			return err.Error()
		}
		if slice.AddressType != want {
			return fmt.Sprintf("is %s, want %s", slice.AddressType, want)
		}
		return ""
	})
}

// gone waits until an object is not there any more.
func gone(t *testing.T, s *site, obj client.Object) {
	t.Helper()
	eventually(t, fmt.Sprintf("%T %s in %s", obj, obj.GetName(), s.name), func(ctx context.Context) string {
		err := s.Get(ctx, client.ObjectKeyFromObject(obj), obj)
		if apierrors.IsNotFound(err) {
			return ""
		}
		return fmt.Sprintf("is there: %v (%v)", obj, err)
	})
}

// hasTaint waits until a Cluster has a taint.
func hasTaint(t *testing.T, hub *site, name, taint string) {
	t.Helper()
	eventually(t, "taint of "+name, func(ctx context.Context) string {
		cluster := &clusterv1alpha1.Cluster{}
		if err := hub.Get(ctx, client.ObjectKey{Name: name}, cluster); err != nil {
			return err.Error()
		}
		if !slices.ContainsFunc(cluster.Spec.Taints, func(t corev1.Taint) bool { return t.Key == taint }) {
			return fmt.Sprintf("taints %v", cluster.Spec.Taints)
		}
		return ""
	})
}

// staysAtRest waits until writes stop, and then sees none for five seconds.
func staysAtRest(t *testing.T, sites ...*site) {
	all := func() map[string]map[string]float64 {
		out := map[string]map[string]float64{}
		for _, s := range sites {
			out[s.name] = s.writes(t)
		}
		return out
	}
	before := all()
	settled := time.Now()
	for start := time.Now(); time.Since(settled) < 2*time.Second; {
		tick(t, 200*time.Millisecond)
		now := all()
		if !cmp.Equal(before, now) {
			if time.Since(start) > waitAtMost {
				t.Fatalf("writes do not stop (-before +now):\n%s", cmp.Diff(before, now))
			}
			before, settled = now, time.Now()
		}
	}
	tick(t, 5*time.Second)
	if diff := cmp.Diff(before, all()); diff != "" {
		t.Errorf("writes at rest (-before +now):\n%s", diff)
	}
}

// editsAreUndone takes everything off a dispatched slice, and deletes it.
func editsAreUndone(t *testing.T, b *site) {
	slice := &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "a-foo-a"}}
	if err := b.Get(t.Context(), client.ObjectKeyFromObject(slice), slice); err != nil {
		t.Fatal(err)
	}
	uid := slice.UID
	slice.Labels, slice.Annotations, slice.Endpoints = nil, nil, nil
	if err := b.Update(t.Context(), slice); err != nil {
		t.Fatal(err)
	}
	whole := func(other bool) func(context.Context) string {
		return func(ctx context.Context) string {
			if err := b.Get(ctx, client.ObjectKeyFromObject(slice), slice); err != nil {
				return err.Error()
			}
			if len(slice.Endpoints) != 1 || slice.Labels[discoveryv1.LabelServiceName] != "foo" ||
				slice.Annotations[networkingv1alpha1.ProvisionClusterAnnotation] != "a" || (slice.UID != uid) != other {
				return fmt.Sprintf("slice %+v", slice)
			}
			return ""
		}
	}
	eventually(t, "the edit is undone", whole(false))
	if err := b.Delete(t.Context(), slice); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the deletion is undone", whole(true))
}
