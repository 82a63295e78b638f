package unjoin

import (
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/namesake-io/namesake/internal/cli/complete"
	"github.com/namesake-io/namesake/internal/cli/console"
	"github.com/namesake-io/namesake/internal/cli/target"
)

// Options of an unjoin.
type Options struct {
	// Name of the cluster on the hub.
	Name string
	// Kubeconfig and Context of the member; without them its account stays.
	Kubeconfig, Context string
	// Force does not wait for a member that can't be reached.
	Force bool
	// WaitTimeout is how long to wait until the Cluster is gone.
	WaitTimeout time.Duration
}

// AddFlags adds the flags of the command.
func (o *Options) AddFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.Kubeconfig, "cluster-kubeconfig", "", "kubeconfig file of the cluster, to remove the hub's account from it too")
	flags.StringVar(&o.Context, "cluster-context", "", "context of that kubeconfig (default: its current-context)")
	flags.BoolVar(&o.Force, "force", false, "do not wait for a cluster that cannot be reached: what stays in it is reported")
	flags.DurationVar(&o.WaitTimeout, "wait-timeout", 60*time.Second, "how long to wait until the hub has let go of the cluster")
}

// NewCommand returns `unjoin`.
func NewCommand(f *target.Factory) *cobra.Command {
	o := &Options{}
	cmd := &cobra.Command{
		Use:   "unjoin NAME",
		Short: "Let a member go",
		Long: `Let a member go: its endpoints leave the other clusters, what Namesake put into
it is removed, and the hub forgets it. With --cluster-kubeconfig the hub's
account is removed from it as well; without, the commands that do it are
printed.`,
		Args:              console.ExactArgs("NAME"),
		ValidArgsFunction: complete.First(complete.Clusters(f)),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Name = args[0]
			return Run(cmd.Context(), f, *o)
		},
	}
	o.AddFlags(cmd.Flags())
	complete.Flag(cmd, "cluster-context", complete.Contexts(f, "cluster-kubeconfig"))
	return cmd
}
