package e2e

import (
	"context"
	"flag"
	"fmt"
	"testing"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// awayFlag: `make test-e2e TESTFLAGS='-run Return -e2e.away=100s'` is the measure. By
// default it is long enough for every back-off that could delay the return to have
// grown to its end or near it: those of client-go double from 0.8 s up to 30 s, which
// takes 25 s, and ours of queues are at 25 s after 51 s. So what comes back only when
// such a wait is over would be late by ten seconds or more, against two that are
// allowed.
var awayFlag = flag.Duration("e2e.away", 45*time.Second, "how long members are away")

// returnLimit is how long it may take from a member's /readyz until what it missed is
// in it, and what it changed is everywhere.
const returnLimit = 2 * time.Second

// absence is a way to be away for long: commands of the sandbox.
type absence struct {
	name, member string
	begin, end   []string
}

// C26: members that were away for long are as if they had never been, within two
// seconds of their return: killed, stopped or cut off. What they missed is in them,
// what they change is everywhere, and nobody lost anything meanwhile.
func TestReturn_C26(t *testing.T) {
	f := apart(t, fleetOptions{members: 4}.mixed())
	t.Parallel()
	absences := []absence{
		{"killed", "member2", []string{"kill", "member2-apiserver"}, []string{"restart", "member2-apiserver"}},
		{"stopped", "member3", []string{"stop", "member3-apiserver"}, []string{"cont", "member3-apiserver"}},
		{"cut off", "member4", []string{"fault", "member4", "api-unreachable", "on"}, []string{"fault", "member4", "api-unreachable", "off"}},
	}
	s := servedEverywhere(t, f, "foo")
	s.createMCS("foo")
	s.waitSpread(s.all("foo"))
	s.waitReady("foo")
	at1 := s.watch(f.members["member1"], &discoveryv1.EndpointSliceList{})

	for _, a := range absences {
		f.sandbox(t, a.begin[0], a.begin[1:]...)
	}
	missed := s.changeSlice("member1", "foo-a")
	fresh := s.putSlice("member1", "foo", "foo-b").Endpoints[0].Addresses[0]
	away, cancel := context.WithTimeout(t.Context(), *awayFlag)
	defer cancel()
	<-away.Done()
	if lost := at1.deleted(); len(lost) > 0 {
		t.Errorf("slices that disappeared from member1 meanwhile: %v", lost)
	}

	// From here on it counts how long things take.
	turn.Lock()
	defer turn.Unlock()
	for _, a := range absences {
		t.Run(a.name, func(t *testing.T) { s.comesBack(t, a, at1, missed, fresh) })
	}
	s.waitSpread(s.all("foo"))
	s.waitCollected(s.all("foo"))
	s.waitReady("foo")
	if lost := at1.deleted(); len(lost) > 0 {
		t.Errorf("slices that disappeared from member1 in the end: %v", lost)
	}
}

// comesBack ends an absence and measures from the first /readyz on.
func (s *site) comesBack(t *testing.T, a absence, at1 *history, missed ...string) {
	t.Helper()
	c := s.members[a.member]
	ended := make(chan error, 1)
	go func() {
		_, err := s.run(context.WithoutCancel(t.Context()), "sandbox", append([]string{a.end[0], "--dir", s.dir}, a.end[1:]...)...)
		ended <- err
	}()
	within(t, patience, a.member+" is ready", func(ctx context.Context) error { return ready(ctx, c) })
	if a.name == "cut off" {
		s.must(<-ended) // it was ready all the time
		ended <- nil
	}
	start := time.Now()
	changed := s.changeSlice(a.member, "foo-a")
	heard := at1.waitState(patience, "member1 has what "+a.member+" changed", func(state map[string]client.Object) error {
		return holds(state, changed)
	})
	var caughtUp time.Time
	within(t, patience, a.member+" has what it missed", func(ctx context.Context) error {
		list := &discoveryv1.EndpointSliceList{}
		if err := c.List(ctx, list, client.InNamespace(s.ns)); err != nil {
			return err
		}
		state := map[string]client.Object{}
		for i := range list.Items {
			state[list.Items[i].Name] = &list.Items[i]
		}
		caughtUp = time.Now()
		return holds(state, missed...)
	})
	s.must(<-ended)
	t.Logf("%s for %s: from its /readyz, what it changed is in member1 after %s, what it missed in it after %s at most",
		a.name, *awayFlag, heard.Sub(start).Round(time.Millisecond), caughtUp.Sub(start).Round(time.Millisecond))
	if heard.Sub(start) > returnLimit || caughtUp.Sub(start) > returnLimit {
		t.Errorf("more than %s", returnLimit)
	}
}

// ready asks an API server whether it is.
func ready(ctx context.Context, c *cluster) error {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	set, err := kubernetes.NewForConfig(c.config)
	if err != nil {
		return err
	}
	return set.Discovery().RESTClient().Get().AbsPath("/readyz").Do(ctx).Error()
}

// holds wants endpoints with these addresses.
func holds(state map[string]client.Object, addresses ...string) error {
	have := map[string]bool{}
	for _, obj := range state {
		if slice, ok := obj.(*discoveryv1.EndpointSlice); ok {
			for i := range slice.Endpoints {
				have[slice.Endpoints[i].Addresses[0]] = true
			}
		}
	}
	for _, address := range addresses {
		if !have[address] {
			return fmt.Errorf("%s is not there", address)
		}
	}
	return nil
}
