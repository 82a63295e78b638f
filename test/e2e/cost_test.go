package e2e

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"

	networkingv1alpha1 "github.com/namesake-io/namesake/api/networking/v1alpha1"
)

// bill is what was written to each API server, but for what clusters write by
// themselves.
type bill struct {
	hub, slices, services, others requests
}

// spent returns what was written since an earlier count, once all is quiet.
func spent(t *testing.T, f *fleet, before map[string]requests) bill {
	t.Helper()
	waitQuiet(t, f)
	b := bill{hub: requests{}, slices: requests{}, services: requests{}, others: requests{}}
	for name, counts := range countAll(t, f) {
		for kind, n := range counts.writesSince(before[name]).byUs(name) {
			into := b.others
			switch {
			case name == hubName:
				into = b.hub
			case kind.resource == "endpointslices":
				into = b.slices
			case kind.resource == "services":
				into = b.services
			}
			into[kind] += n
		}
	}
	return b
}

// total of all counts.
func (r requests) total() (sum float64) {
	for _, n := range r {
		sum += n
	}
	return sum
}

// What a service costs: that it comes, that an endpoint changes, that the hub is
// started again, and that nothing happens. Writes are counted and not timed, so
// this holds on any machine; what goes up here, everybody pays. An agent is told by
// Works, and says on them what it did: that comes on top for each.
func TestCost(t *testing.T) {
	f := alone(t)
	s := servedEverywhere(t, f, "foo", "bar")
	n, agents := float64(len(f.members)), float64(len(f.pull))
	waitQuiet(t, f)

	t.Run("the wish for a service", func(t *testing.T) {
		before := countAll(t, f)
		s.createMCS("foo")
		s.waitSpread(s.all("foo"))
		s.waitReady("foo")
		b := spent(t, f, before)
		t.Logf("hub: %s; members: %s, %s", b.hub, b.slices, b.services)
		// One of them is our own.
		if limit := 3*n + 10 + 5*agents; b.hub.total()-1 > limit {
			t.Errorf("%g writes on the hub, want at most %g: %s", b.hub.total()-1, limit, b.hub)
		}
		// Each member gets what it lacks, by one write each: that is the floor.
		if b.slices.total() != n*(n-1) || b.services.total() != n || len(b.others) > 0 {
			t.Errorf("want %g writes of slices and %g of Services in members, and no other, got %s; %s; %s",
				n*(n-1), n, b.slices, b.services, b.others)
		}
	})

	t.Run("a change of one endpoint", func(t *testing.T) {
		const changes = 10
		before := countAll(t, f)
		for range changes {
			s.changeSlice("member1", "foo-a")
			s.waitSpread(s.all("foo"))
			s.waitCollected(s.all("foo"))
		}
		b := spent(t, f, before)
		t.Logf("hub: %s; members: %s", b.hub, b.slices)
		// The hub's memory, and nothing else: the status is as it was.
		if want := changes * (1 + 2*agents); b.hub.total() != want || b.hub.of("works") != want {
			t.Errorf("want %g writes of Works on the hub, and no other, got %s", want, b.hub)
		}
		// One of them is our own.
		if b.slices.total() != changes*n || len(b.services)+len(b.others) > 0 {
			t.Errorf("want %g writes of slices in members, and no other, got %s; %s; %s", changes*n, b.slices, b.services, b.others)
		}
	})

	t.Run("a change that the status tells", func(t *testing.T) {
		before := countAll(t, f)
		slice := s.newSlice("foo", "foo-more", newAddress(), newAddress())
		s.must(f.members["member2"].Create(t.Context(), slice))
		s.waitSpread(s.all("foo"))
		s.eventually("the status counts three endpoints", func(ctx context.Context) error {
			return s.checkCollectedEndpoints(ctx, "foo", "member2", 3)
		})
		b := spent(t, f, before)
		t.Logf("hub: %s; members: %s", b.hub, b.slices)
		if limit := 2 + 2*agents; b.hub.total() > limit || b.slices.total() != n {
			t.Errorf("want at most %g writes on the hub and %g in members, got %s; %s", limit, n, b.hub, b.slices)
		}
	})

	t.Run("a start after a kill", func(t *testing.T) {
		told := statuses(t, f)
		before, at := countAll(t, f), time.Now()
		f.killManager(t)()
		f.waitLeader(t, at)
		if b := spent(t, f, before); len(b.hub)+len(b.slices)+len(b.services)+len(b.others) > 0 {
			t.Errorf("nothing has changed, and yet there were writes: hub %s; members %s; %s; %s\nstatus (-before +after):\n%s",
				b.hub, b.slices, b.services, b.others, cmp.Diff(told, statuses(t, f)))
		}
		// It works, too.
		s.createMCS("bar", from("member1"))
		s.waitReady("bar")
	})

	t.Run("rest", func(t *testing.T) {
		waitQuiet(t, f)
		before := countAll(t, f)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		<-ctx.Done()
		after := countAll(t, f)
		for name, counts := range after {
			if writes := counts.writesSince(before[name]).byUs(name); len(writes) > 0 {
				t.Errorf("%s was written to: %s", name, writes)
			}
		}
		// A watch lasts for five to ten minutes. Of a dozen, one or two may end just now.
		if ended := after[hubName].watchesSince(before[hubName]); ended > 4 {
			t.Errorf("%g watches on the hub have ended in ten seconds", ended)
		}
	})
}

// statuses returns the status of every MultiClusterService.
func statuses(t *testing.T, f *fleet) map[string]networkingv1alpha1.MultiClusterServiceStatus {
	t.Helper()
	list := &networkingv1alpha1.MultiClusterServiceList{}
	if err := f.hub.List(t.Context(), list); err != nil {
		t.Fatal(err)
	}
	out := map[string]networkingv1alpha1.MultiClusterServiceStatus{}
	for i := range list.Items {
		out[client.ObjectKeyFromObject(&list.Items[i]).String()] = list.Items[i].Status
	}
	return out
}

// checkCollectedEndpoints says whether the status counts so many endpoints of a
// provider.
func (s *site) checkCollectedEndpoints(ctx context.Context, service, member string, want int32) error {
	mcs, err := get(ctx, s, s.hub, service, &networkingv1alpha1.MultiClusterService{})
	if err != nil {
		return err
	}
	for i := range mcs.Status.Clusters {
		if c := &mcs.Status.Clusters[i]; c.Name == member && c.CollectedEndpoints != want {
			return fmt.Errorf("%s has %d endpoints, want %d", member, c.CollectedEndpoints, want)
		}
	}
	return nil
}
