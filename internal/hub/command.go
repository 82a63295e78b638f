package hub

import (
	"fmt"

	"github.com/spf13/cobra"
	logsapi "k8s.io/component-base/logs/api/v1"
	"k8s.io/component-base/version/verflag"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
)

// NewCommand returns the controller-manager's command.
func NewCommand(opts *Options) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "controller-manager",
		Short: "Keeps every service's endpoints standing in every cluster that calls it",
		Long: `The controller-manager is Namesake's hub: it watches the EndpointSlices of member
clusters, remembers them, and keeps them standing in every cluster that consumes
the service. It needs the kinds that 'namesakectl install' puts on the hub, and
members that 'namesakectl join' has joined.`,
		Args:          cobra.NoArgs,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			verflag.PrintAndExitIfRequested()
			if err := opts.Validate(); err != nil {
				return err
			}
			if err := logsapi.ValidateAndApply(opts.Logs, opts.Features); err != nil {
				return fmt.Errorf("setting up logs: %w", err)
			}
			ctrl.SetLogger(klog.Background())
			return Run(cmd.Context(), opts)
		},
	}
	opts.AddFlags(cmd.Flags())
	verflag.AddFlags(cmd.Flags())
	return cmd
}
