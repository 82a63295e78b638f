package agent

import (
	"fmt"

	"github.com/spf13/cobra"
	logsapi "k8s.io/component-base/logs/api/v1"
	"k8s.io/component-base/version/verflag"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/namesake-io/namesake/internal/feature"
)

// NewCommand returns the agent's command.
func NewCommand(opts *Options) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "agent",
		Short: "Stands in for the hub in a cluster that the hub does not call",
		Long: `The agent runs in a member that has registered itself (syncMode Pull). It calls
the hub, tells it of its cluster's endpoints, and keeps those of other clusters
standing in its own. 'namesakectl register' makes what it needs.`,
		Args:          cobra.NoArgs,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			verflag.PrintAndExitIfRequested()
			if err := opts.Validate(); err != nil {
				return err
			}
			gate, err := feature.NewGate()
			if err != nil {
				return err
			}
			if err := logsapi.ValidateAndApply(opts.Logs, gate); err != nil {
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
