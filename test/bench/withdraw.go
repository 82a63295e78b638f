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

// end is something that goes, and what goes with it.
type end struct {
	// ask asks for it.
	ask func() error
	// slices go then.
	slices *expectation
	// left says what the hub still holds of it, empty when nothing. Its requests are
	// counted among own, which the control plane has no part in.
	left func(context.Context) (string, error)
	own  requests
}

// ended measures an end, from asking for it until nothing is left.
func (s *site) ended(ctx context.Context, m measure, e end) (measure, error) {
	var err error
	m.Cost, err = s.metered(ctx, e.own, nil, func() error {
		start := time.Now()
		if err := e.ask(); err != nil {
			return err
		}
		seen, err := e.slices.wait(ctx, s.opts.patience)
		if err != nil {
			return fmt.Errorf("waiting for slices to go: %w", err)
		}
		m.Slices, _ = since(start, seen)
		if err := s.awaitNothing(ctx, e.left); err != nil {
			return err
		}
		m.Took = []milliseconds{millisecondsOf(time.Since(start))}
		return nil
	})
	return m, err
}

// awaitNothing waits until nothing is left.
func (s *site) awaitNothing(ctx context.Context, left func(context.Context) (string, error)) error {
	ctx, cancel := context.WithTimeout(ctx, s.opts.patience)
	defer cancel()
	for {
		what, err := left(ctx)
		if err != nil || what == "" {
			return err
		}
		if err := pause(ctx, look); err != nil {
			return fmt.Errorf("waiting for %s to go: %w", what, err)
		}
	}
}

// withdrawn ends the wish for a service, until no slice of it stands in any
// member but its own, and the hub remembers none.
func (s *site) withdrawn(ctx context.Context, service string) (measure, error) {
	m := measure{Name: "T5", What: "the wish ends, until nothing of it is left", Operations: 1}
	n := len(s.members)
	own := requests{"DELETE multiclusterservices": 1}
	selector := labels.Set{networkingv1alpha1.NamespaceKey: s.ns, networkingv1alpha1.NameKey: service}.String()
	return s.ended(ctx, m, end{
		ask: func() error {
			if err := s.hub.custom.Resource(wishes).Namespace(s.ns).Delete(ctx, service, deleteOptions); err != nil {
				return fmt.Errorf("ending a wish: %w", err)
			}
			return nil
		},
		slices: s.expect(n*(n-1), func(seen sighting) string {
			if !seen.gone || serviceOf(seen.slice) != service || providerOf(seen.slice) == "" {
				return ""
			}
			return seen.member + "/" + seen.slice.Name
		}),
		left: func(ctx context.Context) (string, error) {
			own["LIST works"]++
			own["GET multiclusterservices"]++
			list, err := s.hub.custom.Resource(works).List(ctx, metav1.ListOptions{LabelSelector: selector})
			if err != nil {
				return "", fmt.Errorf("listing Works: %w", err)
			}
			stands, err := s.hub.exists(ctx, wishes, s.ns, service)
			if err != nil {
				return "", fmt.Errorf("looking for the wish: %w", err)
			}
			if len(list.Items) == 0 && !stands {
				return "", nil
			}
			return fmt.Sprintf("%d Works", len(list.Items)), nil
		},
		own: own,
	})
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
	own := requests{"DELETE clusters": 1}
	return s.ended(ctx, m, end{
		ask: func() error {
			if err := s.hub.custom.Resource(clusters).Delete(ctx, leaving, deleteOptions); err != nil {
				return fmt.Errorf("taking out a member: %w", err)
			}
			return nil
		},
		slices: s.expect(standing, func(seen sighting) string {
			if !seen.gone || !foreign(seen.member, seen.slice) {
				return ""
			}
			return seen.member + "/" + seen.slice.Name
		}),
		left: func(ctx context.Context) (string, error) {
			own["GET clusters"]++
			stands, err := s.hub.exists(ctx, clusters, "", leaving)
			if err != nil {
				return "", fmt.Errorf("looking for the member: %w", err)
			}
			if !stands {
				return "", nil
			}
			return "member " + leaving, nil
		},
		own: own,
	})
}
