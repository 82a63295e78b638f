package e2e

import (
	"context"
	"flag"
	"fmt"
	"os"
	"strconv"
	"sync"
	"testing"
)

// theFleet has three members. Its hub is told to call a member silent sooner than
// by default, and gives up a lease sooner, so that tests need not wait.
var theFleet *fleet

// theThree are the members that every fleet of the tests has, for what is known by
// name or number.
var theThree = []string{"member1", "member2", "member3"}

// turn is held by tests that run: shared by those that may run together, of which
// there are as many as seats.
var (
	turn  sync.RWMutex
	seats = make(chan struct{}, 8)
)

func TestMain(m *testing.M) {
	flag.Parse()
	// Tests wait more than they work, and those that wait for their turn must not
	// keep others from running, nor the parts of a test whose turn it is.
	if !isSet("test.parallel") {
		if err := flag.Set("test.parallel", "1000"); err != nil {
			panic(err)
		}
	}
	os.Exit(run(m))
}

func isSet(name string) (set bool) {
	flag.Visit(func(f *flag.Flag) { set = set || f.Name == name })
	return set
}

func run(m *testing.M) (code int) {
	p, err := findPrograms()
	if err == nil {
		theFleet, err = startFleet(context.Background(), p, usualFleet())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "FAIL:", err)
		return 1
	}
	code = m.Run()
	if code != 0 {
		fmt.Fprintln(os.Stderr, theFleet.logTails())
	}
	if err := theFleet.down(); err != nil {
		fmt.Fprintln(os.Stderr, "FAIL:", err)
		return 1
	}
	return code
}

// usualFleet is what theFleet is made of.
func usualFleet() fleetOptions {
	o := fleetOptions{
		members: 3,
		managerArgs: []string{
			"--cluster-status-update-frequency=2s", "--cluster-failure-threshold=4s", "--cluster-success-threshold=1s",
			"--cluster-monitor-grace-period=6s",
			"--leader-elect-lease-duration=8s", "--leader-elect-renew-deadline=6s", "--leader-elect-retry-period=1s",
			"--cluster-node-summary",
		},
		agentArgs: []string{
			"--cluster-status-update-frequency=2s", "--cluster-failure-threshold=4s", "--cluster-success-threshold=1s",
			"--cluster-lease-renew-interval=1s",
		},
	}
	if n, err := strconv.Atoi(os.Getenv(membersVariable)); err == nil {
		o.members = n
	}
	return o.mixed()
}

// together is the fleet for a test that leaves it as it is, but for its own site.
func together(t *testing.T) *fleet {
	t.Helper()
	t.Parallel()
	seats <- struct{}{}
	turn.RLock()
	t.Cleanup(func() {
		turn.RUnlock()
		<-seats
	})
	return theFleet
}

// alone is the fleet for a test that stops parts of it, or measures time.
func alone(t *testing.T) *fleet {
	t.Helper()
	t.Parallel()
	turn.Lock()
	t.Cleanup(turn.Unlock)
	return theFleet
}

// apart is a fleet of the test's own. It is asked for before t.Parallel, so that
// nothing else runs while it starts: five API servers that start take all that two
// cores have, for longer than a lease lasts.
func apart(t *testing.T, o fleetOptions) *fleet {
	t.Helper()
	f, err := startFleet(t.Context(), theFleet.programs, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(f.logTails())
		}
		if err := f.down(); err != nil {
			t.Error(err)
		}
	})
	return f
}
