package e2e

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	networkingv1alpha1 "github.com/namesake-io/namesake/api/networking/v1alpha1"
)

// C31: the hub is killed in the middle of a dispatch, and again in the middle of
// taking everything away. Each time the next one ends what was begun: no
// duplicate, no orphan, no loss.
func TestKilledHub_C31(t *testing.T) {
	f := alone(t)
	s := f.newSite(t, nil)
	const services, perMember = 8, 2
	var spreads []spread
	for i := range services {
		name := fmt.Sprintf("svc%d", i)
		s.createService(name, selectorless)
		for _, member := range f.names() {
			for j := range perMember {
				s.putSlice(member, name, fmt.Sprintf("%s-%d", name, j))
			}
		}
		spreads = append(spreads, s.all(name))
	}
	h := s.watch(f.members["member2"], &discoveryv1.EndpointSliceList{})
	for _, sp := range spreads {
		s.createMCS(sp.service)
	}
	own := services * perMember
	h.waitState(patience, "the dispatch has begun", func(state map[string]client.Object) error {
		if len(state) < own+3 {
			return fmt.Errorf("member2 has %d slices of others", len(state)-own)
		}
		return nil
	})
	restart := f.killManager(t)
	done := len(h.of(func(e happening) bool { return e.kind == watch.Added }))
	t.Logf("killed when member2 had %d of %d slices of others", done, (len(f.names())-1)*own)
	restart()
	s.waitSpread(spreads...)
	s.waitCollected(spreads...)
	for _, sp := range spreads {
		s.waitReady(sp.service)
		s.waitService(sp.service, f.names()...)
	}
	if deleted := h.deleted(); len(deleted) > 0 {
		t.Errorf("slices disappeared from member2: %v", deleted)
	}

	for _, sp := range spreads {
		s.must(f.hub.Delete(t.Context(), &networkingv1alpha1.MultiClusterService{ObjectMeta: s.meta(sp.service)}))
	}
	h.waitState(patience, "the clean-up has begun", func(state map[string]client.Object) error {
		if len(state) == len(f.names())*own {
			return errors.New("member2 still has every slice")
		}
		return nil
	})
	restart = f.killManager(t)
	t.Logf("killed when %d of %d slices were gone from member2", len(h.deleted()), (len(f.names())-1)*own)
	restart()
	for _, sp := range spreads {
		s.eventually(sp.service+" is gone", func(ctx context.Context) error {
			if _, err := get(ctx, s, f.hub, sp.service, &networkingv1alpha1.MultiClusterService{}); client.IgnoreNotFound(err) != nil || err == nil {
				return fmt.Errorf("it is there (%w)", err)
			}
			return checkGone(ctx, s, sp.service)
		})
	}
}

// C24: what a provider changes while the hub is down is carried out by the next
// one, and no slice that lives disappears at any moment.
func TestRestartedHub_C24(t *testing.T) {
	f := alone(t)
	s := f.newSite(t, nil)
	s.createService("foo", selectorless)
	s.createService("bar")
	for _, name := range []string{"foo-a", "foo-b", "foo-c"} {
		s.putSlice("member1", "foo", name)
	}
	s.putSlice("member2", "foo", "foo-d")
	s.runPods("member3", "bar", 2)
	s.createMCS("foo")
	s.createMCS("bar")
	s.waitOwn("member3", "bar", 2)
	s.waitSpread(s.all("foo"), s.all("bar"))
	s.waitCollected(s.all("foo"), s.all("bar"))

	histories := map[string]*history{}
	for _, member := range f.names() {
		histories[member] = s.watch(f.members[member], &discoveryv1.EndpointSliceList{})
	}
	restart := f.killManager(t)
	s.must(f.members["member1"].Delete(t.Context(), &discoveryv1.EndpointSlice{ObjectMeta: s.meta("foo-a")}))
	s.changeSlice("member1", "foo-b")
	s.putSlice("member2", "foo", "foo-e")
	restart()
	s.waitSpread(s.all("foo"), s.all("bar"))
	s.waitCollected(s.all("foo"), s.all("bar"))
	s.waitReady("foo")
	s.waitReady("bar")

	for member, want := range map[string][]string{
		"member1": {"foo-a"}, "member2": {"member1-foo-a"}, "member3": {"member1-foo-a"},
	} {
		if diff := cmp.Diff(want, histories[member].deleted()); diff != "" {
			t.Errorf("slices that disappeared from %s (- wanted, + found):\n%s", member, diff)
		}
	}
	// Nor did any change that had no reason to.
	changed := histories["member3"].of(func(e happening) bool {
		return e.kind == watch.Modified && s.isDispatchedObject(e.object) && e.object.GetName() != "member1-foo-b"
	})
	for _, e := range changed {
		t.Errorf("slice %s of member3 was written without need", e.object.GetName())
	}
}

// isDispatchedObject says whether a watched slice came from another cluster.
func (s *site) isDispatchedObject(obj client.Object) bool {
	slice, ok := obj.(*discoveryv1.EndpointSlice)
	return ok && s.isDispatched(slice)
}

// C25: the hub starts while a member does not answer. That delays neither the
// start nor any other member, nothing of the silent one is removed anywhere, and
// when it is back it is right within seconds.
func TestSilentMember_C25(t *testing.T) {
	f := alone(t)
	s := f.newSite(t, nil)
	s.createService("foo", selectorless)
	s.createService("new", selectorless)
	for _, member := range f.names() {
		s.putSlice(member, "foo", "foo-a")
		s.putSlice(member, "new", "new-a")
	}
	s.createMCS("foo")
	s.waitSpread(s.all("foo"))
	s.waitReady("foo")

	histories := map[string]*history{}
	for _, member := range f.names() {
		histories[member] = s.watch(f.members[member], &discoveryv1.EndpointSliceList{})
	}
	off := f.fault(t, "member3", "api-unreachable")
	restart := f.killManager(t)
	killed := time.Now()
	s.changeSlice("member1", "foo-a")
	s.changeSlice("member3", "foo-a") // cannot be heard
	s.must(f.members["member2"].Delete(t.Context(), &discoveryv1.EndpointSlice{ObjectMeta: s.meta("foo-a")}))
	restart()

	f.waitLeader(t, killed)
	start := time.Now()
	mcs := s.createMCS("new")
	s.waitAmong("member3", "foo", "new")
	took := time.Since(start)
	t.Logf("right beside a silent member after %s", took.Round(time.Millisecond))
	if took > soon {
		t.Errorf("right beside a silent member after %s, more than %s", took, soon)
	}
	s.waitCondition("foo", networkingv1alpha1.ConditionReady, networkingv1alpha1.ReasonClusterUnreachable, "member3")
	// Of the new one, the Service is missing there too, which may be told first.
	s.waitCondition("new", networkingv1alpha1.ConditionReady, "", "member3")
	for _, name := range []string{"foo", "new"} {
		s.waitCluster(name, "member3", networkingv1alpha1.ReasonClusterUnreachable)
	}
	s.waitEvent(mcs.UID, networkingv1alpha1.EventDispatchEndpointSliceFailed, "member3")

	for member, want := range map[string][]string{"member1": {"member2-foo-a"}, "member2": {"foo-a"}, "member3": nil} {
		if diff := cmp.Diff(want, histories[member].deleted()); diff != "" {
			t.Errorf("slices that disappeared from %s (- wanted, + found):\n%s", member, diff)
		}
	}

	off()
	start = time.Now()
	s.waitSpread(s.all("foo"), s.all("new"))
	took = time.Since(start)
	t.Logf("the member that was silent is right after %s", took.Round(time.Millisecond))
	if took > 2*soon {
		t.Errorf("the member that was silent is right after %s, more than %s", took, 2*soon)
	}
	s.waitReady("foo")
	s.waitReady("new")
	if diff := cmp.Diff([]string{"member2-foo-a"}, histories["member3"].deleted()); diff != "" {
		t.Errorf("slices that disappeared from member3 in the end (- wanted, + found):\n%s", diff)
	}
}

// waitCluster waits until the status tells this of one cluster.
func (s *site) waitCluster(name, cluster, reason string) {
	s.t.Helper()
	s.eventually(fmt.Sprintf("status of %s in %s", name, cluster), func(ctx context.Context) error {
		mcs, err := get(ctx, s, s.hub, name, &networkingv1alpha1.MultiClusterService{})
		if err != nil {
			return err
		}
		for _, c := range mcs.Status.Clusters {
			if c.Name == cluster && c.Reason == reason {
				return nil
			}
		}
		return fmt.Errorf("it is %+v", mcs.Status.Clusters)
	})
}

// waitAmong waits until the members but one hold each other's slices, and of
// that one something.
func (s *site) waitAmong(silent string, services ...string) {
	s.t.Helper()
	var others []string
	for _, name := range s.names() {
		if name != silent {
			others = append(others, name)
		}
	}
	s.eventually("spread among "+fmt.Sprint(others), func(ctx context.Context) error {
		for _, consumer := range others {
			for _, service := range services {
				if err := s.checkFrom(ctx, service, consumer, others); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// checkFrom compares what a consumer holds of some providers.
func (s *site) checkFrom(ctx context.Context, service, consumer string, providers []string) error {
	mcs, err := get(ctx, s, s.hub, service, &networkingv1alpha1.MultiClusterService{})
	if err != nil {
		return err
	}
	want, got := map[string]sliceContent{}, map[string]sliceContent{}
	_, dispatched, err := s.slicesIn(ctx, consumer, service)
	if err != nil {
		return err
	}
	for _, provider := range providers {
		own, _, err := s.slicesIn(ctx, provider, service)
		if err != nil {
			return err
		}
		for name, slice := range own {
			if provider != consumer {
				want[provider+"-"+name] = wantContent(slice, provider, mcs)
			}
		}
		for name, slice := range dispatched {
			if slice.Annotations[networkingv1alpha1.ProvisionClusterAnnotation] == provider && slice.Labels[discoveryv1.LabelServiceName] == service {
				got[name] = contentOf(slice)
			}
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		return fmt.Errorf("%s of %s (- wanted, + found):\n%s", service, consumer, diff)
	}
	return nil
}

// C26: a member's API server is down. What it gave stays everywhere; when it is
// back, it hears what it missed, and is heard.
func TestMemberDown_C26(t *testing.T) {
	f := alone(t)
	s := f.newSite(t, nil)
	s.createService("foo", selectorless)
	for _, member := range f.names() {
		s.putSlice(member, "foo", "foo-a")
	}
	s.createMCS("foo")
	s.waitSpread(s.all("foo"))
	s.waitReady("foo")
	histories := map[string]*history{}
	for _, member := range []string{"member1", "member3"} {
		histories[member] = s.watch(f.members[member], &discoveryv1.EndpointSliceList{})
	}

	off := f.fault(t, "member2", apiDown)
	s.waitCondition("foo", networkingv1alpha1.ConditionReady, networkingv1alpha1.ReasonClusterUnreachable, "member2")
	s.changeSlice("member1", "foo-a")
	within(t, soon, "member3 hears of member1", func(ctx context.Context) error {
		return s.checkFrom(ctx, "foo", "member3", []string{"member1", "member3"})
	})
	for member, h := range histories {
		if deleted := h.deleted(); len(deleted) > 0 {
			t.Errorf("slices disappeared from %s: %v", member, deleted)
		}
		_, dispatched, err := s.slicesIn(t.Context(), member, "foo")
		s.must(err)
		if dispatched["member2-foo-a"] == nil {
			t.Errorf("%s has lost the slice of member2", member)
		}
	}

	off()
	s.changeSlice("member2", "foo-a")
	start := time.Now()
	s.waitSpread(s.all("foo"))
	t.Logf("right after %s", time.Since(start).Round(time.Millisecond))
	s.waitReady("foo")
	for member, h := range histories {
		if deleted := h.deleted(); len(deleted) > 0 {
			t.Errorf("slices disappeared from %s: %v", member, deleted)
		}
	}
}
