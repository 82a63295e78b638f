package e2e

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/namesake-io/namesake/api/cluster/v1alpha1"
)

// replica is a second controller-manager, a child of the test.
type replica struct {
	name    string
	metrics string
	process *exec.Cmd
	log     string // path of its log
	ended   chan struct{}
}

// startReplica starts a controller-manager like the fleet's own, which ends with
// the test.
func startReplica(t *testing.T, f *fleet, name string) *replica {
	t.Helper()
	r := &replica{name: name, metrics: freeAddress(t), log: filepath.Join(t.TempDir(), name+".log"), ended: make(chan struct{})}
	log, err := os.Create(r.log)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	args := argumentsOf(t, f.component(t, hubManager).PID)
	args = append(args, "--leader-elect-identity="+name, "--metrics-bind-address="+r.metrics,
		"--health-probe-bind-address="+freeAddress(t), "--webhook-bind-address=0")
	r.process = exec.CommandContext(t.Context(), args[0], args[1:]...)
	r.process.Stdout, r.process.Stderr = log, log
	r.process.Cancel = func() error { return r.process.Process.Signal(syscall.SIGTERM) }
	r.process.WaitDelay = stopLimit
	if err := r.process.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = r.process.Wait() // killed, as a rule
		close(r.ended)
	}()
	t.Cleanup(func() {
		r.end(t, syscall.SIGTERM)
		if t.Failed() {
			t.Logf("%s said:\n%s", name, readLog(t, r.log))
		}
	})
	return r
}

// end ends the replica by a signal.
func (r *replica) end(t *testing.T, signal syscall.Signal) {
	t.Helper()
	_ = r.process.Process.Signal(signal) // it may have ended
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-r.ended:
	case <-timer.C:
		t.Errorf("%s is there %s after signal %s", r.name, patience, signal)
	}
}

// has wants an endpoint of a provider in one of the slices, its own or a copy.
func has(provider, address string) func(map[string]client.Object) error {
	return func(state map[string]client.Object) error {
		for _, obj := range state {
			slice, ok := obj.(*discoveryv1.EndpointSlice)
			for i := 0; ok && i < len(slice.Endpoints); i++ {
				if slices.Contains(slice.Endpoints[i].Addresses, address) {
					return nil
				}
			}
		}
		return fmt.Errorf("%s of %s is in none of %d slices", address, provider, len(state))
	}
}

// views returns what a controller-manager says that it sees of the members' slices.
func views(ctx context.Context, metrics string) (map[string]float64, error) {
	text, err := fetch(ctx, "http://"+metrics+"/metrics")
	if err != nil {
		return nil, err
	}
	out := map[string]float64{}
	for line := range strings.Lines(text) {
		what, count, found := strings.Cut(strings.TrimSpace(line), " ")
		if !found || !strings.HasPrefix(what, "namesake_member_slices{") && !strings.HasPrefix(what, "namesake_member_endpoints{") {
			continue
		}
		if out[what], err = strconv.ParseFloat(count, 64); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// waitWarm waits until a controller-manager that waits sees all that the leader
// does. It may see more: only a leader knows which members do not provide a service.
func waitWarm(t *testing.T, leader, waiting string) {
	t.Helper()
	within(t, patience, "the one that waits has seen all", func(ctx context.Context) error {
		want, err := views(ctx, leader)
		if err != nil {
			return err
		}
		got, err := views(ctx, waiting)
		if err != nil {
			return err
		}
		for what, count := range want {
			if got[what] < count {
				return fmt.Errorf("%s: the leader sees %g, it sees %g", what, count, got[what])
			}
		}
		if len(want) == 0 {
			return errors.New("the leader sees nothing")
		}
		return nil
	})
}

// freeAddress returns an address of this machine that nobody listens at, with a port
// below those that the kernel gives to connections.
func freeAddress(t *testing.T) string {
	t.Helper()
	for range 100 {
		address := net.JoinHostPort("127.0.0.1", strconv.Itoa(12000+rand.N(15000)))
		if l, err := net.Listen("tcp", address); err == nil {
			_ = l.Close()
			return address
		}
	}
	t.Fatal("a hundred ports are taken")
	return ""
}

// listsOfSlices counts how often the members' slices have been listed.
func listsOfSlices(t *testing.T, f *fleet) float64 {
	t.Helper()
	total := 0.0
	for _, m := range f.names() {
		counts, err := countRequests(t.Context(), f.members[m])
		if err != nil {
			t.Fatal(err)
		}
		for kind, n := range counts {
			if kind.verb == "LIST" && kind.resource == "endpointslices" {
				total += n
			}
		}
	}
	return total
}

// A replica that waits takes over from one that is killed, or that hangs: within
// the time of the lease, without listing anything anew, and without a slice that
// disappears. One that hung and comes to itself writes nothing, and waits.
func TestTakeover(t *testing.T) {
	f := alone(t)
	s := servedEverywhere(t, f, "foo")
	s.createMCS("foo")
	s.waitSpread(s.all("foo"))
	s.waitReady("foo")
	var seen []*history
	for _, m := range f.names() {
		seen = append(seen, s.watch(f.members[m], &discoveryv1.EndpointSliceList{}))
	}
	standby := startReplica(t, f, "standby")
	own := valueOf(argumentsOf(t, f.component(t, hubManager).PID), "--metrics-bind-address")
	waitWarm(t, own, standby.metrics)

	change := func(what string, lists float64) {
		t.Helper()
		begun := time.Now()
		address := s.changeSlice("member1", "foo-a")
		for _, h := range seen { // looking costs lists, and these are counted
			h.waitState(patience, "member1's new endpoint", has("member1", address))
		}
		t.Logf("%s: %s, changed at once, is everywhere after %s", what, address, time.Since(begun).Round(10*time.Millisecond))
		if now := listsOfSlices(t, f); now != lists {
			t.Errorf("%s: slices were listed %g times", what, now-lists)
		}
	}
	holds := func(who string) {
		t.Helper()
		if got, err := f.holder(t.Context()); err != nil || got != who {
			t.Errorf("the lease is held by %q, want %q (%v)", got, who, err)
		}
	}

	lists := listsOfSlices(t, f)
	restart := f.killManager(t)
	change("killed", lists)
	holds("standby")

	restart()
	waitWarm(t, standby.metrics, own)
	lists = listsOfSlices(t, f)
	if err := standby.process.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	change("hangs", lists)
	holds(hubManager)
	if err := standby.process.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	waitAnew(t, standby.log, 0)
	holds(hubManager)
	waitWarm(t, own, standby.metrics)
	lists = listsOfSlices(t, f)
	f.killManager(t)
	change("killed again", lists)
	holds("standby")

	for _, h := range seen {
		if gone := h.deleted(); len(gone) > 0 {
			t.Errorf("%s: %v disappeared", h.what, gone)
		}
	}
}

// readLog reads a log.
func readLog(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// waitAnew waits until a controller-manager says, after the first bytes of its
// log, that it begins anew.
func waitAnew(t *testing.T, log string, after int) {
	t.Helper()
	within(t, patience, "it begins anew", func(context.Context) error {
		if !strings.Contains(readLog(t, log)[after:], "Beginning anew") {
			return errors.New("it has not said so")
		}
		return nil
	})
}

// A hub whose API server does not answer is waited for: the controller-manager
// does not end, however long it takes, and goes on when it is back. A member that
// hangs all the while, and of which the process has never heard anything, does not
// keep it.
func TestHubAPIServerAway(t *testing.T) {
	f := alone(t)
	s := servedEverywhere(t, f, "foo", "bar")
	s.createMCS("foo")
	s.waitSpread(s.all("foo"))
	goOn := f.hang(t, "member3")
	begun := time.Now()
	f.killManager(t)()
	f.waitLeader(t, begun)
	// It has to do there what it does not know how to.
	waitTold(t, f, "member3", clusterv1alpha1.ConditionReady, clusterv1alpha1.ReasonClusterNotReachable)
	s.createMCS("bar")
	s.waitService("bar", allBut(f, "member3")...)
	pid := f.component(t, hubManager).PID
	seen := s.watch(f.members["member2"], &discoveryv1.EndpointSliceList{})
	log := filepath.Join(f.dir, "logs", hubManager+".log")
	said := len(readLog(t, log))

	f.sandbox(t, "kill", "hub-apiserver")
	back := false
	t.Cleanup(func() {
		if !back {
			f.sandbox(t, "restart", "hub-apiserver")
		}
	})
	waitAnew(t, log, said) // it has lost its lease
	changed := s.changeSlice("member1", "foo-a")
	f.sandbox(t, "restart", "hub-apiserver")
	back = true
	begun = time.Now()
	seen.waitState(patience, "member2 has what member1 changed", func(state map[string]client.Object) error { return holds(state, changed) })
	t.Logf("the hub's API server answers again: what changed meanwhile is in member2 after %s", time.Since(begun).Round(10*time.Millisecond))
	goOn()
	s.waitSpread(s.all("foo"), s.all("bar"))
	if now := f.component(t, hubManager); now.PID != pid {
		t.Errorf("the manager is another process: %d, was %d", now.PID, pid)
	}
	if gone := seen.deleted(); len(gone) > 0 {
		t.Errorf("%v disappeared", gone)
	}
}
