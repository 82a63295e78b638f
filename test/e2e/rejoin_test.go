package e2e

import (
	"context"
	"flag"
	"fmt"
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
	goroutines, connections int
	memory                  float64 // MB
}

func (f *fleet) footprint(t *testing.T) footprint {
	t.Helper()
	m := f.managerMetrics(t)
	return footprint{
		goroutines: int(m.one("go_goroutines")), connections: connections(t, f.component(t, hubManager).PID), memory: m.memory(),
	}
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
	before, start := f.footprint(t), time.Now()
	for range *roundsFlag {
		serve()
	}
	took := time.Since(start)

	// What ends takes a moment. Memory is given back by and by, which comes to 20 MB
	// more or less; what is left of a member beside its goroutines and connections
	// would be its slices and the kinds that it serves.
	limit := footprint{before.goroutines + 3, before.connections + 2, before.memory + 20 + 0.5*float64(*roundsFlag)}
	within(t, patience, "all is as before", func(context.Context) error {
		now := f.footprint(t)
		if now.goroutines > limit.goroutines || now.connections > limit.connections || now.memory > limit.memory {
			return fmt.Errorf("%+v before, %+v after %d rounds, want at most %+v", before, now, *roundsFlag, limit)
		}
		return nil
	})
	t.Logf("%d rounds in %s: %+v before, %+v after", *roundsFlag, took.Round(time.Millisecond), before, f.footprint(t))
}
