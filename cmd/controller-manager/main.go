// The controller-manager is Namesake's hub.
package main

import (
	"fmt"
	"os"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/namesake-io/namesake/internal/hub"
)

func main() {
	opts, err := hub.NewOptions()
	if err == nil {
		err = hub.NewCommand(opts).ExecuteContext(ctrl.SetupSignalHandler())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}
