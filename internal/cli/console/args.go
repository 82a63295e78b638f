package console

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// Group is what a command does that only has commands below it.
func Group(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return cmd.Help()
	}
	err := Usage("unknown command %q for %q", args[0], cmd.CommandPath())
	if names := cmd.SuggestionsFor(args[0]); len(names) > 0 {
		return WithHint(err, "did you mean: %s?", strings.Join(names, ", "))
	}
	return WithHint(err, "%s --help lists the commands", cmd.CommandPath())
}

// ExactArgs wants one argument for each name, and names what is missing.
func ExactArgs(names ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) < len(names):
			return fmt.Errorf("%s is missing: %s", strings.Join(names[len(args):], " "), cmd.UseLine())
		case len(args) > len(names):
			return fmt.Errorf("unexpected argument %q: %s", args[len(names)], cmd.UseLine())
		}
		return nil
	}
}
