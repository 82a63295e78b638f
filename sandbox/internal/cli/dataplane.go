package cli

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/namesake-io/namesake/sandbox/internal/contain"
	"github.com/namesake-io/namesake/sandbox/internal/fabric"
	"github.com/namesake-io/namesake/sandbox/internal/netns"
	"github.com/namesake-io/namesake/sandbox/internal/node"
)

// exitError is the exit code of a program that ran in our place. It has said
// itself whatever there is to say.
type exitError int

func (e exitError) Error() string { return fmt.Sprintf("exit status %d", int(e)) }

// Exit reports an error of the command and returns the process's exit code.
func Exit(err error, w io.Writer) int {
	var code exitError
	if errors.As(err, &code) {
		return int(code)
	}
	fmt.Fprintln(w, "sandbox:", err)
	return 1
}

func asExit(code int, err error) error {
	if err != nil || code == 0 {
		return err
	}
	return exitError(code)
}

func execCommand() *cobra.Command {
	var dir string
	cmd := &cobra.Command{
		Use:   "exec --dir DIR MEMBER -- COMMAND…",
		Short: "Run a command in a client pod of a member",
		Long: `Run a command of this machine in the network of a member's client pod, with that
member's DNS. The exit code is the command's. Needs a data plane and root.`,
		Example: "  sandbox exec --dir DIR member2 -- curl -s http://echo.demo",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) < 2 {
				return errors.New("give a member and a command, as in: sandbox exec --dir DIR member1 -- curl http://echo.demo")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			f, err := open(cmd, dir)
			if err != nil {
				return err
			}
			self, err := os.Executable()
			if err != nil {
				return fmt.Errorf("finding this program: %w", err)
			}
			command := args[1:]
			if command[0] == "--" {
				command = command[1:]
			}
			if len(command) == 0 {
				return errors.New("give a command after --")
			}
			return asExit(f.Exec(cmd.Context(), self, args[0], command))
		},
	}
	addDir(cmd, &dir)
	// What follows the member belongs to the command, with or without --.
	cmd.Flags().SetInterspersed(false)
	return cmd
}

// fabricCommand is what a fleet runs as its component fabric.
func fabricCommand() *cobra.Command {
	var options fabric.Options
	cmd := &cobra.Command{
		Use:    "fabric --network FILE --health ADDRESS",
		Short:  "Join the nodes of a fleet (a part of each data plane)",
		Args:   cobra.NoArgs,
		Hidden: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			options.Logger = slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), nil))
			return fabric.Run(cmd.Context(), options)
		},
	}
	cmd.Flags().StringVar(&options.Network, "network", "", "`file` that says what the network is")
	cmd.Flags().StringVar(&options.Health, "health", "", "`address` that answers when all stands")
	return cmd
}

// insideCommand becomes a program in a network namespace.
func insideCommand() *cobra.Command {
	return &cobra.Command{
		Use:    "inside NAMESPACE -- COMMAND…",
		Short:  "Run a command in a network namespace",
		Args:   cobra.MinimumNArgs(2),
		Hidden: true,
		RunE: func(_ *cobra.Command, args []string) error {
			path, err := exec.LookPath(args[1])
			if err != nil {
				return fmt.Errorf("finding the command: %w", err)
			}
			return netns.Do(args[0], func() error {
				return fmt.Errorf("executing %s: %w", path, unix.Exec(path, args[1:], os.Environ()))
			})
		},
	}
}

// containCommand is the beginning of each container.
func containCommand() *cobra.Command {
	return &cobra.Command{
		Use:    contain.Command + " SPEC",
		Short:  "Become the program of a container",
		Args:   cobra.ExactArgs(1),
		Hidden: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			code, err := contain.Run(args[0])
			if err != nil {
				fmt.Fprintln(cmd.ErrOrStderr(), err)
			}
			return asExit(code, nil)
		},
	}
}

// nodeCommand is what a fleet runs as its components memberN-node.
func nodeCommand() *cobra.Command {
	var options node.Options
	cmd := &cobra.Command{
		Use:    "node --dir DIR --member MEMBER",
		Short:  "Run the pods of a member (a part of each data plane)",
		Args:   cobra.NoArgs,
		Hidden: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			self, err := os.Executable()
			if err != nil {
				return fmt.Errorf("finding this program: %w", err)
			}
			options.Self = self
			options.Logger = slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), nil))
			agent, err := node.New(options)
			if err != nil {
				return err
			}
			return agent.Run(cmd.Context())
		},
	}
	addDir(cmd, &options.Dir)
	cmd.Flags().StringVar(&options.Member, "member", "", "the `member`")
	cmd.Flags().StringVar(&options.Images, "images", "", "`file` with more images")
	return cmd
}
