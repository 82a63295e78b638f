package e2e

import (
	"context"
	"flag"
	"fmt"
	"net/url"
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// roundsFlag: `make test-e2e TESTFLAGS='-run Rejoin -e2e.rejoins=50'` is the measure.
var roundsFlag = flag.Int("e2e.rejoins", 20, "how often a member joins and leaves again")

// footprint is what the controller-manager takes up.
type footprint struct {
	goroutines int
	heap       float64 // MB
	// connections to the guest.
	connections int
}

func (f *fleet) footprint(t *testing.T, guest *guest) (footprint, error) {
	t.Helper()
	endpoint, err := url.Parse(guest.cluster.Spec.APIEndpoint)
	if err != nil {
		return footprint{}, err
	}
	port, err := strconv.Atoi(endpoint.Port())
	if err != nil {
		return footprint{}, err
	}
	m := f.managerMetrics(t)
	out := footprint{goroutines: int(m.one("go_goroutines")), heap: m.liveHeap()}
	out.connections, err = connections(f.component(t, hubManager).PID, port)
	return out, err
}

// C29: a member joins and leaves again and again. Each time it is served, and when
// it has left nothing of it stays in the hub's process: no goroutine, no connection
// and so no watch, no memory.
func TestRejoin_C29(t *testing.T) {
	const warmUp = 5
	f := alone(t)
	g := newGuest(t, f, "guest", map[string]string{"endpoint-reconciler-type": "none"})
	s := servedEverywhere(t, f, "foo")
	s.createMCS("foo")
	s.waitReady("foo")
	joins := 0
	serve := func() {
		// An execution namespace takes five seconds to go; so names take turns.
		joins++
		g.rename(fmt.Sprintf("guest%d", joins%10))
		g.join()
		s.eventually("the guest is served", func(ctx context.Context) error {
			if err := g.Get(ctx, client.ObjectKey{Namespace: s.ns, Name: "foo"}, &corev1.Service{}); err != nil {
				return err
			}
			list := &discoveryv1.EndpointSliceList{}
			if err := g.List(ctx, list, client.InNamespace(s.ns)); err != nil {
				return err
			}
			if len(list.Items) != len(f.names()) {
				return fmt.Errorf("it has %d slices, want %d", len(list.Items), len(f.names()))
			}
			return nil
		})
		g.leave()
	}
	for range warmUp {
		serve()
	}
	before, err := f.footprint(t, g)
	s.must(err)
	start := time.Now()
	for range *roundsFlag {
		serve()
	}
	took := time.Since(start)

	// What each round would leave behind of itself comes to more than this, and what
	// comes and goes beside it to less.
	limit := footprint{goroutines: before.goroutines + *roundsFlag/2, heap: before.heap + 5 + 0.25*float64(*roundsFlag)}
	var after footprint
	s.eventually("all is as before", func(context.Context) error {
		if after, err = f.footprint(t, g); err != nil {
			return err
		}
		if after.goroutines > limit.goroutines || after.connections > limit.connections || after.heap > limit.heap {
			return fmt.Errorf("%+v before, %+v after %d rounds, want at most %+v", before, after, *roundsFlag, limit)
		}
		return nil
	})
	t.Logf("%d rounds in %s: %+v before, %+v after", *roundsFlag, took.Round(time.Millisecond), before, after)
}
