package console

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

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
