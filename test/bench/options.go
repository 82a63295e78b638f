package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/pflag"
)

// options are what the flags of a run say.
type options struct {
	members int
	out     string

	// sandbox is the program that starts fleets.
	sandbox     string
	managerArgs []string

	// Or a control plane that somebody else has started.
	kubeconfigDir                            string
	settleCommand, killCommand, startCommand string
	metricsURL                               string

	repetitions, changes, burst, endpoints int
	pause                                  time.Duration
	many                                   []int
	meanwhile                              int
	foreign                                int
	rest, patience                         time.Duration
}

func newOptions() *options {
	return &options{
		members: 5, sandbox: filepath.Join("bin", "sandbox"),
		repetitions: 5, changes: 100, burst: 50, endpoints: 3, pause: 100 * time.Millisecond,
		meanwhile: 20, rest: 30 * time.Second, patience: 5 * time.Minute,
	}
}

func (o *options) addFlags(fs *pflag.FlagSet) {
	fs.IntVar(&o.members, "members", o.members, "how many members the fleet has")
	fs.StringVar(&o.out, "out", o.out, "`file` for the result, as JSON")
	fs.StringVar(&o.sandbox, "sandbox", o.sandbox, "`program` that starts fleets")
	fs.StringArrayVar(&o.managerArgs, "controller-manager-arg", nil, "another `argument` for the fleet's controller-manager (repeatable)")
	fs.StringVar(&o.kubeconfigDir, "kubeconfig-dir", "", "measure what runs here: `folder` with hub.kubeconfig, member1.kubeconfig …")
	fs.StringVar(&o.settleCommand, "settle-command", "", "shell `command` to run before each measure, besides waiting until the hub is written to no more")
	fs.StringVar(&o.killCommand, "kill-command", "", "shell `command` that kills the control plane under --kubeconfig-dir (without it, T4 is left out)")
	fs.StringVar(&o.startCommand, "start-command", "", "shell `command` that starts it again")
	fs.StringVar(&o.metricsURL, "metrics-url", "", "`URL` of its process metrics (without it, CPU and memory are left out)")
	fs.IntVar(&o.repetitions, "repetitions", o.repetitions, "T1: how many services, one after the other")
	fs.IntVar(&o.changes, "changes", o.changes, "T2: how many changes, one after the other")
	fs.IntVar(&o.burst, "burst", o.burst, "T2: how many services change at once")
	fs.IntVar(&o.endpoints, "endpoints", o.endpoints, "endpoints of each service in each member")
	fs.DurationVar(&o.pause, "pause", o.pause, "T2: from the end of one change to the next")
	fs.IntSliceVar(&o.many, "many", nil, "T3: how many services at once (default 20,200 up to 5 members, 20 up to 10, else none)")
	fs.IntVar(&o.meanwhile, "meanwhile", o.meanwhile, "T4: how many services change while the control plane is dead")
	fs.IntVar(&o.foreign, "foreign", o.foreign, "slices without a wish that are added to each member at the end, for the memory that they take")
	fs.DurationVar(&o.rest, "rest", o.rest, "how long to listen to the control plane at rest")
	fs.DurationVar(&o.patience, "patience", o.patience, "how long one step may take")
}

// complete fills in what follows from other settings.
func (o *options) complete() error {
	if o.kubeconfigDir != "" {
		found, err := filepath.Glob(filepath.Join(o.kubeconfigDir, "member*.kubeconfig"))
		if err != nil {
			return fmt.Errorf("looking into --kubeconfig-dir: %w", err)
		}
		o.members = len(found)
	} else if _, err := os.Stat(o.sandbox); err != nil {
		return fmt.Errorf("--sandbox: run `make build` first: %w", err)
	}
	if o.members < 2 {
		return fmt.Errorf("%d members: a service of one cluster travels nowhere", o.members)
	}
	if (o.killCommand == "") != (o.startCommand == "") {
		return errors.New("--kill-command and --start-command go together")
	}
	if min(o.repetitions, o.changes, o.burst, o.endpoints, o.meanwhile) < 1 {
		return errors.New("--repetitions, --changes, --burst, --endpoints and --meanwhile are at least 1")
	}
	if o.many == nil {
		switch {
		case o.members <= 5:
			o.many = []int{20, 200}
		case o.members <= 10:
			o.many = []int{20}
		}
	}
	return nil
}
