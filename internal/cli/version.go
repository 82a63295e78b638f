package cli

import (
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/component-base/version"

	"github.com/namesake-io/namesake/internal/cli/console"
	"github.com/namesake-io/namesake/internal/cli/target"
)

func newVersionCommand(f *target.Factory) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version of this program",
		Args:  console.ExactArgs(),
		RunE: func(*cobra.Command, []string) error {
			info := version.Get()
			_, err := fmt.Fprintf(f.Out, "%s (commit %s, %s, %s)\n", info.GitVersion, commit(info.GitCommit), info.GoVersion, info.Platform)
			return err
		},
	}
}

// commit shortens a commit as git does. A program that was not built by make
// does not know its own.
func commit(id string) string {
	const short = 12
	if id == "" || id == "$Format:%H$" {
		return "unknown"
	}
	return id[:min(short, len(id))]
}
