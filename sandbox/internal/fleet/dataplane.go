package fleet

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/namesake-io/namesake/sandbox/internal/contain"
	"github.com/namesake-io/namesake/sandbox/internal/fabric"
	"github.com/namesake-io/namesake/sandbox/internal/fault"
	"github.com/namesake-io/namesake/sandbox/internal/netns"
	"github.com/namesake-io/namesake/sandbox/internal/plan"
	"github.com/namesake-io/namesake/sandbox/internal/process"
	"github.com/namesake-io/namesake/sandbox/internal/state"
)

// id tells this fleet's network namespaces from those of others. It follows from
// the directory alone, so that they are found when every record is lost.
func (f *Fleet) id() string {
	sum := sha256.Sum256([]byte(f.dir))
	return hex.EncodeToString(sum[:4])
}

// settleDataPlane leaves the data plane out where it can't be, and says so.
func (o *UpOptions) settleDataPlane(progress *Progress) {
	if o.DataPlane && os.Geteuid() != 0 {
		progress.Say("a data plane needs root (network namespaces, nftables): starting the control planes alone")
		o.DataPlane = false
	}
}

func (o UpOptions) validateDataPlane() error {
	if !o.DataPlane {
		return nil
	}
	if _, err := exec.LookPath("nft"); err != nil {
		return errors.New("a data plane needs the program nft, which kube-proxy calls: run `apt-get install nftables`")
	}
	if o.Images != "" {
		if _, err := os.Stat(o.Images); err != nil {
			return fmt.Errorf("reading --images: %w", err)
		}
	}
	return nil
}

func (f *Fleet) writeDataPlane(p *plan.Plan) error {
	if p.Network == nil {
		return nil
	}
	data, err := json.MarshalIndent(p.Network, "", "  ")
	if err != nil {
		return fmt.Errorf("encoding the network: %w", err)
	}
	errs := []error{writePrivate(f.path(plan.NetworkFile), append(data, '\n'))}
	for _, t := range p.Texts {
		errs = append(errs, writePrivate(t.Path, []byte(t.Data)))
	}
	return errors.Join(errs...)
}

// removeNetwork takes the fleet's namespaces away, whatever the record says.
func (f *Fleet) removeNetwork() error {
	names, err := netns.List(plan.NamespacePrefix(f.id()))
	if err != nil || len(names) == 0 || os.Geteuid() != 0 {
		return err
	}
	return fabric.Remove(f.id())
}

// member returns the network of a member of a fleet with a data plane.
func (f *Fleet) member(st *state.Fleet, name string) (*plan.Network, plan.MemberNetwork, error) {
	if members := plan.Members(st.Members); !slices.Contains(members, name) {
		return nil, plan.MemberNetwork{}, fmt.Errorf("unknown member %q; members are %s", name, strings.Join(members, ", "))
	}
	if !st.DataPlane {
		return nil, plan.MemberNetwork{}, fmt.Errorf("the fleet in %s has no data plane: start it with `sandbox up --dir %s --data-plane` as root", f.dir, f.dir)
	}
	n, err := fabric.Read(f.path(plan.NetworkFile))
	if err != nil {
		return nil, plan.MemberNetwork{}, err
	}
	m, err := n.Member(name)
	return n, m, err
}

// setNetwork gives a member's network the faults that the record wants of it.
func (f *Fleet) setNetwork(st *state.Fleet, name string) error {
	n, m, err := f.member(st, name)
	if err != nil {
		return err
	}
	if os.Geteuid() != 0 {
		return errors.New("faults of a data plane need root")
	}
	var wanted fabric.Faults
	given := st.Faults[name]
	_, wanted.LinkDown = given[string(fault.EastWestDown)]
	_, wanted.PodsUnreachable = given[string(fault.PodsUnreachable)]
	if text, ok := given[string(fault.PacketLoss)]; ok {
		if wanted.Loss, err = fault.Share(text); err != nil {
			return err
		}
	}
	if text, ok := given[string(fault.Latency)]; ok {
		if wanted.Latency, err = time.ParseDuration(text); err != nil {
			return err
		}
	}
	return fabric.SetFaults(n, m, wanted)
}

// Exec runs a command in the member's client pod, with the caller's input and
// output, and returns its exit code.
func (f *Fleet) Exec(ctx context.Context, self, member string, argv []string) (int, error) {
	st, err := f.load()
	if err != nil {
		return 0, err
	}
	_, m, err := f.member(st, member)
	if err != nil {
		return 0, err
	}
	if os.Geteuid() != 0 {
		return 0, errors.New("a client pod is entered by root only")
	}
	here, err := os.Getwd()
	if err != nil {
		return 0, fmt.Errorf("finding the working directory: %w", err)
	}
	cmd, err := contain.Cmd(self, contain.Spec{
		Namespace: m.Client, WorkingDir: here,
		Resolver: plan.MemberFile(f.dir, member, "resolv.conf"),
		Hostname: "client",
		Argv:     argv,
		Env:      process.Environ(f.dir),
	})
	if err != nil {
		return 0, err
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	if err := cmd.Start(); err != nil {
		return 0, fmt.Errorf("starting %s: %w", argv[0], err)
	}
	// Ctrl-C reaches the command by itself; other ends of ours end it, too.
	stop := context.AfterFunc(ctx, func() { _ = cmd.Process.Signal(os.Interrupt) })
	defer stop()
	return contain.ExitCode(cmd.Wait())
}
