package e2e

import (
	"testing"
	"time"
)

// C25: a member hangs, which nobody knows yet: its API server takes requests and
// answers none. Services that are new, of which it has slices too, are right among
// the others within seconds all the same, and with it when it goes on.
func TestHangingMember_C25(t *testing.T) {
	f := alone(t)
	s := servedEverywhere(t, f, "foo", "bar")

	goOn := f.hang(t, "member3")
	s.createMCS("foo")
	s.createMCS("bar")
	start := time.Now()
	s.waitAmong("member3", "foo", "bar")
	took := time.Since(start)
	t.Logf("right beside a member that hangs after %s", took.Round(time.Millisecond))
	// Before it counts as silent, which takes two probes.
	if limit := soon / 2; took > limit {
		t.Errorf("right beside a member that hangs after %s, more than %s", took, limit)
	}
	goOn()
	s.waitSpread(s.all("foo"), s.all("bar"))
	s.waitService("foo", f.names()...)
	s.waitReady("foo")
	s.waitReady("bar")
}
