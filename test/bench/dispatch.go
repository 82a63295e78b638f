package main

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// names returns service names by number.
func names(prefix string, count int) []string {
	out := make([]string, count)
	for i := range out {
		out[i] = fmt.Sprintf("%s%d", prefix, i)
	}
	return out
}

// expectEverywhere waits for every foreign slice of services in every member, whole.
func (s *site) expectEverywhere(services []string) *expectation {
	wanted := map[string]bool{}
	for _, service := range services {
		wanted[service] = true
	}
	n := len(s.members)
	return s.expect(len(services)*n*(n-1), func(seen sighting) string {
		provider, service := providerOf(seen.slice), serviceOf(seen.slice)
		if seen.gone || provider == "" || provider == seen.member || !wanted[service] || !s.whole(seen.slice) {
			return ""
		}
		return strings.Join([]string{seen.member, provider, service}, "/")
	})
}

// first measures one service after the other.
func (s *site) first(ctx context.Context) (measure, error) {
	m := measure{Name: "T1", What: "one service, from its wish to its last slice", Operations: s.opts.repetitions}
	services := names("first-", s.opts.repetitions)
	if err := s.ready(ctx, services); err != nil {
		return m, err
	}
	var err error
	m.Cost, err = s.metered(ctx, requests{"POST multiclusterservices": float64(len(services))}, nil, func() error {
		for _, service := range services {
			all, last, err := s.spread(ctx, []string{service})
			if err != nil {
				return err
			}
			m.Took, m.Slices = append(m.Took, last), append(m.Slices, all...)
			if err := s.settled(ctx, s.opts.patience); err != nil {
				return err
			}
		}
		return nil
	})
	return m, err
}

// atOnce measures several services together.
func (s *site) atOnce(ctx context.Context, count int) (measure, error) {
	m := measure{
		Name: fmt.Sprintf("T3-%d", count), What: fmt.Sprintf("%d services at once, from the first wish to the last slice", count), Operations: 1,
	}
	services := names(fmt.Sprintf("many%d-", count), count)
	if err := s.ready(ctx, services); err != nil {
		return m, err
	}
	var err error
	m.Cost, err = s.metered(ctx, requests{"POST multiclusterservices": float64(count)}, nil, func() error {
		all, last, err := s.spread(ctx, services)
		m.Took, m.Slices = []milliseconds{last}, all
		return err
	})
	return m, err
}

// ready makes services and waits until that is digested.
func (s *site) ready(ctx context.Context, services []string) error {
	if err := s.prepare(ctx, services); err != nil {
		return err
	}
	return s.settled(ctx, s.opts.patience)
}

// spread wishes for services and returns when each slice was there, and the last.
func (s *site) spread(ctx context.Context, services []string) (all []milliseconds, last milliseconds, err error) {
	expected := s.expectEverywhere(services)
	start := time.Now()
	if err := s.wish(ctx, services); err != nil {
		return nil, 0, fmt.Errorf("making wishes: %w", err)
	}
	seen, err := expected.wait(ctx, s.opts.patience)
	if err != nil {
		return nil, 0, fmt.Errorf("waiting for slices: %w", err)
	}
	all, last = since(start, seen)
	return all, last, nil
}
