package cli

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/namesake-io/namesake/sandbox/internal/fleet"
)

const upExample = `  sandbox up --dir /tmp/fleet --members 3
  kubectl --kubeconfig /tmp/fleet/kubeconfig --context member1 get namespaces
  sandbox down --dir /tmp/fleet`

func upCommand() *cobra.Command {
	var (
		dir                string
		options            fleet.UpOptions
		foreground, dryRun bool
	)
	cmd := &cobra.Command{
		Use:   "up --dir DIR [--members N]",
		Short: "Start a fleet and return when all of it is ready",
		Long: `Start a hub and its members and return when all is ready.

Plain, the hub has Namesake's types, bin/controller-manager runs against it, and
every member is joined and Ready. With --pull, some of them are not called by the
hub: an agent stands in for it, as component memberN-agent. With --bare, there are control planes only.

With --data-plane, each member has a node that runs pods as processes of this
machine, with kube-proxy, CoreDNS and a network between members. This needs root;
without it, the control planes come up alone.

DIR then has hub.kubeconfig, member1.kubeconfig …, kubeconfig with all contexts,
hub-paths/ with the kubeconfigs that go the way of the hub (which faults can cut
or slow), logs/ and state.json. If anything fails, nothing but logs is left.`,
		Example: upExample,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			f, err := open(cmd, dir)
			if err != nil {
				return err
			}
			if err := complete(&options); err != nil {
				return err
			}
			if dryRun {
				return f.DryRun(options, cmd.OutOrStdout())
			}
			if err := f.Up(cmd.Context(), options); err != nil {
				return err
			}
			return announce(cmd, f, foreground)
		},
	}
	addDir(cmd, &dir)
	flags := cmd.Flags()
	flags.IntVar(&options.Members, "members", 2, "how many `members` the fleet has")
	flags.StringVar(&options.Pull, "pull", "", "`which` members call the hub by an agent of their own: a number of them, the last ones, or names with commas between")
	flags.BoolVar(&options.Bare, "bare", false, "control planes only, nothing of Namesake on them")
	flags.BoolVar(&foreground, "foreground", false, "stay, and take the fleet down on SIGINT or SIGTERM")
	flags.BoolVar(&dryRun, "dry-run", false, "print files, commands and ports, and do nothing (free ports differ each time)")
	flags.IntVar(&options.PortBase, "port-base", 0, "use this `port` and those that follow (default: free ones)")
	flags.StringVar(&options.BinDir, "bin-dir", "", "`directory` of kubebox, namesakectl and controller-manager (default: that of sandbox)")
	flags.BoolVar(&options.DataPlane, "data-plane", false, "nodes that run pods, kube-proxy, CoreDNS and a network between members (needs root)")
	flags.StringVar(&options.Images, "images", "", "`file` that maps more image names to programs of this machine")
	flags.StringArrayVar(&options.ControllerManagerArgs, "controller-manager-arg", nil, "another `argument` for controller-manager (repeatable)")
	flags.StringArrayVar(&options.AgentArgs, "agent-arg", nil, "another `argument` for the agents of pull members (repeatable)")
	return cmd
}

// complete finds the programs.
func complete(o *fleet.UpOptions) error {
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("finding this program: %w", err)
	}
	o.Sandbox = self
	if o.BinDir == "" {
		o.BinDir = filepath.Dir(self)
	}
	if o.BinDir, err = filepath.Abs(o.BinDir); err != nil {
		return fmt.Errorf("finding --bin-dir: %w", err)
	}
	if o.Images != "" {
		if o.Images, err = filepath.Abs(o.Images); err != nil {
			return fmt.Errorf("finding --images: %w", err)
		}
	}
	return nil
}

// announce says how to use the fleet, and stays with it if asked to.
func announce(cmd *cobra.Command, f *fleet.Fleet, foreground bool) error {
	status, err := f.Status()
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(cmd.OutOrStdout(), "export KUBECONFIG=%s\n", status.Kubeconfig); err != nil {
		return err
	}
	if !foreground {
		return nil
	}
	fmt.Fprintln(cmd.ErrOrStderr(), "ready; Ctrl-C takes it down")
	return f.Hold(cmd.Context())
}
