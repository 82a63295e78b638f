package e2e

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// happening is one event of a watch, and when it was seen.
type happening struct {
	kind   watch.EventType
	object client.Object
	at     time.Time
}

// history is everything that a watch told of a kind in a namespace.
type history struct {
	t      *testing.T
	what   string
	notify chan struct{}

	mu     sync.Mutex
	state  map[string]client.Object
	events []happening
	ended  bool
}

// watch records what happens to objects of list's kind until the test ends.
func (s *site) watch(c *cluster, list client.ObjectList) *history {
	s.t.Helper()
	ctx, cancel := context.WithCancel(s.t.Context())
	h := &history{
		t: s.t, what: fmt.Sprintf("%T of %s", list, c.name), notify: make(chan struct{}, 1),
		state: map[string]client.Object{},
	}
	s.must(c.List(ctx, list, client.InNamespace(s.ns)))
	s.must(meta.EachListItem(list, func(item runtime.Object) error {
		if obj, ok := item.(client.Object); ok {
			h.state[obj.GetName()] = obj
		}
		return nil
	}))
	w, err := c.Watch(ctx, list, client.InNamespace(s.ns), &client.ListOptions{
		Raw: &metav1.ListOptions{ResourceVersion: list.GetResourceVersion()},
	})
	s.must(err)
	var done sync.WaitGroup
	done.Go(func() { h.record(w) })
	s.t.Cleanup(func() {
		cancel()
		w.Stop()
		done.Wait()
	})
	return h
}

// record takes in events until there are none.
func (h *history) record(w watch.Interface) {
	for e := range w.ResultChan() {
		now := time.Now()
		obj, ok := e.Object.(client.Object)
		if !ok || e.Type == watch.Bookmark {
			continue
		}
		h.mu.Lock()
		if e.Type == watch.Deleted {
			delete(h.state, obj.GetName())
		} else {
			h.state[obj.GetName()] = obj
		}
		h.events = append(h.events, happening{kind: e.Type, object: obj, at: now})
		h.mu.Unlock()
		h.wake()
	}
	h.mu.Lock()
	h.ended = true
	h.mu.Unlock()
	h.wake()
}

func (h *history) wake() {
	select {
	case h.notify <- struct{}{}:
	default:
	}
}

// waitState waits until the objects are as they should be, and returns when the
// event came that made them so. It is for one caller at a time.
func (h *history) waitState(limit time.Duration, what string, right func(map[string]client.Object) error) time.Time {
	h.t.Helper()
	timer := time.NewTimer(limit)
	defer timer.Stop()
	for {
		h.mu.Lock()
		err := right(h.state)
		at, ended := time.Now(), h.ended
		if n := len(h.events); n > 0 {
			at = h.events[n-1].at
		}
		h.mu.Unlock()
		if err == nil {
			return at
		}
		if ended {
			h.t.Fatalf("%s: the watch of %s has ended, and %v", what, h.what, err)
		}
		select {
		case <-timer.C:
			h.t.Fatalf("%s: not so after %s: %v", what, limit, err)
		case <-h.notify:
		}
	}
}

// of returns what happened to objects that an event is asked for.
func (h *history) of(want func(happening) bool) []happening {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ended {
		h.t.Errorf("the watch of %s has ended before its time", h.what)
	}
	var out []happening
	for _, e := range h.events {
		if want(e) {
			out = append(out, e)
		}
	}
	return out
}

// deleted returns the names of the objects that were deleted, sorted, each once.
func (h *history) deleted() []string {
	var out []string
	for _, e := range h.of(func(e happening) bool { return e.kind == watch.Deleted }) {
		out = append(out, e.object.GetName())
	}
	slices.Sort(out)
	return slices.Compact(out)
}
