package member

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/watch"

	clusterv1alpha1 "github.com/namesake-io/namesake/api/cluster/v1alpha1"
)

// guarded runs a guard and returns it with the states that it went through.
func guarded(t *testing.T, reachable *bool) (g *watchGuard, seen func() []string) {
	t.Helper()
	var states []string
	g = &watchGuard{reachable: func() bool { return *reachable }}
	g.changed = func() { states = append(states, g.State().Reason) }
	go g.run(t.Context())
	return g, func() []string {
		synctest.Wait()
		return states
	}
}

// begin begins a watch that ends with the test.
func begin(t *testing.T, g *watchGuard) (source *watch.FakeWatcher, w watch.Interface) {
	t.Helper()
	source = watch.NewFake()
	w, err := g.watching(source, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Stop)
	return source, w
}

func isStopped(w watch.Interface) bool {
	select {
	case _, open := <-w.ResultChan():
		return !open
	default:
		return false
	}
}

// A watch that says nothing for minutes, not even a bookmark, is made anew, and it
// is told. (C30)
func TestWatchGuard_silence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reachable := true
		g, seen := guarded(t, &reachable)
		source, w := begin(t, g)
		for range 10 { // bookmarks
			time.Sleep(time.Minute)
			source.Action(watch.Bookmark, &discoveryv1.EndpointSlice{})
			<-w.ResultChan()
		}
		expect(t, "states of a watch that lives", []string{clusterv1alpha1.ReasonWatchEstablished}, seen())

		time.Sleep(watchSilence + watchLook)
		expect(t, "states of one that does not", []string{clusterv1alpha1.ReasonWatchEstablished, clusterv1alpha1.ReasonWatchSilent}, seen())
		if !isStopped(w) {
			t.Error("it is not ended, so nobody makes another")
		}
		if _, renewals := g.counts(); renewals != 1 {
			t.Errorf("renewals: %d", renewals)
		}
		begin(t, g)
		expect(t, "states with the next one", []string{
			clusterv1alpha1.ReasonWatchEstablished, clusterv1alpha1.ReasonWatchSilent, clusterv1alpha1.ReasonWatchEstablished,
		}, seen())
	})
}

// Of a member that cannot be reached no word is expected.
func TestWatchGuard_unreachable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reachable := true
		g, seen := guarded(t, &reachable)
		_, w := begin(t, g)
		reachable = false
		time.Sleep(time.Hour)
		for range watchFailures + 1 {
			g.listed(errors.New("connection refused"))
		}
		expect(t, "states", []string{clusterv1alpha1.ReasonWatchEstablished}, seen())
		if isStopped(w) {
			t.Error("the watch was ended")
		}
	})
}

func TestWatchGuard_failures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reachable := true
		g, seen := guarded(t, &reachable)
		broken := errors.New("unexpected EOF")
		for range watchFailures - 1 {
			g.listed(broken)
		}
		expect(t, "states after a hiccup", nil, seen())
		g.listed(nil)
		begin(t, g)
		for range watchFailures {
			g.listed(broken)
		}
		want := []string{clusterv1alpha1.ReasonWatchEstablished, clusterv1alpha1.ReasonWatchFailing}
		expect(t, "states when it goes on", want, seen())
		_, err := g.watching(nil, apierrors.NewForbidden(discoveryv1.Resource("endpointslices"), "", errors.New("no rights")))
		if err == nil {
			t.Error("the refusal is swallowed")
		}
		expect(t, "states after a refusal", append(want, clusterv1alpha1.ReasonWatchForbidden), seen())
	})
}

// Who stops a watch while an event is on its way leaves nothing behind: synctest
// finds goroutines that are left over.
func TestOverhear_stopped_midway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := watch.NewFakeWithChanSize(1, false)
		heard := 0
		w := overhear(source, func() { heard++ })
		source.Add(&discoveryv1.EndpointSlice{})
		synctest.Wait() // nobody takes it
		w.Stop()
		synctest.Wait()
		if _, open := <-w.ResultChan(); open || heard != 1 {
			t.Errorf("open: %t, heard %d events", open, heard)
		}
	})
}
