package register

import (
	"github.com/spf13/cobra"

	"github.com/namesake-io/namesake/internal/cli/complete"
	"github.com/namesake-io/namesake/internal/cli/console"
	"github.com/namesake-io/namesake/internal/cli/target"
)

// NewCommand returns `register`.
func NewCommand(f *target.Factory) *cobra.Command {
	o := &Options{}
	cmd := &cobra.Command{
		Use:   "register NAME --cluster-kubeconfig FILE",
		Short: "Make a cluster a member that calls the hub, instead of the hub it",
		Long: `Make a cluster a member that calls the hub, instead of the hub it. 'token create
NAME', run against the hub, prints the whole command. It needs no access to the
hub but that token, which is used up by it.

Registering a member again under its name renews its agent's credential.`,
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
