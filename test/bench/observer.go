package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

// sighting is a slice that was seen to stand, or to be gone, in a member.
type sighting struct {
	member string
	slice  *discoveryv1.EndpointSlice
	gone   bool
	at     time.Time
}

// observer watches the slices of one namespace in all members.
type observer struct {
	mu       sync.Mutex
	standing map[string]map[string]*discoveryv1.EndpointSlice
	waiting  map[*expectation]bool
	// failed is why the observer sees no more.
	failed error
}

// expectation waits for a number of different things to be seen.
type expectation struct {
	observer *observer
	// key says which of the things a sighting is. Empty: none.
	key  func(sighting) string
	want int
	seen map[string]time.Time
	done chan struct{}
}

// observe starts to watch. It ends with the context.
func observe(ctx context.Context, members []*cluster, namespace string) (*observer, error) {
	o := &observer{standing: map[string]map[string]*discoveryv1.EndpointSlice{}, waiting: map[*expectation]bool{}}
	for _, m := range members {
		list, err := m.kube.DiscoveryV1().EndpointSlices(namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return nil, fmt.Errorf("listing slices of %s: %w", m.name, err)
		}
		o.standing[m.name] = map[string]*discoveryv1.EndpointSlice{}
		for i := range list.Items {
			o.standing[m.name][list.Items[i].Name] = &list.Items[i]
		}
		go o.follow(ctx, m, namespace, list.ResourceVersion)
	}
	return o, nil
}

// follow takes in what a member tells. A watch that the API server ends, as it
// does when a busy machine lets us fall behind, goes on where it was.
func (o *observer) follow(ctx context.Context, m *cluster, namespace, version string) {
	for {
		events, err := m.kube.DiscoveryV1().EndpointSlices(namespace).Watch(ctx, metav1.ListOptions{ResourceVersion: version})
		if err != nil {
			o.fail(fmt.Errorf("watching slices of %s: %w", m.name, err))
			return
		}
		for event := range events.ResultChan() {
			at := time.Now()
			slice, ok := event.Object.(*discoveryv1.EndpointSlice)
			if !ok {
				o.fail(fmt.Errorf("the watch of slices in %s told %s", m.name, event.Type))
				return
			}
			version = slice.ResourceVersion
			o.take(sighting{member: m.name, slice: slice, gone: event.Type == watch.Deleted, at: at})
		}
		if ctx.Err() != nil {
			return
		}
	}
}

// take takes a sighting in.
func (o *observer) take(s sighting) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if s.gone {
		delete(o.standing[s.member], s.slice.Name)
	} else {
		o.standing[s.member][s.slice.Name] = s.slice
	}
	for e := range o.waiting {
		if key := e.key(s); key != "" {
			e.saw(key, s.at)
		}
	}
}

// fail ends every wait, now and later.
func (o *observer) fail(err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.failed = errors.Join(o.failed, err)
	for e := range o.waiting {
		e.end()
	}
}

// expect has things watched for from now on.
func (o *observer) expect(want int, key func(sighting) string) *expectation {
	o.mu.Lock()
	defer o.mu.Unlock()
	e := &expectation{observer: o, key: key, want: want, seen: map[string]time.Time{}, done: make(chan struct{})}
	o.waiting[e] = true
	if want == 0 || o.failed != nil {
		e.end()
	}
	return e
}

// count returns how many standing slices a function accepts.
func (o *observer) count(accept func(member string, slice *discoveryv1.EndpointSlice) bool) (n int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for member, standing := range o.standing {
		for _, slice := range standing {
			if accept(member, slice) {
				n++
			}
		}
	}
	return n
}

// saw notes the first sighting of a thing. The observer's lock is held.
func (e *expectation) saw(key string, at time.Time) {
	if _, known := e.seen[key]; known {
		return
	}
	e.seen[key] = at
	if len(e.seen) == e.want {
		e.end()
	}
}

// end ends the wait. The observer's lock is held.
func (e *expectation) end() {
	delete(e.observer.waiting, e)
	close(e.done)
}

// wait returns when each thing was seen first.
func (e *expectation) wait(ctx context.Context, patience time.Duration) (map[string]time.Time, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var late error
	select {
	case <-e.done:
	case <-ctx.Done():
		late = ctx.Err()
	}
	e.observer.mu.Lock()
	defer e.observer.mu.Unlock()
	if len(e.seen) < e.want {
		delete(e.observer.waiting, e)
		return nil, fmt.Errorf("%d of %d things were seen in %s: %w", len(e.seen), e.want, patience, errors.Join(late, e.observer.failed))
	}
	return e.seen, nil
}
