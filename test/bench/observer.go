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
	"k8s.io/utils/ptr"
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
		// As long as a run may take: a watch that ends early fails it.
		events, err := m.kube.DiscoveryV1().EndpointSlices(namespace).Watch(ctx, metav1.ListOptions{
			ResourceVersion: list.ResourceVersion, TimeoutSeconds: ptr.To[int64](4 * 60 * 60),
		})
		if err != nil {
			return nil, fmt.Errorf("watching slices of %s: %w", m.name, err)
		}
		go func() {
			for event := range events.ResultChan() {
				o.take(m.name, event)
			}
			if ctx.Err() == nil {
				o.fail(fmt.Errorf("the watch of slices in %s has ended", m.name))
			}
		}()
	}
	return o, nil
}

// take takes an event in.
func (o *observer) take(member string, event watch.Event) {
	at := time.Now()
	slice, ok := event.Object.(*discoveryv1.EndpointSlice)
	if !ok {
		o.fail(fmt.Errorf("the watch of slices in %s told %s", member, event.Type))
		return
	}
	s := sighting{member: member, slice: slice, gone: event.Type == watch.Deleted, at: at}
	o.mu.Lock()
	defer o.mu.Unlock()
	if s.gone {
		delete(o.standing[member], slice.Name)
	} else {
		o.standing[member][slice.Name] = slice
	}
	for e := range o.waiting {
		if key := e.key(s); key != "" {
			e.saw(key, at)
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
