// Metricsdoc writes the reference page of metrics: go run . FILE.
package main

//go:generate go run . ../../docs/metrics.md

import (
	"fmt"
	"os"

	"github.com/namesake-io/namesake/internal/agent"
	"github.com/namesake-io/namesake/internal/hub"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: metricsdoc FILE")
		os.Exit(2)
	}
	page, err := render(hub.AllCollectors(), agent.AllCollectors())
	if err == nil {
		err = os.WriteFile(os.Args[1], []byte(page), 0o644)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}
