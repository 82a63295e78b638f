// Command sandbox runs fleets of real Kubernetes control planes on one machine.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/namesake-io/namesake/sandbox/internal/cli"
)

// version is set by the linker.
var version = "devel"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	// The first signal asks for an orderly end, a second one ends at once.
	context.AfterFunc(ctx, stop)
	if err := cli.New(version).ExecuteContext(ctx); err != nil {
		os.Exit(cli.Exit(err, os.Stderr))
	}
}
