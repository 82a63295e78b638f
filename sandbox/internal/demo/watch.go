package demo

import (
	"context"
	"fmt"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
)

const (
	// provisionCluster is the annotation that names a dispatched slice's provider.
	provisionCluster = "endpointslice.karmada.io/provision-cluster"

	// rewatchInterval is how often a watch that ended is tried again.
	rewatchInterval = 50 * time.Millisecond
)

// watchSlices keeps the book of a member until the context ends. A member whose
// API server is down is tried again and again.
func (c *cluster) watchSlices(ctx context.Context) {
	tick := time.NewTicker(rewatchInterval)
	defer tick.Stop()
	for ctx.Err() == nil {
		// An error is no news: that a server is down is part of the story, and
		// what matters is what the book does not get to know in time.
		_ = c.watchOnce(ctx)
		select {
		case <-tick.C:
		case <-ctx.Done():
		}
	}
}

// watchOnce lists and watches until the watch ends.
func (c *cluster) watchOnce(ctx context.Context) error {
	options := metav1.ListOptions{LabelSelector: discoveryv1.LabelServiceName + "=" + serviceName}
	client := c.client.Resource(endpointSlices).Namespace(namespace)
	list, err := client.List(ctx, options)
	if err != nil {
		return fmt.Errorf("listing slices of %s: %w", c.name, err)
	}
	var known []slice
	for i := range list.Items {
		s, err := readSlice(c.name, &list.Items[i])
		if err != nil {
			return err
		}
		known = append(known, s)
	}
	c.book.replace(time.Now(), known)

	options.ResourceVersion = list.GetResourceVersion()
	events, err := client.Watch(ctx, options)
	if err != nil {
		return fmt.Errorf("watching slices of %s: %w", c.name, err)
	}
	defer events.Stop()
	for event := range events.ResultChan() {
		if err := c.note(time.Now(), event); err != nil {
			return err
		}
	}
	return nil
}

func (c *cluster) note(at time.Time, event watch.Event) error {
	object, ok := event.Object.(*unstructured.Unstructured)
	if !ok {
		return fmt.Errorf("the watch on slices of %s gave a %T", c.name, event.Object)
	}
	switch event.Type {
	case watch.Added, watch.Modified:
		s, err := readSlice(c.name, object)
		if err != nil {
			return err
		}
		c.book.set(at, s)
	case watch.Deleted:
		c.book.remove(at, object.GetName())
	case watch.Error:
		return fmt.Errorf("the watch on slices of %s ended: %v", c.name, object.Object["message"])
	case watch.Bookmark:
	}
	return nil
}

// readSlice reads a slice that stands in a member. One that says nothing of a
// provider is the member's own.
func readSlice(member string, object *unstructured.Unstructured) (slice, error) {
	var typed discoveryv1.EndpointSlice
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &typed); err != nil {
		return slice{}, fmt.Errorf("reading slice %s of %s: %w", object.GetName(), member, err)
	}
	s := slice{name: typed.Name, provider: typed.Annotations[provisionCluster], version: typed.ResourceVersion, endpoints: endpoints{}}
	if s.provider == "" {
		s.provider = member
	}
	if len(typed.Ports) > 0 && typed.Ports[0].Port != nil {
		s.port = *typed.Ports[0].Port
	}
	for _, e := range typed.Endpoints {
		for _, address := range e.Addresses {
			s.endpoints[address] = e.Conditions.Ready == nil || *e.Conditions.Ready
		}
	}
	return s, nil
}
