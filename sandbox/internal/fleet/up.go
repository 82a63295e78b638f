package fleet

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/namesake-io/namesake/sandbox/internal/plan"
	"github.com/namesake-io/namesake/sandbox/internal/ports"
	"github.com/namesake-io/namesake/sandbox/internal/process"
	"github.com/namesake-io/namesake/sandbox/internal/state"
)

// endTimeout bounds an end that nobody waits for with a context of his own.
const endTimeout = time.Minute

// UpOptions say what fleet to bring up.
type UpOptions struct {
	Members int
	Bare    bool
	// Pull says which members have an agent, see plan.ParsePull.
	Pull string
	// BinDir is where kubebox and, unless Bare, our own programs are.
	BinDir string
	// Sandbox is the path of this program.
	Sandbox string
	// PortBase is the first port to use; 0 finds free ones.
	PortBase int
	// ControllerManagerArgs are added to those of our controller-manager.
	ControllerManagerArgs []string
	// AgentArgs are added to those of our agents.
	AgentArgs []string
	// DataPlane adds nodes that run pods, whose images are programs of this
	// machine; Images may name a file with more of them.
	DataPlane bool
	Images    string
}

func (o UpOptions) validate() error {
	if err := plan.CheckMembers(o.Members); err != nil {
		return err
	}
	programs := []string{"kubebox"}
	if !o.Bare {
		programs = append(programs, "namesakectl", "controller-manager")
		if o.Pull != "" {
			programs = append(programs, "agent")
		}
	} else if len(o.ControllerManagerArgs) > 0 {
		return errors.New("a bare fleet has no controller-manager to give arguments to")
	}
	for _, name := range programs {
		if _, err := exec.LookPath(filepath.Join(o.BinDir, name)); err != nil {
			return fmt.Errorf("%s is missing in %s: run `make build`, or say where it is with --bin-dir (%w)", name, o.BinDir, err)
		}
	}
	return o.validateDataPlane()
}

// Up brings a fleet up and returns when all of it is ready. When anything fails
// or the context ends, it takes down what it has made.
func (f *Fleet) Up(ctx context.Context, o UpOptions) error {
	o.settleDataPlane(f.progress)
	if err := o.validate(); err != nil {
		return err
	}
	made, err := f.makeDir()
	if err != nil {
		return err
	}
	unlock, err := f.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	if err := f.clear(ctx); err != nil {
		return err
	}
	if err := f.build(ctx, o); err != nil {
		if ctx.Err() != nil {
			err = fmt.Errorf("interrupted: %w", err)
		}
		f.progress.Say("failed, taking down")
		// The end must come even though ctx may be what ended the beginning.
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTimeout)
		defer cancel()
		err = errors.Join(err, f.tearDown(end))
		f.removeTraces(made)
		return err
	}
	return nil
}

// clear makes room: it refuses to touch a fleet that runs, and cleans up after
// one that was killed.
func (f *Fleet) clear(ctx context.Context) error {
	st, err := state.Load(f.dir)
	if errors.Is(err, state.ErrNone) {
		return errors.Join(f.checkForeign(), f.sweep(ctx), f.removeNetwork())
	}
	if err == nil && st.Phase == state.Ready {
		alive := 0
		for _, c := range st.Components {
			if c.State() != process.Dead {
				alive++
			}
		}
		if alive > 0 {
			return fmt.Errorf("a fleet is running in %s (%d of %d components): take it down first with `sandbox down --dir %s`", f.dir, alive, len(st.Components), f.dir)
		}
	}
	f.progress.Say("cleaning up after a fleet that did not end well")
	return f.tearDown(ctx)
}

// removeTraces removes directories of a failed start if they hold nothing worth
// a look. Logs say why it failed, so they stay.
func (f *Fleet) removeTraces(made bool) {
	_ = os.Remove(f.path(logsDir)) // fails if there are logs
	if made {
		_ = os.Remove(f.dir)
	}
}

// build makes the fleet. On failure the caller takes down what there is of it.
func (f *Fleet) build(ctx context.Context, o UpOptions) error {
	if err := checkDisk(f.dir, baseDisk+memberDisk*uint64(o.Members+1)); err != nil {
		return err
	}
	p, held, err := f.plan(o)
	if err != nil {
		return err
	}
	defer held.ReleaseAll()
	st := &state.Fleet{Instance: rand.Text(), Phase: state.Starting, Bare: o.Bare, Members: o.Members, DataPlane: o.DataPlane}
	planned := slices.Concat(p.Components, p.Manager)
	for _, pull := range p.Pulls {
		planned = append(planned, pull.Agent)
	}
	for _, c := range planned {
		st.Components = append(st.Components, state.Component{Component: c})
	}
	if err := st.Save(f.dir); err != nil {
		return err
	}
	if err := f.writeFiles(p); err != nil {
		return err
	}
	s := newStarter(f, st, held)
	if err := s.startAll(ctx, p.Components); err != nil {
		return err
	}
	if err := s.addNamesake(ctx, p); err != nil {
		return err
	}
	st.Phase = state.Ready
	return st.Save(f.dir)
}

// addNamesake carries out the part of the plan that is ours.
func (s *starter) addNamesake(ctx context.Context, p *plan.Plan) error {
	for _, step := range p.Install {
		if err := s.run(ctx, step); err != nil {
			return err
		}
	}
	if err := s.startAll(ctx, p.Manager); err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	for _, step := range p.Joins {
		group.Go(func() error {
			return s.inSlot(ctx, func() error { return s.run(ctx, step) })
		})
	}
	for _, pull := range p.Pulls {
		group.Go(func() error {
			return s.inSlot(ctx, func() error { return s.pull(ctx, pull) })
		})
	}
	return group.Wait()
}

// pull registers a member and starts its agent.
func (s *starter) pull(ctx context.Context, p plan.Pull) error {
	for _, step := range p.Register {
		if err := s.run(ctx, step); err != nil {
			return err
		}
	}
	return s.start(ctx, p.Agent)
}

func (f *Fleet) plan(o UpOptions) (*plan.Plan, *ports.Held, error) {
	pull, err := plan.ParsePull(o.Pull, o.Members)
	if err != nil {
		return nil, nil, err
	}
	names := append(plan.PortNames(o.Members, o.Bare), plan.AgentPortNames(pull)...)
	if o.DataPlane {
		names = append(names, plan.DataPlanePortNames(o.Members)...)
	}
	held, err := ports.Choose(names, o.PortBase)
	if err != nil {
		return nil, nil, err
	}
	p, err := plan.New(plan.Options{
		Dir: f.dir, BinDir: o.BinDir, Sandbox: o.Sandbox,
		Members: o.Members, Bare: o.Bare, Ports: held.Numbers,
		Pull: pull, AgentArgs: o.AgentArgs,
		ControllerManagerArgs: o.ControllerManagerArgs,
		DataPlane:             o.DataPlane, FleetID: f.id(), Images: o.Images,
	})
	if err != nil {
		held.ReleaseAll()
		return nil, nil, err
	}
	return p, held, nil
}

// DryRun prints the plan of a fleet and does nothing else.
func (f *Fleet) DryRun(o UpOptions, w io.Writer) error {
	if err := plan.CheckMembers(o.Members); err != nil {
		return err
	}
	p, held, err := f.plan(o)
	if err != nil {
		return err
	}
	held.ReleaseAll()
	return p.Print(w)
}

// vanishInterval is how often a fleet in the foreground looks whether it was
// taken down by somebody else.
const vanishInterval = 500 * time.Millisecond

// Hold keeps a fleet that is up in the foreground: when the context ends it
// takes it down, and when another command has taken it down it returns.
func (f *Fleet) Hold(ctx context.Context) error {
	mine, err := f.load()
	if err != nil {
		return err
	}
	tick := time.NewTicker(vanishInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return f.downAfter(ctx)
		case <-tick.C:
			if now, err := state.Load(f.dir); errors.Is(err, state.ErrNone) || err == nil && now.Instance != mine.Instance {
				f.progress.Say("another command took the fleet down")
				return nil
			}
		}
	}
}

// downAfter takes the fleet down although the context has ended.
func (f *Fleet) downAfter(ctx context.Context) error {
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTimeout)
	defer cancel()
	return f.Down(end)
}
