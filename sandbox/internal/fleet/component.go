package fleet

import (
	"context"
	"fmt"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/namesake-io/namesake/sandbox/internal/fault"
	"github.com/namesake-io/namesake/sandbox/internal/plan"
	"github.com/namesake-io/namesake/sandbox/internal/process"
	"github.com/namesake-io/namesake/sandbox/internal/state"
)

// restartGrace is how long the components of a tier have to end by themselves
// before they are started again. An API server would wait a minute for its
// watches to close, and hangs up at once when killed.
var restartGrace = map[int]time.Duration{
	plan.TierClient:  10 * time.Second,
	plan.TierServer:  time.Second,
	plan.TierStorage: 5 * time.Second,
}

// stopTimeout is how long the kernel may take to stop or continue a process.
const stopTimeout = 10 * time.Second

// Restart ends a component, if it runs, and starts it as it was.
func (f *Fleet) Restart(ctx context.Context, name string) error {
	return f.changeComponent(ctx, name, func(st *state.Fleet, c *state.Component) error {
		for _, m := range plan.Members(st.Members) {
			if _, down := st.Faults[m][string(fault.APIDown)]; down && name == plan.APIServer(m) {
				return fmt.Errorf("%s is held down by a fault: end it with `sandbox fault --dir %s %s %s off`", name, f.dir, m, fault.APIDown)
			}
		}
		if err := c.End(ctx, restartGrace[c.Tier]); err != nil {
			return fmt.Errorf("ending %s: %w", name, err)
		}
		return newStarter(f, st, nil).start(ctx, c.Component)
	})
}

// Kill ends a component with SIGKILL.
func (f *Fleet) Kill(ctx context.Context, name string) error {
	return f.changeComponent(ctx, name, func(_ *state.Fleet, c *state.Component) error {
		if err := c.End(ctx, 0); err != nil {
			return fmt.Errorf("killing %s: %w", name, err)
		}
		f.progress.Say("%s killed", name)
		return nil
	})
}

// Stop halts a component with SIGSTOP: it keeps its connections and says
// nothing more.
func (f *Fleet) Stop(ctx context.Context, name string) error {
	return f.signal(ctx, name, unix.SIGSTOP, process.Stopped)
}

// Continue lets a stopped component go on, with SIGCONT.
func (f *Fleet) Continue(ctx context.Context, name string) error {
	return f.signal(ctx, name, unix.SIGCONT, process.Running)
}

func (f *Fleet) signal(ctx context.Context, name string, signal unix.Signal, want process.State) error {
	return f.changeComponent(ctx, name, func(_ *state.Fleet, c *state.Component) error {
		if c.State() == process.Dead {
			return fmt.Errorf("%s is dead: start it with `sandbox restart --dir %s %s`", name, f.dir, name)
		}
		if err := c.Signal(signal); err != nil {
			return err
		}
		ctx, cancel := context.WithTimeout(ctx, stopTimeout)
		defer cancel()
		tick := time.NewTicker(time.Millisecond)
		defer tick.Stop()
		for c.State() != want {
			select {
			case <-ctx.Done():
				return fmt.Errorf("%s is %s, want %s: %w", name, c.State(), want, ctx.Err())
			case <-tick.C:
			}
		}
		f.progress.Say("%s %s", name, want)
		return nil
	})
}

func (f *Fleet) changeComponent(ctx context.Context, name string, fn func(*state.Fleet, *state.Component) error) error {
	return f.change(ctx, func(st *state.Fleet) error {
		c := st.Component(name)
		if c == nil {
			var known []string
			for _, c := range st.Components {
				known = append(known, c.Name)
			}
			return fmt.Errorf("unknown component %q; components are %s", name, strings.Join(known, ", "))
		}
		return fn(st, c)
	})
}
