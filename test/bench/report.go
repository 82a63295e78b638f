package main

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"
)

func reportCommand() *cobra.Command {
	var plots string
	cmd := &cobra.Command{
		Use:   "report RESULT.json …",
		Short: "Write tables in Markdown, and plots, of earlier runs",
		Args:  cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, paths []string) error {
			var results []*result
			for _, path := range paths {
				r, err := load(path)
				if err != nil {
					return err
				}
				results = append(results, r)
			}
			slices.SortFunc(results, func(a, b *result) int { return cmp.Compare(a.Members, b.Members) })
			for _, r := range results {
				r.markdown(cmd.OutOrStdout())
			}
			if plots == "" {
				return nil
			}
			for name, p := range plotsOf(results) {
				if err := os.WriteFile(filepath.Join(plots, name+".svg"), []byte(p.svg()), 0o644); err != nil {
					return fmt.Errorf("writing a plot: %w", err)
				}
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&plots, "plots", "", "`folder` for plots, as SVG")
	return cmd
}

// plotsOf returns the plots of results, by the name of their files.
func plotsOf(results []*result) map[string]plot {
	over := plot{title: "until everywhere, by number of members", x: "members", y: "ms", markers: true}
	for _, name := range []string{"T1", "T2"} {
		took, worst, floor := line{name: name + " p50"}, line{name: name + " p99"}, line{name: name + " floor p50", dashed: true}
		for _, r := range results {
			for _, m := range r.Measures {
				if m.Name != name {
					continue
				}
				x := float64(r.Members)
				took.add(x, float64(quantile(m.Took, 0.5)))
				worst.add(x, float64(quantile(m.Took, 0.99)))
				floor.add(x, float64(quantile(m.Floor, 0.5)))
			}
		}
		over.lines = append(over.lines, took)
		if name == "T2" {
			over.lines = append(over.lines, worst)
		}
		over.lines = append(over.lines, floor)
	}
	spread := plot{title: "T2: changes that the last consumer has after so long", x: "ms", y: "% of changes", linearY: true}
	for _, r := range results {
		for _, m := range r.Measures {
			if m.Name == "T2" {
				spread.lines = append(spread.lines,
					distribution(fmt.Sprintf("%d members", r.Members), m.Took, false),
					distribution(fmt.Sprintf("%d members, floor", r.Members), m.Floor, true))
			}
		}
	}
	return map[string]plot{"latency": over, "distribution": spread}
}

// distribution is a line that rises from none to all samples.
func distribution(name string, samples []milliseconds, dashed bool) line {
	out := line{name: name, dashed: dashed}
	for i, sample := range slices.Sorted(slices.Values(samples)) {
		out.add(float64(sample), 100*float64(i+1)/float64(len(samples)))
	}
	return out
}
