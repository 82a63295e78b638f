package join

import (
	"github.com/spf13/cobra"

	"github.com/namesake-io/namesake/internal/cli/complete"
	"github.com/namesake-io/namesake/internal/cli/console"
	"github.com/namesake-io/namesake/internal/cli/target"
)

// NewCommand returns `join`.
func NewCommand(f *target.Factory) *cobra.Command {
	o := &Options{}
	cmd := &cobra.Command{
		Use:   "join NAME --cluster-kubeconfig FILE",
		Short: "Make a cluster a member",
		Long: `Make a cluster a member: give the hub an account in it, with the least rights
that it can work with, and tell the hub of it under NAME.

Joining a member again under its name renews the hub's credential and changes
nothing else.`,
		Args: console.ExactArgs("NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Name = args[0]
			if err := o.Validate(); err != nil {
				return err
			}
			return Run(cmd.Context(), f, *o)
		},
	}
	o.AddFlags(cmd.Flags())
	complete.Flag(cmd, "cluster-context", complete.Contexts(f, "cluster-kubeconfig"))
	return cmd
}
