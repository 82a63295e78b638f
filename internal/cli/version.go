package cli

import (
	"fmt"
	"strings"

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
			_, err := fmt.Fprintf(f.Out, "%s (commit %s, %s, %s)\n",
				release(info.GitVersion), commit(info.GitCommit), info.GoVersion, info.Platform)
			return err
		},
	}
}

// release is the version that make stamped in. A program that was built without
// make has a placeholder there.
func release(stamped string) string {
	if strings.Contains(stamped, "$Format") {
		return "v0.0.0-dev"
	}
	return stamped
}

// commit shortens a commit as git does.
func commit(id string) string {
	const short = 12
	if id == "" || id == "$Format:%H$" {
		return "unknown"
	}
	return id[:min(short, len(id))]
}
