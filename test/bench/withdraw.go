package main

import (
	"context"
	"fmt"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	networkingv1alpha1 "github.com/namesake-io/namesake/api/networking/v1alpha1"
)

// look is how often an end is looked for that no watch tells of.
const look = 20 * time.Millisecond

// withdrawn ends the wish for a service, until no slice of it stands in any
// member but its own, and the hub remembers none.
func (s *site) withdrawn(ctx context.Context, service string) (measure, error) {
	m := measure{Name: "T5", What: "the wish ends, until nothing of it is left", Operations: 1}
	n := len(s.members)
	var err error
	own := requests{"DELETE multiclusterservices": 1}
	m.Cost, err = s.metered(ctx, own, nil, func() error {
		expected := s.expect(n*(n-1), func(seen sighting) string {
			if !seen.gone || serviceOf(seen.slice) != service || providerOf(seen.slice) == "" {
				return ""
			}
			return seen.member + "/" + seen.slice.Name
		})
		start := time.Now()
		if err := s.hub.custom.Resource(wishes).Namespace(s.ns).Delete(ctx, service, deleteOptions); err != nil {
			return fmt.Errorf("ending a wish: %w", err)
		}
		seen, err := expected.wait(ctx, s.opts.patience)
		if err != nil {
			return fmt.Errorf("waiting for slices to go: %w", err)
		}
		m.Slices, _ = since(start, seen)
		if err := s.awaitForgotten(ctx, service, own); err != nil {
			return err
		}
		m.Took = []milliseconds{millisecondsOf(time.Since(start))}
		return nil
	})
	return m, err
}

// awaitForgotten waits until the hub holds neither the wish nor a Work of it, and
// counts how often it asks.
func (s *site) awaitForgotten(ctx context.Context, service string, own requests) error {
	ctx, cancel := context.WithTimeout(ctx, s.opts.patience)
	defer cancel()
	selector := labels.Set{networkingv1alpha1.NamespaceKey: s.ns, networkingv1alpha1.NameKey: service}.String()
	for {
		own["LIST works"]++
		own["GET multiclusterservices"]++
		list, err := s.hub.custom.Resource(works).List(ctx, metav1.ListOptions{LabelSelector: selector})
		if err != nil {
			return fmt.Errorf("listing Works: %w", err)
		}
		stands, err := s.hub.exists(ctx, wishes, s.ns, service)
		if err != nil {
			return fmt.Errorf("looking for the wish: %w", err)
		}
		if len(list.Items) == 0 && !stands {
			return nil
		}
		if err := pause(ctx, look); err != nil {
			return fmt.Errorf("waiting for %d Works to go: %w", len(list.Items), err)
		}
	}
}

// unjoined takes the last member out, until nothing of it is left elsewhere and
// nothing of others is left in it. That is the end of a run.
func (s *site) unjoined(ctx context.Context) (measure, error) {
	leaving := s.members[len(s.members)-1].name
	foreign := func(member string, slice *discoveryv1.EndpointSlice) bool {
		provider := providerOf(slice)
		return provider == leaving || provider != "" && member == leaving
	}
	standing := s.count(foreign)
	m := measure{Name: "T5-unjoin", What: fmt.Sprintf("a member leaves, until its %d slices here and there are gone", standing), Operations: 1}
	expected := s.expect(standing, func(seen sighting) string {
		if !seen.gone || !foreign(seen.member, seen.slice) {
			return ""
		}
		return seen.member + "/" + seen.slice.Name
	})
	own := requests{"DELETE clusters": 1}
	var err error
	m.Cost, err = s.metered(ctx, own, nil, func() error {
		start := time.Now()
		if err := s.hub.custom.Resource(clusters).Delete(ctx, leaving, deleteOptions); err != nil {
			return fmt.Errorf("taking out a member: %w", err)
		}
		seen, err := expected.wait(ctx, s.opts.patience)
		if err != nil {
			return fmt.Errorf("waiting for slices to go: %w", err)
		}
		m.Slices, _ = since(start, seen)
		if err := s.awaitLeft(ctx, leaving, own); err != nil {
			return err
		}
		m.Took = []milliseconds{millisecondsOf(time.Since(start))}
		return nil
	})
	return m, err
}

// awaitLeft waits until the hub has no such member, and counts how often it asks.
func (s *site) awaitLeft(ctx context.Context, member string, own requests) error {
	ctx, cancel := context.WithTimeout(ctx, s.opts.patience)
	defer cancel()
	for {
		own["GET clusters"]++
		stands, err := s.hub.exists(ctx, clusters, "", member)
		if err != nil {
			return fmt.Errorf("looking for the member: %w", err)
		}
		if !stands {
			return nil
		}
		if err := pause(ctx, look); err != nil {
			return fmt.Errorf("waiting for member %s to go: %w", member, err)
		}
	}
}
