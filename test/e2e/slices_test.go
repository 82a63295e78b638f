package e2e

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	networkingv1alpha1 "github.com/namesake-io/namesake/api/networking/v1alpha1"
)

// C4: a pod turns not ready, its address unchanged, and consumers learn it.
func TestNotReady_C4(t *testing.T) {
	f := together(t)
	s := f.newSite(t, nil)
	s.createService("foo")
	s.createMCS("foo", from("member1"), to("member2", "member3"))
	pods := s.runPods("member1", "foo", 2)
	s.waitOwn("member1", "foo", 2)
	sp := spread{service: "foo", providers: []string{"member1"}, consumers: []string{"member2", "member3"}}
	s.waitSpread(sp)

	h := s.watch(f.members["member3"], &discoveryv1.EndpointSliceList{})
	pod, err := get(t.Context(), s, f.members["member1"], pods[0], &corev1.Pod{})
	s.must(err)
	pod.Status.Conditions[0].Status = corev1.ConditionFalse
	start := time.Now()
	s.must(f.members["member1"].Status().Update(t.Context(), pod))
	at := h.waitState(soon, "member3 knows that the pod is not ready", func(state map[string]client.Object) error {
		for _, obj := range state {
			slice, ok := obj.(*discoveryv1.EndpointSlice)
			if !ok || !s.isDispatched(slice) {
				continue
			}
			for _, e := range slice.Endpoints {
				if e.Addresses[0] == pod.Status.PodIP && !ptr.Deref(e.Conditions.Ready, true) {
					return nil
				}
			}
		}
		return fmt.Errorf("%s is ready there", pod.Status.PodIP)
	})
	t.Logf("from the pod's change to the last consumer: %s", at.Sub(start).Round(time.Millisecond))
	s.waitSpread(sp)
}

// C6: one of three slices disappears. It is withdrawn within seconds, and the
// others are not touched.
func TestVanishedSlice_C6(t *testing.T) {
	f := together(t)
	s := f.newSite(t, nil)
	s.createService("foo", selectorless)
	s.createMCS("foo")
	for _, name := range []string{"foo-1", "foo-2", "foo-3"} {
		s.putSlice("member1", "foo", name)
	}
	s.waitSpread(s.all("foo"))
	s.waitCollected(s.all("foo"))
	s.waitReady("foo")

	h := s.watch(f.members["member2"], &discoveryv1.EndpointSliceList{})
	s.must(f.members["member1"].Delete(t.Context(), &discoveryv1.EndpointSlice{ObjectMeta: s.meta("foo-2")}))
	s.waitSpreadWithin(soon, s.all("foo"))
	s.waitCollected(s.all("foo"))
	var events []string
	for _, e := range h.of(func(happening) bool { return true }) {
		events = append(events, fmt.Sprint(e.kind, " ", e.object.GetName()))
	}
	if diff := cmp.Diff([]string{fmt.Sprint(watch.Deleted, " member1-foo-2")}, events); diff != "" {
		t.Errorf("what happened in member2 (- wanted, + found):\n%s", diff)
	}
}

// C15: a slice changes its service, and then belongs to none.
func TestRelabelledSlice_C15(t *testing.T) {
	f := together(t)
	s := f.newSite(t, nil)
	for _, name := range []string{"foo", "bar"} {
		s.createService(name, selectorless)
		s.createMCS(name)
	}
	s.putSlice("member1", "foo", "a")
	s.putSlice("member1", "foo", "b")
	spreads := []spread{s.all("foo"), s.all("bar")}
	s.waitSpread(spreads...)
	s.waitCollected(spreads...)

	slice := &discoveryv1.EndpointSlice{ObjectMeta: s.meta("a")}
	s.change(f.members["member1"], slice, func() { slice.Labels[discoveryv1.LabelServiceName] = "bar" })
	s.waitSpread(spreads...)
	s.waitCollected(spreads...)
	for _, want := range []struct{ service, slice string }{{"foo", "member1-b"}, {"bar", "member1-a"}} {
		got, err := get(t.Context(), s, f.members["member2"], want.slice, &discoveryv1.EndpointSlice{})
		s.must(err)
		if got.Labels[discoveryv1.LabelServiceName] != want.service {
			t.Errorf("slice %s is of %s, want %s", want.slice, got.Labels[discoveryv1.LabelServiceName], want.service)
		}
	}

	s.change(f.members["member1"], slice, func() { delete(slice.Labels, discoveryv1.LabelServiceName) })
	s.waitSpread(spreads...)
	s.waitCollected(spreads...)
	s.waitReady("foo")
	s.waitReady("bar")
}

// C21: an ExternalName Service has nothing to share, and is told so. A Service
// without selector, whose slices are made by hand, is shared like any other.
func TestWithoutSelector_C21(t *testing.T) {
	f := together(t)
	s := f.newSite(t, nil)
	s.createService("alias", func(svc *corev1.Service) {
		svc.Spec = corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "example.com"}
	})
	s.putSlice("member1", "alias", "alias-a")
	s.createMCS("alias")
	s.createService("hand", selectorless)
	s.createMCS("hand")
	s.putSlice("member1", "hand", "hand-a")

	s.waitCondition("alias", networkingv1alpha1.ConditionReady, networkingv1alpha1.ReasonServiceUnsupported, "ExternalName")
	s.waitCondition("alias", networkingv1alpha1.ConditionServiceApplied, networkingv1alpha1.ReasonServiceAppliedFailed, "ExternalName")
	s.waitSpread(spread{service: "alias"}, s.all("hand"))
	s.waitReady("hand")
	for _, member := range f.names() {
		s.waitNoService("alias", member)
	}

	// It becomes a Service like any other, and then an alias again.
	svc := &corev1.Service{ObjectMeta: s.meta("alias")}
	s.change(f.hub, svc, func() {
		svc.Spec = corev1.ServiceSpec{Type: corev1.ServiceTypeClusterIP, Ports: []corev1.ServicePort{{Name: "http", Port: 80}}}
	})
	s.waitSpread(s.all("alias"), s.all("hand"))
	s.waitService("alias", f.names()...)
	s.waitReady("alias")
	s.change(f.hub, svc, func() {
		svc.Spec = corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "example.com"}
	})
	s.waitSpread(spread{service: "alias"}, s.all("hand"))
}
