// The agent is Namesake in a member cluster that the hub does not call.
package main

import (
	"fmt"
	"os"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/namesake-io/namesake/internal/agent"
)

func main() {
	err := agent.NewCommand(agent.NewOptions()).ExecuteContext(ctrl.SetupSignalHandler())
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}
