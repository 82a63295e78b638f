package main

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// expectChange waits until every consumer of a provider's slice has an address.
func (s *site) expectChange(provider, service, address string) *expectation {
	return s.expect(len(s.members)-1, func(seen sighting) string {
		if seen.gone || seen.member == provider || serviceOf(seen.slice) != service || !has(seen.slice, address) {
			return ""
		}
		return seen.member
	})
}

// single measures changes of one service, one after the other, from the moment
// that the change is sent to the provider's API server.
func (s *site) single(ctx context.Context, service string) (measure, error) {
	m := measure{Name: "T2", What: "one endpoint changes, until the last consumer has it", Operations: s.opts.changes}
	provider := s.members[0]
	var err error
	m.Cost, err = s.metered(ctx, nil, requests{"PUT endpointslices": float64(s.opts.changes)}, func() error {
		for range s.opts.changes {
			if err := pause(ctx, s.opts.pause); err != nil {
				return err
			}
			address := s.newAddress()
			expected := s.expectChange(provider.name, service, address)
			start := time.Now()
			if err := s.change(ctx, provider, service, address); err != nil {
				return err
			}
			seen, err := expected.wait(ctx, s.opts.patience)
			if err != nil {
				return fmt.Errorf("waiting for a change: %w", err)
			}
			all, last := since(start, seen)
			m.Took, m.Slices = append(m.Took, last), append(m.Slices, all...)
		}
		return nil
	})
	return m, err
}

// together measures changes of several services at once.
func (s *site) together(ctx context.Context) (measure, error) {
	m := measure{
		Name: "T2-burst", What: fmt.Sprintf("one endpoint of each of %d services changes at once", s.opts.burst), Operations: s.opts.burst,
	}
	services := names("burst-", s.opts.burst)
	if err := s.ready(ctx, services); err != nil {
		return m, err
	}
	if _, _, err := s.spread(ctx, services); err != nil {
		return m, err
	}
	if err := s.settled(ctx, s.opts.patience); err != nil {
		return m, err
	}
	var err error
	m.Cost, err = s.metered(ctx, nil, requests{"PUT endpointslices": float64(len(services))}, func() error {
		var mu sync.Mutex
		return each(ctx, len(services), services, func(ctx context.Context, service string) error {
			address := s.newAddress()
			expected := s.expectChange(s.members[0].name, service, address)
			start := time.Now()
			if err := s.change(ctx, s.members[0], service, address); err != nil {
				return err
			}
			seen, err := expected.wait(ctx, s.opts.patience)
			if err != nil {
				return fmt.Errorf("waiting for a change: %w", err)
			}
			all, last := since(start, seen)
			mu.Lock()
			defer mu.Unlock()
			m.Took, m.Slices = append(m.Took, last), append(m.Slices, all...)
			return nil
		})
	})
	return m, err
}
