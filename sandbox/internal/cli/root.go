package cli

import (
	"errors"
	"fmt"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/namesake-io/namesake/sandbox/internal/fleet"
)

// New makes the command. It prints no errors itself.
func New(version string) *cobra.Command {
	root := &cobra.Command{
		Use:   "sandbox",
		Short: "Run fleets of real Kubernetes control planes on this machine",
		Long: `Sandbox runs a hub and its members on this machine: real API servers, one etcd
and the real controllers, without containers and without root. Everything
listens on loopback and lives in one directory.`,
		Version:       version,
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.AddCommand(
		upCommand(), statusCommand(), downCommand(), faultCommand(), demoCommand(), relayCommand(), versionCommand(version),
		execCommand(), fabricCommand(), insideCommand(), containCommand(), nodeCommand(), echoCommand(), askCommand(), pageCommand(), agnhostCommand(),
		componentCommand("restart", "End a component and start it as it was", (*fleet.Fleet).Restart),
		componentCommand("kill", "End a component with SIGKILL", (*fleet.Fleet).Kill),
		componentCommand("stop", "Halt a component with SIGSTOP", (*fleet.Fleet).Stop),
		componentCommand("cont", "Let a stopped component go on, with SIGCONT", (*fleet.Fleet).Continue),
	)
	return root
}

func versionCommand(version string) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "sandbox %s (%s)\n", version, runtime.Version())
			return err
		},
	}
}

// addDir adds the flag that names a fleet.
func addDir(cmd *cobra.Command, dir *string) {
	cmd.Flags().StringVar(dir, "dir", "", "the fleet's `directory` (required)")
	cmd.PreRunE = func(*cobra.Command, []string) error {
		if *dir == "" {
			return errors.New("--dir is required: the directory of the fleet")
		}
		return nil
	}
}

// open names the fleet of a command. Progress goes to standard error.
func open(cmd *cobra.Command, dir string) (*fleet.Fleet, error) {
	return fleet.Open(dir, fleet.NewProgress(cmd.ErrOrStderr()))
}
