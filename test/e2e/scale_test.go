package e2e

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// convergeLimit is how long 20 services over five members may take, from the
	// last wish.
	convergeLimit = 10 * time.Second
	// restPeriod is how long a hub at rest is listened to.
	restPeriod = 2 * time.Minute
)

// Twenty services of five members, all to all, converge within a few seconds.
// Thirty more come, and from then on the hub and the members are written to no
// more: no status, no slice, no event. The fleet is one of its own, with default
// settings.
func TestFiftyServicesFiveMembers(t *testing.T) {
	f, s, spreads := converge(t)
	spreads = append(spreads, s.serveEverywhere(len(spreads), 50)...)
	for _, sp := range spreads[20:] {
		s.createMCS(sp.service)
	}
	for _, sp := range spreads[20:] {
		s.waitReady(sp.service)
	}
	s.waitSpread(spreads...)
	waitQuiet(t, f)
	// Tests that have not said that they are parallel run first, one at a time:
	// until here nothing else ran. The others may go on while this one listens.
	t.Parallel()
	before := countAll(t, f)
	ctx, cancel := context.WithTimeout(t.Context(), restPeriod)
	defer cancel()
	<-ctx.Done()
	if err := t.Context().Err(); err != nil {
		t.Fatal(err)
	}
	for name, counts := range countAll(t, f) {
		writes := counts.writesSince(before[name])
		if name == hubName {
			t.Logf("leases of the hub in %s: %g writes", restPeriod, writes.of("leases"))
		}
		if others := writes.byUs(name); len(others) > 0 {
			t.Errorf("%s was written to in %s of rest: %s", name, restPeriod, others)
		}
	}
	s.must(s.checkSpread(t.Context(), spreads...))
}

// serveEverywhere makes services by number, with a slice in every member.
func (s *site) serveEverywhere(first, end int) (spreads []spread) {
	s.t.Helper()
	for i := first; i < end; i++ {
		name := fmt.Sprintf("svc%02d", i)
		s.createService(name, selectorless)
		for _, member := range s.names() {
			s.putSlice(member, name, name+"-a")
		}
		spreads = append(spreads, s.all(name))
	}
	return spreads
}

// converge starts a fleet and measures.
func converge(t *testing.T) (*fleet, *site, []spread) {
	t.Helper()
	const services = 20
	f := apart(t, fleetOptions{members: 5}.mixed())
	s := f.newSite(t, nil)
	spreads := s.serveEverywhere(0, services)
	histories := map[string]*history{}
	for _, member := range f.names() {
		histories[member] = s.watch(f.members[member], &discoveryv1.EndpointSliceList{})
	}

	first := time.Now()
	for _, sp := range spreads {
		s.createMCS(sp.service)
	}
	last := time.Now()
	var end time.Time
	for _, h := range histories {
		at := h.waitState(patience, "every slice has come", func(state map[string]client.Object) error {
			if len(state) != services*len(f.names()) {
				return fmt.Errorf("%d slices, want %d", len(state), services*len(f.names()))
			}
			return nil
		})
		if at.After(end) {
			end = at
		}
	}
	took := max(end.Sub(last), 0)
	t.Logf("%d services over %d members: every slice in place %s after the last wish (%s after the first)",
		services, len(f.names()), took.Round(time.Millisecond), end.Sub(first).Round(time.Millisecond))
	if took > convergeLimit {
		t.Errorf("%s is more than %s", took, convergeLimit)
	}
	s.waitSpread(spreads...)
	s.waitCollected(spreads...)
	for _, sp := range spreads {
		s.waitService(sp.service, f.names()...)
		s.waitReady(sp.service)
	}
	t.Logf("and every status says so %s after the last wish", time.Since(last).Round(time.Millisecond))
	waitQuiet(t, f)
	return f, s, spreads
}

// waitQuiet waits until two counts, a moment apart, are of the same writes: what
// is left to be done after a start is done.
func waitQuiet(t *testing.T, f *fleet) {
	t.Helper()
	const moment = 3 * time.Second
	last, since := countAll(t, f), time.Now()
	within(t, patience, "quiet", func(context.Context) error {
		now := countAll(t, f)
		for name, counts := range now {
			if writes := counts.writesSince(last[name]).byUs(name); len(writes) > 0 {
				last, since = now, time.Now()
				return fmt.Errorf("%s: %s", name, writes)
			}
		}
		if time.Since(since) < moment {
			return errors.New("not for long enough")
		}
		return nil
	})
}

// countAll counts the requests of every API server of a fleet.
func countAll(t *testing.T, f *fleet) map[string]requests {
	t.Helper()
	out := map[string]requests{}
	for _, c := range f.clusters() {
		counts, err := countRequests(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		out[c.name] = counts
	}
	return out
}
