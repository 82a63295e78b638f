package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
)

// String is the measure in one line.
func (m measure) String() string {
	out := fmt.Sprintf("%s  p50 %s  p99 %s", m.Name, quantile(m.Took, 0.5), quantile(m.Took, 0.99))
	if ratio := m.ratio(); ratio > 0 {
		out += fmt.Sprintf("  %.1f times the floor", ratio)
	}
	return out
}

// ratio of the median to that of the floor. Zero: there is no floor.
func (m measure) ratio() float64 {
	if floor := quantile(m.Floor, 0.5); floor > 0 {
		return float64(quantile(m.Took, 0.5) / floor)
	}
	return 0
}

// perOperation is a number for one operation.
func (m measure) perOperation(total float64) string {
	each := total / float64(max(m.Operations, 1))
	if each == float64(int(each)) || each >= 100 {
		return fmt.Sprintf("%.0f", each)
	}
	return fmt.Sprintf("%.1f", each)
}

// header of the table of measures.
var header = []string{"measure", "p50", "p99", "max", "floor p50", "p99", "ratio", "hub writes", "hub reads", "member writes", "member reads", "CPU"}

// rows of the table of measures. What is counted is for one operation.
func (r *result) rows() [][]string {
	var out [][]string
	for _, m := range r.Measures {
		row := []string{m.Name, quantile(m.Took, 0.5).String(), quantile(m.Took, 0.99).String(), quantile(m.Took, 1).String()}
		if ratio := m.ratio(); ratio > 0 {
			row = append(row, quantile(m.Floor, 0.5).String(), quantile(m.Floor, 0.99).String(), fmt.Sprintf("%.1f", ratio))
		} else {
			row = append(row, "", "", "")
		}
		if c := m.Cost; c != nil {
			row = append(row, m.perOperation(c.HubWrites.total()), m.perOperation(c.HubReads.total()),
				m.perOperation(c.MemberWrites.total()), m.perOperation(c.MemberReads.total()), "")
			if c.CPUSeconds > 0 {
				row[len(row)-1] = fmt.Sprintf("%.0f ms", 1000*c.CPUSeconds/float64(max(m.Operations, 1)))
			}
		} else {
			row = append(row, "", "", "", "", "")
		}
		out = append(out, row)
	}
	return out
}

// print writes the result for a person at a terminal.
func (r *result) print(w io.Writer) error {
	fmt.Fprintf(w, "\n%d members, %d endpoints of each service in each, %s, %s, in %.0f s\n\n", r.Members, r.Endpoints, r.Machine, r.Date, r.Seconds)
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, row := range append([][]string{header}, r.rows()...) {
		fmt.Fprintln(table, strings.Join(row, "\t"))
	}
	if err := table.Flush(); err != nil {
		return fmt.Errorf("writing a table: %w", err)
	}
	fmt.Fprintln(w)
	for _, m := range r.Measures {
		fmt.Fprintf(w, "%-10s %s\n", m.Name, m.What)
		if m.Cost != nil {
			fmt.Fprintf(w, "%-10s hub: %s; members: %s\n", "", m.Cost.HubWrites.plus(m.Cost.HubReads), m.Cost.MemberWrites.plus(m.Cost.MemberReads))
		}
	}
	for _, line := range r.remarks() {
		fmt.Fprintln(w, line)
	}
	return nil
}

// markdown writes the result for a page.
func (r *result) markdown(w io.Writer) {
	fmt.Fprintf(w, "### %d members\n\n%s, %s; %d endpoints of each service in each member.\n\n", r.Members, r.Date, r.Machine, r.Endpoints)
	fmt.Fprintf(w, "| %s |\n|%s\n", strings.Join(header, " | "), strings.Repeat(" --- |", len(header)))
	for _, row := range r.rows() {
		fmt.Fprintf(w, "| %s |\n", strings.Join(row, " | "))
	}
	fmt.Fprintln(w)
	for _, line := range r.remarks() {
		fmt.Fprintf(w, "- %s\n", line)
	}
	fmt.Fprintln(w)
}

// remarks are what is not in the table of measures.
func (r *result) remarks() (out []string) {
	if r.Rest != nil {
		c := r.Rest.Cost
		out = append(out, fmt.Sprintf("at rest, in %.0f s: %.0f hub writes, %.0f member writes, %.0f hub reads, %.0f member reads, %.0f watches on the hub that ended; CPU %.1f s",
			r.Rest.Seconds, c.HubWrites.total(), c.MemberWrites.total(), c.HubReads.total(), c.MemberReads.total(), c.HubWatches.total(), c.CPUSeconds))
	}
	for _, l := range r.Memory {
		out = append(out, fmt.Sprintf("memory with %s: %.0f MB", l.With, l.Bytes/1e6))
	}
	if r.PeakBytes > 0 {
		out = append(out, fmt.Sprintf("peak memory: %.0f MB", r.PeakBytes/1e6))
	}
	for _, kind := range slices.Sorted(maps.Keys(r.Hub)) {
		out = append(out, fmt.Sprintf("on the hub: %d %s, %.0f kB", r.Hub[kind].Objects, kind, float64(r.Hub[kind].Bytes)/1e3))
	}
	return out
}

// String lists counts, the largest first.
func (r requests) String() string {
	kinds := slices.SortedFunc(maps.Keys(r), func(a, b string) int {
		if r[a] != r[b] {
			return int(r[b] - r[a])
		}
		return strings.Compare(a, b)
	})
	parts := make([]string, 0, len(kinds))
	for _, kind := range kinds {
		parts = append(parts, fmt.Sprintf("%.0f %s", r[kind], kind))
	}
	if len(parts) == 0 {
		return "nothing"
	}
	return strings.Join(parts, ", ")
}
