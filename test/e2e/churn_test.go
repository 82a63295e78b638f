package e2e

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// churnFlag: `make test-e2e TESTFLAGS='-run C35 -e2e.churn=1m'` is the measure of
// the case.
var churnFlag = flag.Duration("e2e.churn", 15*time.Second, "how long fifty services change each second")

// C35: fifty services change each second. Everything keeps up: no queue grows, and
// when it ends the last state stands everywhere within seconds.
func TestChurn_C35(t *testing.T) {
	const count, every = 50, time.Second
	f := alone(t)
	s := f.newSite(t, nil)
	spreads := s.serveEverywhere(0, count)
	for _, sp := range spreads {
		s.createMCS(sp.service)
	}
	s.waitSpread(spreads...)
	for _, sp := range spreads {
		s.waitReady(sp.service)
	}
	waitQuiet(t, f)

	deepest := map[string]float64{}
	before, start, rounds := f.managerMetrics(t), time.Now(), 0
	err := wait.PollUntilContextTimeout(t.Context(), every, 2**churnFlag+patience, true, func(context.Context) (bool, error) {
		rounds++
		for i, sp := range spreads {
			s.moveSlice(f.names()[(i+rounds)%len(f.names())], sp.service+"-a")
		}
		for queue, depth := range f.managerMetrics(t).depths() {
			deepest[queue] = max(deepest[queue], depth)
		}
		return time.Since(start) > *churnFlag, nil
	})
	s.must(err)
	end := time.Now()
	// Agents share the machine, and make requests of their own.
	s.waitSpreadWithin(soon*time.Duration(1+len(f.pull)), spreads...)
	t.Logf("%d changes of %d services in %s: the last state everywhere %s after the last change",
		rounds*count, count, end.Sub(start).Round(time.Millisecond), time.Since(end).Round(time.Millisecond))
	s.waitCollected(spreads...)
	for _, sp := range spreads {
		s.waitReady(sp.service)
	}
	waitQuiet(t, f)

	// A queue holds each key once: it cannot outgrow what there is of its kind. The
	// largest kind is Works: of the Service and of the slices of each member.
	for _, queue := range slices.Sorted(maps.Keys(deepest)) {
		if limit := float64(2 * count); deepest[queue] > limit {
			t.Errorf("queue %s was %g deep, want at most %g", queue, deepest[queue], limit)
		}
	}
	after := f.managerMetrics(t)
	t.Logf("deepest queues %v; memory %.0f MB before, %.0f MB after", deepest, before.memory(), after.memory())
	for queue, depth := range after.depths() {
		if depth > 0 {
			t.Errorf("queue %s still holds %g", queue, depth)
		}
	}
	const retries = "namesake_queue_retries_total"
	for controller, n := range after.by(retries, "controller") {
		// A retry is a write that met another: now and then.
		if more := n - before.by(retries, "controller")[controller]; more > float64(rounds*count)/10 {
			t.Errorf("%s tried again %g times in %d changes", controller, more, rounds*count)
		}
	}
	s.must(s.checkSpread(t.Context(), spreads...))
}

// depths of all queues: of the hub's controllers by name, and of those that work in
// members by name and member.
func (m managerMetrics) depths() map[string]float64 {
	out := m.by("workqueue_depth", "name")
	for _, s := range m {
		if s.name == "namesake_queue_depth" {
			out[s.labels["controller"]+"/"+s.labels["member"]] = s.value
		}
	}
	return out
}

// moveSlice gives a slice of one endpoint another address, by one request.
func (s *site) moveSlice(member, name string) {
	s.t.Helper()
	patch := fmt.Sprintf(`{"endpoints":[{"addresses":[%q],"conditions":{"ready":true}}]}`, newAddress())
	slice := &discoveryv1.EndpointSlice{ObjectMeta: s.meta(name)}
	s.must(s.members[member].Patch(s.t.Context(), slice, client.RawPatch(types.MergePatchType, []byte(patch))))
}
