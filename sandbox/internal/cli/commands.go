package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/namesake-io/namesake/sandbox/internal/fault"
	"github.com/namesake-io/namesake/sandbox/internal/fleet"
	"github.com/namesake-io/namesake/sandbox/internal/plan"
	"github.com/namesake-io/namesake/sandbox/internal/relay"
)

func statusCommand() *cobra.Command {
	var dir, output string
	cmd := &cobra.Command{
		Use:   "status --dir DIR [-o json]",
		Short: "Show components, members and faults",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if output != "" && output != "json" {
				return fmt.Errorf("unknown output %q: leave -o out, or say json", output)
			}
			f, err := open(cmd, dir)
			if err != nil {
				return err
			}
			status, err := f.Status()
			if err != nil {
				return err
			}
			if output == "json" {
				encoder := json.NewEncoder(cmd.OutOrStdout())
				encoder.SetIndent("", "  ")
				return encoder.Encode(status)
			}
			return status.Print(cmd.OutOrStdout())
		},
	}
	addDir(cmd, &dir)
	cmd.Flags().StringVarP(&output, "output", "o", "", "output `format`: json")
	return cmd
}

func downCommand() *cobra.Command {
	var dir string
	cmd := &cobra.Command{
		Use:   "down --dir DIR",
		Short: "Take a fleet down; run it as often as you like",
		Long: `End every process of a fleet and remove its files, except logs. It works on a
fleet that was killed half-way, and on none.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			f, err := open(cmd, dir)
			if err != nil {
				return err
			}
			return f.Down(cmd.Context())
		},
	}
	addDir(cmd, &dir)
	return cmd
}

func componentCommand(use, short string, run func(*fleet.Fleet, context.Context, string) error) *cobra.Command {
	var dir string
	cmd := &cobra.Command{
		Use:   use + " --dir DIR COMPONENT",
		Short: short,
		Args:  exactly("COMPONENT, as `sandbox status` lists them"),
		RunE: func(cmd *cobra.Command, args []string) error {
			f, err := open(cmd, dir)
			if err != nil {
				return err
			}
			return run(f, cmd.Context(), args[0])
		},
	}
	addDir(cmd, &dir)
	return cmd
}

// exactly wants one argument and says what it is for.
func exactly(what string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) != 1 {
			return fmt.Errorf("give one argument: %s", what)
		}
		return nil
	}
}

func faultCommand() *cobra.Command {
	var dir string
	cmd := &cobra.Command{
		Use:   "fault --dir DIR MEMBER FAULT [on|off]",
		Short: "Bring a fault of a member about, or take it away",
		Long: `Bring a fault of a member about, or take it away. Faults:

  api-down          the member's API server is stopped
  api-unreachable   the path from the hub to the member is a black hole:
                    connections hang, old ones and new ones
  api-slow=200ms    each round trip from the hub to the member takes so much longer

Paths other than the hub's (memberN.kubeconfig) are not touched by the last two.
For a member with an agent, the path is that from the agent to the hub.
With a data plane, as root:

  east-west-down    the member's link to the other members is down
  pods-unreachable  the member's pods hear nobody and are heard by nobody; probes
                    of its own node still reach them, and its API server is fine
  packet-loss=20%   so many packets are lost on the link to the other members,
                    each way
  latency=50ms      each round trip over that link takes so much longer`,
		Example: "  sandbox fault --dir DIR member1 api-slow=200ms\n  sandbox fault --dir DIR member1 api-slow off",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) < 2 || len(args) > 3 {
				return fmt.Errorf("give MEMBER, FAULT and perhaps on or off; faults are %s", strings.Join(fault.Usage(), ", "))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			on := true
			if len(args) == 3 {
				switch args[2] {
				case "on":
				case "off":
					on = false
				default:
					return fmt.Errorf("a fault is on or off, not %q", args[2])
				}
			}
			wanted, err := fault.Parse(args[1], on)
			if err != nil {
				return err
			}
			f, err := open(cmd, dir)
			if err != nil {
				return err
			}
			return f.SetFault(cmd.Context(), args[0], wanted, on)
		},
	}
	addDir(cmd, &dir)
	return cmd
}

// relayCommand is what a fleet runs as its component relay.
func relayCommand() *cobra.Command {
	var dir string
	cmd := &cobra.Command{
		Use:    "relay --dir DIR",
		Short:  "Carry the hub's connections to the members (a part of each fleet)",
		Args:   cobra.NoArgs,
		Hidden: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return relay.Run(cmd.Context(), relay.Options{
				Config: filepath.Join(dir, plan.RelayFile),
				Socket: filepath.Join(dir, plan.RelaySocket),
				Logger: slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), nil)),
			})
		},
	}
	addDir(cmd, &dir)
	return cmd
}
