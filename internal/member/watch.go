package member

import (
	"context"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/klog/v2"

	clusterv1alpha1 "github.com/namesake-io/namesake/api/cluster/v1alpha1"
)

const (
	// watchSilence is how long a watch may say nothing before it counts as dead. An
	// API server sends a bookmark about once a minute though nothing happens.
	watchSilence = 3 * time.Minute
	// watchLook is how often that is looked at.
	watchLook = 15 * time.Second
	// watchFailures is how many times in a row slices must not be had before it is
	// told. A refusal needs no second one.
	watchFailures = 3
)

// WatchState tells how the watch of a member's slices is. A member may say that
// it is ready and tell nothing all the same: rights that were taken away, or
// something on the way that keeps a connection open and passes nothing on.
type WatchState struct {
	// Known is false until slices have been asked for.
	Known bool
	// Works is true when changes are told.
	Works bool
	// Reason is a condition reason of a Cluster, and Message explains it.
	Reason, Message string
}

// watchGuard sees to it that a watch lives.
type watchGuard struct {
	// reachable says whether anything can be expected of the member.
	reachable func() bool
	// changed is called when the state has.
	changed func()

	mu       sync.Mutex
	state    WatchState
	heard    time.Time
	failures int
	renewals int
	current  watch.Interface
}

// State returns how the watch is.
func (g *watchGuard) State() WatchState {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.state
}

// counts returns how long nothing was heard, and how often a watch that said
// nothing was made anew.
func (g *watchGuard) counts() (age time.Duration, renewals int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.heard.IsZero() {
		age = time.Since(g.heard)
	}
	return age, g.renewals
}

// listed takes in what came of a list.
func (g *watchGuard) listed(err error) {
	if err != nil {
		g.failed(err)
		return
	}
	g.mu.Lock()
	g.heard = time.Now()
	g.mu.Unlock()
}

// watching takes in what came of a watch, and returns it as it is to be used.
func (g *watchGuard) watching(w watch.Interface, err error) (watch.Interface, error) {
	if err != nil {
		g.failed(err)
		return nil, err
	}
	overheard := overhear(w, func() { g.hear(nil) })
	g.hear(overheard)
	return overheard, nil
}

// overheardWatch is a watch that has somebody listening who is not its user.
type overheardWatch struct {
	watch.Interface
	events chan watch.Event
	stop   func()
}

// overhear has a function called for every event of a watch.
func overhear(w watch.Interface, heard func()) *overheardWatch {
	ended := make(chan struct{})
	o := &overheardWatch{Interface: w, events: make(chan watch.Event), stop: sync.OnceFunc(func() { close(ended) })}
	go func() {
		defer close(o.events)
		for e := range w.ResultChan() {
			heard()
			select {
			case o.events <- e:
			case <-ended: // its user is gone
				return
			}
		}
	}()
	return o
}

// ResultChan implements watch.Interface.
func (o *overheardWatch) ResultChan() <-chan watch.Event { return o.events }

// Stop implements watch.Interface.
func (o *overheardWatch) Stop() {
	o.stop()
	o.Interface.Stop()
}

// hear takes in a sign of life, of a new watch or of the one that there is.
func (g *watchGuard) hear(begun watch.Interface) {
	g.mu.Lock()
	g.heard, g.failures = time.Now(), 0
	if begun != nil {
		g.current = begun
	}
	g.mu.Unlock()
	g.set(WatchState{
		Known: true, Works: true,
		Reason: clusterv1alpha1.ReasonWatchEstablished, Message: "changes of slices are told as they happen",
	})
}

// failed takes in that slices could not be listed or watched.
func (g *watchGuard) failed(err error) {
	g.mu.Lock()
	g.failures++
	enough := g.failures >= watchFailures
	g.mu.Unlock()
	switch {
	case apierrors.IsForbidden(err):
		g.set(WatchState{
			Known: true, Reason: clusterv1alpha1.ReasonWatchForbidden,
			Message: fmt.Sprintf("the hub may not watch EndpointSlices there: join the cluster again to renew its rights: %v", err),
		})
	case enough && g.reachable():
		g.set(WatchState{
			Known: true, Reason: clusterv1alpha1.ReasonWatchFailing,
			Message: fmt.Sprintf("EndpointSlices cannot be watched there: %v", err),
		})
	}
}

// set takes over a new state. One that differs in the words alone is not new.
func (g *watchGuard) set(s WatchState) {
	g.mu.Lock()
	same := g.state.Known == s.Known && g.state.Works == s.Works && g.state.Reason == s.Reason
	if !same {
		g.state = s
	}
	g.mu.Unlock()
	if !same {
		g.changed()
	}
}

// run ends watches that say nothing, so that they are made anew, until the
// context ends.
func (g *watchGuard) run(ctx context.Context) {
	ticker := time.NewTicker(watchLook)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			g.look(ctx)
		}
	}
}

// look ends a watch that has said nothing for too long.
func (g *watchGuard) look(ctx context.Context) {
	g.mu.Lock()
	if g.current == nil || !g.reachable() {
		g.heard = time.Now() // nothing is expected
		g.mu.Unlock()
		return
	}
	silent := time.Since(g.heard)
	if silent < watchSilence {
		g.mu.Unlock()
		return
	}
	dead := g.current
	g.current = nil
	g.renewals++
	g.mu.Unlock()

	klog.FromContext(ctx).Info("A watch of slices says nothing, making it anew", "silent", silent.Round(time.Second))
	g.set(WatchState{
		Known: true, Reason: clusterv1alpha1.ReasonWatchSilent,
		Message: fmt.Sprintf("the watch of EndpointSlices had said nothing for %s, though the API server answers: it is made anew", silent.Round(time.Second)),
	})
	dead.Stop()
}
