package e2e

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/namesake-io/namesake/api/cluster/v1alpha1"
	networkingv1alpha1 "github.com/namesake-io/namesake/api/networking/v1alpha1"
	workv1alpha2 "github.com/namesake-io/namesake/api/work/v1alpha2"
)

// The main job: every member holds the others' slices, the hub remembers each
// once, and the Service stands everywhere.
func TestSpread(t *testing.T) {
	f := together(t)
	s := f.newSite(t, nil)
	for _, name := range []string{"foo", "bar"} {
		for i, member := range f.names() {
			s.runPods(member, name, i+1)
		}
	}
	s.createService("foo")
	s.createService("bar", headless)
	s.createMCS("foo")
	mcs := s.createMCS("bar")

	// The slices come when the Services do, so pods are seen through both.
	for _, name := range []string{"foo", "bar"} {
		s.waitService(name, f.names()...)
		for i, member := range f.names() {
			s.waitOwn(member, name, i+1)
		}
	}
	s.waitSpread(s.all("foo"), s.all("bar"))
	s.waitCollected(s.all("foo"), s.all("bar"))
	s.waitReady("foo")
	s.waitReady("bar")
	everywhere := fmt.Sprintf("%d of %d", len(f.names()), len(f.names()))
	s.waitEvent(mcs.UID, networkingv1alpha1.EventDispatchEndpointSliceSucceed, everywhere)
	s.waitEvent(mcs.UID, networkingv1alpha1.EventSyncServiceSucceed, everywhere)
	checkMarks(s, "foo")

	_, others, err := s.worksOf(t.Context())
	s.must(err)
	want := map[string][]string{}
	for _, member := range f.names() {
		want[clusterv1alpha1.ExecutionNamespace(member)] = []string{"Service bar", "Service foo"}
	}
	if diff := cmp.Diff(want, others); diff != "" {
		t.Errorf("Works that put something into members (- wanted, + found):\n%s", diff)
	}

	deleteAndCheck(s, "foo")
	s.waitSpread(s.all("bar"))
	s.waitCollected(s.all("bar"))
}

// checkMarks finds the marks of a wish on the hub.
func checkMarks(s *site, name string) {
	s.t.Helper()
	ctx := s.t.Context()
	mcs, err := get(ctx, s, s.hub, name, &networkingv1alpha1.MultiClusterService{})
	s.must(err)
	id := mcs.Labels["multiclusterservice.karmada.io/permanent-id"]
	if len(id) != 36 {
		s.t.Errorf("permanent id %q is no UUID", id)
	}
	if diff := cmp.Diff([]string{"karmada.io/multiclusterservice-controller"}, mcs.Finalizers); diff != "" {
		s.t.Errorf("finalizers (- wanted, + found):\n%s", diff)
	}
	for _, c := range mcs.Status.Conditions {
		if c.ObservedGeneration != mcs.Generation {
			s.t.Errorf("condition %s is of generation %d, not %d", c.Type, c.ObservedGeneration, mcs.Generation)
		}
	}
	ours := map[string]string{"multiclusterservice.karmada.io/name": name, "multiclusterservice.karmada.io/namespace": s.ns}

	svc, err := get(ctx, s, s.hub, name, &corev1.Service{})
	s.must(err)
	if diff := cmp.Diff(map[string]string{
		"multiclusterservice.karmada.io/permanent-id": id, "resourcetemplate.karmada.io/claimed-by": "MultiClusterService",
	}, svc.Labels); diff != "" {
		s.t.Errorf("labels of the Service (- wanted, + found):\n%s", diff)
	}
	if diff := cmp.Diff(ours, svc.Annotations); diff != "" {
		s.t.Errorf("annotations of the Service (- wanted, + found):\n%s", diff)
	}

	rb, err := get(ctx, s, s.hub, name+"-service", &workv1alpha2.ResourceBinding{})
	s.must(err)
	if diff := cmp.Diff(map[string]string{
		"multiclusterservice.karmada.io/permanent-id": id, "binding.karmada.io/managed-by": "MultiClusterService",
	}, rb.Labels); diff != "" {
		s.t.Errorf("labels of the binding (- wanted, + found):\n%s", diff)
	}
	if diff := cmp.Diff(ours, rb.Annotations); diff != "" {
		s.t.Errorf("annotations of the binding (- wanted, + found):\n%s", diff)
	}
}

// deleteAndCheck deletes a wish and finds nothing of it at the moment when it is
// gone: its finalizer is the last thing to go.
func deleteAndCheck(s *site, name string) {
	s.t.Helper()
	wishes := s.watch(s.hub, &networkingv1alpha1.MultiClusterServiceList{})
	before := time.Now()
	s.must(s.hub.Delete(s.t.Context(), &networkingv1alpha1.MultiClusterService{ObjectMeta: s.meta(name)}))
	at := wishes.waitState(patience, "deletion of "+name, func(state map[string]client.Object) error {
		if state[name] != nil {
			return fmt.Errorf("finalizers %v", state[name].GetFinalizers())
		}
		return nil
	})
	s.t.Logf("MultiClusterService %s gone after %s", name, at.Sub(before).Round(time.Millisecond))
	if err := checkGone(s.t.Context(), s, name); err != nil {
		s.t.Errorf("MultiClusterService %s is gone, but %v", name, err)
	}
}

// checkGone finds what is left of a wish, on the hub and in members.
func checkGone(ctx context.Context, s *site, name string) error {
	for _, member := range s.names() {
		own, dispatched, err := s.slicesIn(ctx, member, name)
		if err != nil {
			return err
		}
		for _, slice := range dispatched {
			if slice.Labels["kubernetes.io/service-name"] == name {
				return fmt.Errorf("%s has slice %s", member, slice.Name)
			}
		}
		collected, others, err := s.worksOf(ctx)
		if err != nil {
			return err
		}
		for _, work := range collected[clusterv1alpha1.ExecutionNamespace(member)] {
			if own[work.Slice] != nil {
				return fmt.Errorf("the hub remembers slice %s of %s", work.Slice, member)
			}
		}
		for _, what := range others[clusterv1alpha1.ExecutionNamespace(member)] {
			if what == "Service "+name {
				return fmt.Errorf("there is a Work of the Service for %s", member)
			}
		}
		if _, err := get(ctx, s, s.members[member], name, &corev1.Service{}); !apierrors.IsNotFound(err) {
			return fmt.Errorf("%s has the Service (%w)", member, err)
		}
	}
	if _, err := get(ctx, s, s.hub, name+"-service", &workv1alpha2.ResourceBinding{}); !apierrors.IsNotFound(err) {
		return fmt.Errorf("there is a binding (%w)", err)
	}
	svc, err := get(ctx, s, s.hub, name, &corev1.Service{})
	if err != nil {
		return err
	}
	if len(svc.Labels) > 0 || len(svc.Annotations) > 0 {
		return fmt.Errorf("the Service has labels %v and annotations %v", svc.Labels, svc.Annotations)
	}
	return nil
}
