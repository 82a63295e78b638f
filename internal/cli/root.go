package cli

import (
	"context"
	"flag"
	"fmt"
	"io"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/namesake-io/namesake/internal/cli/complete"
	"github.com/namesake-io/namesake/internal/cli/console"
	"github.com/namesake-io/namesake/internal/cli/expose"
	"github.com/namesake-io/namesake/internal/cli/get"
	"github.com/namesake-io/namesake/internal/cli/install"
	"github.com/namesake-io/namesake/internal/cli/join"
	"github.com/namesake-io/namesake/internal/cli/register"
	"github.com/namesake-io/namesake/internal/cli/target"
	"github.com/namesake-io/namesake/internal/cli/token"
	"github.com/namesake-io/namesake/internal/cli/unjoin"
)

// maxVerbosity of logs. From 8 on client libraries log the bodies of requests,
// and with them tokens.
const maxVerbosity = 7

// Run runs the program with the arguments of the command line, the program's
// own name first, and returns its exit code.
func Run(ctx context.Context, args []string, streams genericiooptions.IOStreams) int {
	root := NewCommand(filepath.Base(args[0]), streams)
	root.SetArgs(args[1:])
	err := root.ExecuteContext(ctx)
	if err != nil {
		console.PrintError(streams.ErrOut, err)
	}
	return console.ExitCode(err)
}

// NewCommand returns the root command. The executable's name decides how the
// texts call it: kubectl-namesake is called as `kubectl namesake`.
func NewCommand(executable string, streams genericiooptions.IOStreams) *cobra.Command {
	program := executable
	if plugin, ok := strings.CutPrefix(executable, "kubectl-"); ok {
		program = "kubectl " + plugin
	}
	f := target.NewFactory(program, streams)
	root := &cobra.Command{
		Use:         executable,
		Annotations: map[string]string{cobra.CommandDisplayNameAnnotation: program},
		Short:       "One name for a Service in every cluster",
		Long: program + ` controls Namesake, which gives a Kubernetes Service one name in every cluster.

It talks to the hub, which --kubeconfig and --context name.`,
		Example: `  ` + program + ` install
  ` + program + ` join member1 --cluster-kubeconfig member1.kubeconfig
  ` + program + ` expose foo --namespace shop --from member1
  ` + program + ` get services --all-namespaces`,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cobra.ArbitraryArgs,
		RunE:          console.Group,

		SuggestionsMinimumDistance: 2,
	}
	root.SetIn(streams.In)
	root.SetOut(streams.Out)
	root.SetErr(streams.ErrOut)
	f.AddFlags(root.PersistentFlags())
	verbosity := root.PersistentFlags().IntP("v", "v", 0, fmt.Sprintf("verbosity of the log, 0 to %d (6 shows each request)", maxVerbosity))
	root.PersistentPreRunE = func(*cobra.Command, []string) error { return setUpLog(*verbosity, streams.ErrOut) }

	for _, newCommand := range []func(*target.Factory) *cobra.Command{
		install.NewCommand, join.NewCommand, token.NewCommand, register.NewCommand, unjoin.NewCommand, get.NewCommand, expose.NewCommand, newVersionCommand,
	} {
		root.AddCommand(newCommand(f))
	}
	for flag, of := range map[string]func(*target.Factory) complete.Func{
		"namespace": complete.Namespaces, "context": complete.HubContexts,
	} {
		complete.Flag(root, flag, of(f))
	}
	markUsageErrors(root)
	return root
}

// markUsageErrors makes mistakes in flags and arguments known as such, for the
// exit code, and gives them a way out.
func markUsageErrors(cmd *cobra.Command) {
	usage := func(cmd *cobra.Command, err error) error {
		if err == nil {
			return nil
		}
		return console.WithHint(&console.UsageError{Err: err}, "%s --help", cmd.CommandPath())
	}
	cmd.SetFlagErrorFunc(usage)
	if check := cmd.Args; check != nil {
		cmd.Args = func(cmd *cobra.Command, args []string) error { return usage(cmd, check(cmd, args)) }
	}
	for _, sub := range cmd.Commands() {
		markUsageErrors(sub)
	}
}

// setUpLog lets the libraries log to out, or not at all: what they call an error
// is often one that we handle, and what we can't is our own to tell.
func setUpLog(verbosity int, out io.Writer) error {
	if verbosity < 0 || verbosity > maxVerbosity {
		return console.WithHint(console.Usage("-v %d is not between 0 and %d", verbosity, maxVerbosity),
			"more would log tokens")
	}
	flags := flag.NewFlagSet("klog", flag.ContinueOnError)
	klog.InitFlags(flags)
	if err := flags.Set("v", strconv.Itoa(verbosity)); err != nil {
		return fmt.Errorf("setting the verbosity: %w", err)
	}
	if verbosity == 0 {
		klog.SetLogger(logr.Discard())
		log.SetLogger(logr.Discard())
		return nil
	}
	logger := textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(out), textlogger.Verbosity(verbosity)))
	klog.SetLogger(logger)
	log.SetLogger(logger)
	return nil
}
