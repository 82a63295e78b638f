package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/namesake-io/namesake/sandbox/internal/fleet"
)

// minMembers is what the story needs: one that stops, and two that carry on.
const minMembers = 3

// downLimit bounds the end, which comes even when ctx has ended.
const downLimit = time.Minute

// Options of a run.
type Options struct {
	// Fleet says where the programs are, and how many members there are to be.
	Fleet fleet.UpOptions
	// Keep leaves the fleet running at the end.
	Keep bool
	// Out is where the story is told.
	Out io.Writer
}

// Run brings a fleet up in a temporary directory, tells the story and takes the
// fleet down. The error says what did not hold.
func Run(ctx context.Context, o Options) error {
	if o.Fleet.Members < minMembers {
		return fmt.Errorf("the story needs at least %d members: one that stops, and two that carry on", minMembers)
	}
	dir, err := os.MkdirTemp("", "namesake-demo-")
	if err != nil {
		return fmt.Errorf("making a directory for the fleet: %w", err)
	}
	o.Fleet.DataPlane = canSendPackets()
	r := &run{Options: o, output: newOutput(o.Out, os.Getenv), dir: dir, began: time.Now()}
	if err := r.all(ctx); err != nil {
		return r.failed(ctx, err)
	}
	if o.Keep {
		r.invite()
		return nil
	}
	if err := r.down(ctx); err != nil {
		return err
	}
	r.say("The fleet is taken down. `make demo KEEP=1` leaves you one to play with.")
	return nil
}

// run is one run.
type run struct {
	Options
	*output
	dir   string
	began time.Time
	// up is the fleet once it has come up.
	up *fleet.Fleet
}

// all is the story from its beginning to its table.
func (r *run) all(ctx context.Context) error {
	r.title("Namesake: one Service, one name, in every cluster.")
	list := steps(r.Fleet.DataPlane)
	total := len(list) + 1
	r.heading(1, total, fmt.Sprintf("A hub and %s clusters", number(r.Fleet.Members)))
	status, err := r.start(ctx)
	if err != nil {
		return err
	}
	w, err := openWorld(ctx, status)
	if err != nil {
		return err
	}
	defer w.close()
	if !r.Fleet.DataPlane {
		r.say("Without a data plane, which needs root, nft and curl: this shows what clusters know, and no packets.")
	}
	r.fact(fmt.Sprintf("Up, and %s have joined the hub, after", namesOf(w.members)), time.Since(r.began))
	s := &story{
		output: r.output, world: w, fleet: r.up, binDir: r.Fleet.BinDir, hub: status.Hub.Kubeconfig,
		dir: r.dir, sandbox: r.Fleet.Sandbox,
	}
	for i, step := range list {
		r.heading(i+2, total, step.title)
		if err := r.tell(ctx, s, step); err != nil {
			return fmt.Errorf("step %d (%s) did not hold: %w", i+2, step.title, err)
		}
	}
	r.sum(s)
	return nil
}

func (r *run) tell(ctx context.Context, s *story, step step) error {
	ctx, cancel := context.WithTimeout(ctx, stepLimit)
	defer cancel()
	return errors.Join(step.tell(s, ctx), s.world.losses())
}

// start brings the fleet up.
func (r *run) start(ctx context.Context) (fleet.Status, error) {
	f, err := fleet.Open(r.dir, fleet.NewProgress(r.progress()))
	if err != nil {
		return fleet.Status{}, err
	}
	if err := f.Up(ctx, r.Fleet); err != nil {
		return fleet.Status{}, err
	}
	// From here on the story says what happens.
	if r.up, err = fleet.Open(r.dir, fleet.NewProgress(io.Discard)); err != nil {
		return fleet.Status{}, err
	}
	return r.up.Status()
}

// sum writes the table of times.
func (r *run) sum(s *story) {
	fmt.Fprintln(r.w)
	r.title("What was measured")
	for _, m := range s.measured {
		r.figure(m.what, m.figure)
	}
	events := 0
	for _, m := range s.world.members {
		events += m.book.total()
	}
	r.figure(fmt.Sprintf("Endpoints that a consumer lost on the way, in %d events", events), "none")
	r.fact("The whole story", time.Since(r.began))
	fmt.Fprintln(r.w)
}

// failed ends a run that did not hold: it shows what the controller-manager
// said last, and takes the fleet down.
func (r *run) failed(ctx context.Context, cause error) error {
	if ctx.Err() != nil {
		r.fail("Interrupted: taking the fleet down")
		if err := r.down(ctx); err != nil {
			return err
		}
		return errors.New("interrupted; the fleet is taken down")
	}
	if r.up == nil { // what came up has been taken down, and the error shows its log
		_ = os.Remove(r.dir) // fails if there are logs, which are worth a look
		return cause
	}
	if text := r.managerLog(); text != "" {
		r.fail("The controller-manager said last:")
		r.quote(text)
	}
	if r.Keep {
		return fmt.Errorf("%w\nthe fleet is kept: `%s down --dir %s` takes it down", cause, r.program("sandbox"), r.dir)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), downLimit)
	defer cancel()
	if err := r.up.Down(ctx); err != nil {
		return errors.Join(cause, fmt.Errorf("taking the fleet down: %w", err))
	}
	return fmt.Errorf("%w\nthe fleet is taken down; its logs are in %s", cause, filepath.Join(r.dir, "logs"))
}

// managerLog returns the end of the controller-manager's log.
func (r *run) managerLog() string {
	status, err := r.up.Status()
	if err != nil {
		return ""
	}
	for _, c := range status.Components {
		if c.Name == manager {
			data, err := os.ReadFile(c.Log)
			if err != nil {
				return ""
			}
			return tail(string(data))
		}
	}
	return ""
}

// down takes the fleet down and leaves nothing.
func (r *run) down(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), downLimit)
	defer cancel()
	if r.up != nil {
		if err := r.up.Down(ctx); err != nil {
			return fmt.Errorf("taking the fleet down: %w", err)
		}
	}
	return os.RemoveAll(r.dir)
}

// invite says what to try with a fleet that is kept.
func (r *run) invite() {
	r.title("The fleet is yours. Try:")
	kubectl := "kubectl --context member2 -n " + namespace
	for _, line := range []string{
		"export KUBECONFIG=" + filepath.Join(r.dir, "kubeconfig"),
		fmt.Sprintf("%s expose %s -n %s", r.program("namesakectl"), serviceName, namespace),
		fmt.Sprintf("%s get services -n %s -o wide", r.program("namesakectl"), namespace),
		kubectl + " get services,endpointslices",
		fmt.Sprintf("%s fault --dir %s member1 api-down", r.program("sandbox"), r.dir),
		r.program("namesakectl") + " get clusters     # half a minute later",
		fmt.Sprintf("%s fault --dir %s member1 api-down off", r.program("sandbox"), r.dir),
		fmt.Sprintf("%s status --dir %s", r.program("sandbox"), r.dir),
		fmt.Sprintf("%s down --dir %s", r.program("sandbox"), r.dir),
	} {
		fmt.Fprintf(r.w, "  %s\n", line)
	}
}

// program names a program as it can be called from here.
func (r *run) program(name string) string {
	path := filepath.Join(r.Fleet.BinDir, name)
	here, err := os.Getwd()
	if err != nil {
		return path
	}
	if short, err := filepath.Rel(here, path); err == nil && filepath.IsLocal(short) && strings.Contains(short, "/") {
		return short
	}
	return path
}
