package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spf13/cobra"
)

func runCommand() *cobra.Command {
	o := newOptions()
	cmd := &cobra.Command{
		Use:   "run [--members N | --kubeconfig-dir DIR] [--out FILE]",
		Short: "Measure once, print a table, and keep the result as JSON",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if err := o.complete(); err != nil {
				return err
			}
			p, leave, err := open(cmd.Context(), o, cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, leave()) }()
			r, err := run(cmd.Context(), p, o, cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			if o.out != "" {
				if err := r.save(o.out); err != nil {
					return err
				}
			}
			return r.print(cmd.OutOrStdout())
		},
	}
	o.addFlags(cmd.Flags())
	return cmd
}

// run measures everything, in an order in which one measure prepares the next.
func run(ctx context.Context, p *plane, o *options, log io.Writer) (*result, error) {
	begin := time.Now()
	r := &result{Date: begin.UTC().Format(time.DateOnly), Machine: thisMachine(), Members: o.members, Endpoints: o.endpoints}
	say := func(what string) {
		fmt.Fprintf(log, "%6.1fs  %d members: %s\n", time.Since(begin).Seconds(), o.members, what)
	}
	s, err := newSite(ctx, p, o)
	if err != nil {
		return nil, err
	}
	say("the floor")
	floors, err := s.floorAlone(ctx)
	if err != nil {
		return nil, fmt.Errorf("measuring the floor: %w", err)
	}
	mem := &memory{url: p.metricsURL}
	following, stop := context.WithCancel(ctx)
	defer stop()
	go mem.follow(following)

	add := func(m measure, err error) error {
		if err != nil {
			return fmt.Errorf("measuring %s: %w", m.Name, err)
		}
		m.Floor = floors[m.Name]
		r.Measures = append(r.Measures, m)
		say(m.String())
		return nil
	}
	if err := s.measureSpeed(ctx, add); err != nil {
		return nil, err
	}
	if r.Hub, err = s.storedOnHub(ctx); err != nil {
		return nil, err
	}
	say("at rest")
	if r.Rest, err = s.atRest(ctx); err != nil {
		return nil, fmt.Errorf("listening to the control plane at rest: %w", err)
	}
	if err := s.remember(ctx, r, mem); err != nil {
		return nil, err
	}
	if err := s.measureEnds(ctx, add); err != nil {
		return nil, err
	}
	r.PeakBytes = mem.highest()
	r.Seconds = time.Since(begin).Seconds()
	return r, nil
}

// floorAlone measures the floor while the control plane is dead, if it can die.
func (s *site) floorAlone(ctx context.Context) (floors map[string][]milliseconds, err error) {
	if s.mortal() {
		if err := s.kill(ctx); err != nil {
			return nil, err
		}
	}
	floors, err = s.measureFloor(ctx)
	if s.mortal() {
		err = errors.Join(err, s.start(ctx))
	}
	if err != nil {
		return nil, err
	}
	return floors, s.settled(ctx, s.opts.patience)
}

// measureSpeed measures what makes services stand and change.
func (s *site) measureSpeed(ctx context.Context, add func(measure, error) error) error {
	if err := add(s.first(ctx)); err != nil {
		return err
	}
	if err := add(s.single(ctx, "first-0")); err != nil {
		return err
	}
	if err := add(s.together(ctx)); err != nil {
		return err
	}
	for _, count := range s.opts.many {
		if err := add(s.atOnce(ctx, count)); err != nil {
			return err
		}
	}
	return nil
}

// measureEnds measures restarts and withdrawals.
func (s *site) measureEnds(ctx context.Context, add func(measure, error) error) error {
	if s.mortal() {
		standing := s.opts.repetitions + s.opts.burst
		for _, count := range s.opts.many {
			standing += count
		}
		if err := add(s.idleRestart(ctx, standing)); err != nil {
			return err
		}
		if err := add(s.restarted(ctx, names("burst-", min(s.opts.meanwhile, s.opts.burst)))); err != nil {
			return err
		}
	}
	if err := add(s.withdrawn(ctx, "first-0")); err != nil {
		return err
	}
	return add(s.unjoined(ctx))
}

// atRest counts what is spent while nothing happens.
func (s *site) atRest(ctx context.Context) (*idleness, error) {
	start := time.Now()
	before, err := s.account(ctx)
	if err != nil {
		return nil, err
	}
	if err := pause(ctx, s.opts.rest); err != nil {
		return nil, err
	}
	after, err := s.account(ctx)
	if err != nil {
		return nil, err
	}
	return &idleness{Seconds: time.Since(start).Seconds(), Cost: after.since(before, nil, nil)}, nil
}

// remember notes how much memory the control plane takes after it has rested, and
// with how many foreign slices.
func (s *site) remember(ctx context.Context, r *result, mem *memory) error {
	note := func(with string) error {
		bytes, err := mem.now(ctx)
		if err == nil && bytes > 0 {
			r.Memory = append(r.Memory, level{With: with, Bytes: bytes})
		}
		return err
	}
	if err := note("every service standing"); err != nil {
		return err
	}
	if s.opts.foreign == 0 {
		return nil
	}
	foreign := names("foreign-", s.opts.foreign)
	err := each(ctx, len(s.members), s.members, func(ctx context.Context, m *cluster) error {
		return each(ctx, 4, foreign, func(ctx context.Context, name string) error {
			_, err := m.kube.DiscoveryV1().EndpointSlices(metav1.NamespaceDefault).Create(ctx, s.newSlice(name, name+"-x"), createOptions)
			return err
		})
	})
	if err != nil {
		return fmt.Errorf("making foreign slices: %w", err)
	}
	if err := s.settled(ctx, s.opts.patience); err != nil {
		return err
	}
	if err := note(fmt.Sprintf("%d foreign slices in each member besides, just made", s.opts.foreign)); err != nil {
		return err
	}
	if !s.mortal() {
		return nil
	}
	for _, step := range []func(context.Context) error{s.kill, s.start} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	if err := s.settled(ctx, s.opts.patience); err != nil {
		return err
	}
	return note("the same after a restart")
}
