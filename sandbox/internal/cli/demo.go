package cli

import (
	"os/signal"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/namesake-io/namesake/sandbox/internal/demo"
)

func demoCommand() *cobra.Command {
	var options demo.Options
	cmd := &cobra.Command{
		Use:   "demo [--members N] [--keep]",
		Short: "Show the main job on a fleet of its own, with times",
		Long: `Bring up a fleet in a temporary directory and show the main job on it, step by
step: a Service of member1 becomes known in every member under its own name, its
changes arrive, and nothing is lost when a member's API server or the hub stops.

What is said is measured and checked: a step that does not hold ends the demo with
an error. The fleet is taken down at the end, and on SIGINT.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := complete(&options.Fleet); err != nil {
				return err
			}
			// When nobody reads any more (`sandbox demo | head`), the story ends and
			// takes its fleet down, instead of dying and leaving it.
			ctx, stop := signal.NotifyContext(cmd.Context(), unix.SIGPIPE)
			defer stop()
			options.Out = cmd.OutOrStdout()
			return demo.Run(ctx, options)
		},
	}
	flags := cmd.Flags()
	flags.IntVar(&options.Fleet.Members, "members", 3, "how many `members` the fleet has, at least 3")
	flags.BoolVar(&options.Keep, "keep", false, "leave the fleet running and say what to try next")
	flags.StringVar(&options.Fleet.BinDir, "bin-dir", "", "`directory` of kubebox, namesakectl and controller-manager (default: that of sandbox)")
	return cmd
}
