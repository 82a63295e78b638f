package main

import (
	"context"
	"fmt"
	"time"
)

// restarted kills the control plane, changes an endpoint of each of some services,
// and starts it again.
func (s *site) restarted(ctx context.Context, services []string) (measure, error) {
	m := measure{
		Name: "T4", What: fmt.Sprintf("started after SIGKILL, until the changes of %d services are everywhere", len(services)), Operations: 1,
	}
	if err := s.kill(ctx); err != nil {
		return m, err
	}
	provider := s.members[0]
	expected := make([]*expectation, len(services))
	for i, service := range services {
		address := s.newAddress()
		expected[i] = s.expectChange(provider.name, service, address)
		if err := s.change(ctx, provider, service, address); err != nil {
			return m, err
		}
	}
	start := time.Now()
	if err := s.start(ctx); err != nil {
		return m, err
	}
	for _, e := range expected {
		seen, err := e.wait(ctx, s.opts.patience)
		if err != nil {
			return m, fmt.Errorf("waiting for a change: %w", err)
		}
		all, last := since(start, seen)
		m.Took, m.Slices = append(m.Took, last), append(m.Slices, all...)
	}
	return m, s.settled(ctx, s.opts.patience)
}

// idleRestart kills the control plane and starts it again, and nothing has
// happened meanwhile.
func (s *site) idleRestart(ctx context.Context, standing int) (measure, error) {
	m := measure{Name: "T4-idle", What: fmt.Sprintf("started after SIGKILL with %d services, nothing having changed", standing), Operations: 1}
	if err := s.kill(ctx); err != nil {
		return m, err
	}
	before, err := s.accountDead(ctx)
	if err != nil {
		return m, err
	}
	start := time.Now()
	if err := s.start(ctx); err != nil {
		return m, err
	}
	m.Took = []milliseconds{millisecondsOf(time.Since(start))}
	if err := s.settled(ctx, s.opts.patience); err != nil {
		return m, err
	}
	after, err := s.account(ctx)
	if err != nil {
		return m, err
	}
	m.Cost = after.since(before, nil, nil)
	return m, nil
}

// accountDead is an account while the process is dead: a new one starts at zero.
func (s *site) accountDead(ctx context.Context) (*bill, error) {
	dead := *s.plane
	dead.metricsURL = ""
	return dead.account(ctx)
}
