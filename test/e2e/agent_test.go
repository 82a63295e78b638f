package e2e

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/namesake-io/namesake/api/cluster/v1alpha1"
	networkingv1alpha1 "github.com/namesake-io/namesake/api/networking/v1alpha1"
)

// A member's agent is killed, and later stopped, and the hub dies beside it. What
// stands stays, in the member and of it elsewhere; what changes meanwhile is carried
// out when agent and hub are back, and that takes no longer than for a member that
// the hub calls itself. The fleet is one of its own: one member of each kind.
func TestAgent(t *testing.T) {
	o := usualFleet()
	o.members, o.pull = 2, []string{"member2"}
	f := apart(t, o)
	t.Parallel()
	s := servedEverywhere(t, f, "foo")
	s.createMCS("foo")
	s.waitSpread(s.all("foo"))
	s.waitService("foo", f.names()...)
	s.waitReady("foo")
	s.waitCollected(s.all("foo"))
	histories := map[string]*history{}
	for _, member := range f.names() {
		histories[member] = s.watch(f.members[member], &discoveryv1.EndpointSliceList{})
	}
	for _, absence := range []struct {
		name       string
		begin, end []string
	}{
		{"killed", []string{"kill", "member2-agent"}, []string{"restart", "member2-agent"}},
		{"stopped", []string{"stop", "member2-agent"}, []string{"cont", "member2-agent"}},
		{"cut off", []string{"fault", "member2", "api-unreachable", "on"}, []string{"fault", "member2", "api-unreachable", "off"}},
	} {
		s.away(absence.name, func() { f.sandbox(t, absence.begin[0], absence.begin[1:]...) },
			func() { f.sandbox(t, absence.end[0], absence.end[1:]...) })
	}
	for member, h := range histories {
		if deleted := h.deleted(); len(deleted) > 0 {
			t.Errorf("slices disappeared from %s: %v", member, deleted)
		}
	}

	// Both at once: the agent works on what it was given last, and the hub finds
	// out by itself what it missed.
	restart := f.killManager(t)
	s.must(f.members["member2"].Delete(t.Context(), &discoveryv1.EndpointSlice{ObjectMeta: s.meta("member1-foo-a")}))
	s.eventually("the agent undoes an edit without the hub", func(ctx context.Context) error {
		_, err := get(ctx, s, f.members["member2"], "member1-foo-a", &discoveryv1.EndpointSlice{})
		return err
	})
	s.changeSlice("member2", "foo-a")
	restart()
	s.waitSpread(s.all("foo"))
	s.waitReady("foo")
}

// away lets member2's agent be away, changes what it has to do with, and lets it
// come back.
func (s *site) away(what string, begin, end func()) {
	s.t.Helper()
	begin()
	s.waitClusterReady("member2", clusterv1alpha1.ReasonAgentSilent)
	s.waitCondition("foo", networkingv1alpha1.ConditionReady, networkingv1alpha1.ReasonClusterUnreachable, "member2")
	s.changeSlice("member1", "foo-a")
	s.changeSlice("member2", "foo-a")
	end()
	start := time.Now()
	s.waitSpread(s.all("foo"))
	s.t.Logf("%s: right %s after the return", what, time.Since(start).Round(time.Millisecond))
	s.waitClusterReady("member2", clusterv1alpha1.ReasonClusterReady)
	s.waitReady("foo")
}

// waitClusterReady waits until a Cluster's condition Ready has this reason.
func (s *site) waitClusterReady(name, reason string) {
	s.t.Helper()
	s.eventually("Cluster "+name, func(ctx context.Context) error {
		c := &clusterv1alpha1.Cluster{}
		if err := s.hub.Get(ctx, client.ObjectKey{Name: name}, c); err != nil {
			return err
		}
		ready := meta.FindStatusCondition(c.Status.Conditions, clusterv1alpha1.ConditionReady)
		if ready == nil {
			return errors.New("it has no condition Ready")
		}
		if ready.Reason != reason {
			return fmt.Errorf("Ready is %s, %s: %s", ready.Status, ready.Reason, ready.Message)
		}
		return nil
	})
}
