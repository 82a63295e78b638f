package chaos

import (
	"flag"
	"fmt"
	"testing"
	"time"
)

var (
	seedFlag     = flag.Uint64("chaos.seed", 0, "run the round of this seed, and those that follow")
	durationFlag = flag.Duration("chaos.duration", 0, "go on with rounds for so long")
	membersFlag  = flag.Int("chaos.members", 3, "members of the fleet")
	stepsFlag    = flag.Int("chaos.steps", 80, "steps of a round")
	boundFlag    = flag.Duration("chaos.bound", 5*time.Second, "undisturbed time that the hub has to follow a deed")
	restFlag     = flag.Duration("chaos.rest", 10*time.Second, "how long nothing may be written at the end of a round")
)

// seeds are run where none is asked for: the first ones for all, others because they
// found something once.
var seeds = []uint64{1}

// shortSteps is how many steps of them. A round of more begins with the same.
const shortSteps = 30

// TestChaos breaks things at random, and finds nothing.
func TestChaos(t *testing.T) {
	f, err := startFleet(t.Context(), *membersFlag)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.down(); err != nil {
			t.Error(err)
		}
	})
	opts := options{steps: *stepsFlag, bound: *boundFlag, rest: *restFlag}
	run := func(seed uint64) bool {
		begun := time.Now()
		return t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			runRound(t, f, seed, opts)
			t.Logf("took %s", time.Since(begun).Round(time.Second))
		})
	}
	if *seedFlag == 0 {
		opts.steps, opts.rest = shortSteps, moment
		for _, s := range seeds {
			if !run(s) {
				return
			}
		}
		return
	}
	begun := time.Now()
	for next := *seedFlag; ; next++ {
		if !run(next) || time.Since(begun) >= *durationFlag {
			return
		}
	}
}
