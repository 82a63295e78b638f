package e2e

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// sample is one value of a metric.
type sample struct {
	name   string
	labels map[string]string
	value  float64
}

// managerMetrics are all metrics of the controller-manager.
type managerMetrics []sample

var sampleLine = regexp.MustCompile(`(?m)^(\w+)(?:\{(.*)\})? (\S+)$`)

// managerMetrics reads the metrics of the fleet's controller-manager.
func (f *fleet) managerMetrics(t *testing.T) managerMetrics {
	t.Helper()
	address := valueOf(argumentsOf(t, f.component(t, hubManager).PID), "--metrics-bind-address")
	text, err := fetch(t.Context(), "http://"+address+"/metrics")
	if err != nil {
		t.Fatal(err)
	}
	var out managerMetrics
	for _, line := range sampleLine.FindAllStringSubmatch(text, -1) {
		s := sample{name: line[1], labels: map[string]string{}}
		for _, l := range metricLabel.FindAllStringSubmatch(line[2], -1) {
			s.labels[l[1]] = l[2]
		}
		if s.value, err = strconv.ParseFloat(line[3], 64); err != nil {
			t.Fatal(err)
		}
		out = append(out, s)
	}
	return out
}

// by returns the sums of a metric by one label.
func (m managerMetrics) by(name, label string) map[string]float64 {
	out := map[string]float64{}
	for _, s := range m {
		if s.name == name {
			out[s.labels[label]] += s.value
		}
	}
	return out
}

// one returns a metric without labels.
func (m managerMetrics) one(name string) float64 { return m.by(name, "")[""] }

// memory is what the process has in memory, in megabytes.
func (m managerMetrics) memory() float64 { return m.one("process_resident_memory_bytes") / (1 << 20) }

// liveHeap is what its last garbage collection found in use, in megabytes.
func (m managerMetrics) liveHeap() float64 { return m.one("go_gc_heap_live_bytes") / (1 << 20) }

// connections counts the TCP connections of a process to a port.
func connections(pid, port int) (count int, _ error) {
	open, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
	if err != nil {
		return 0, err
	}
	sockets := map[string]bool{}
	for _, path := range open {
		if to, err := os.Readlink(path); err == nil {
			sockets[to] = true
		}
	}
	table, err := os.ReadFile(fmt.Sprintf("/proc/%d/net/tcp", pid))
	if err != nil {
		return 0, err
	}
	remote := fmt.Sprintf(":%04X", port)
	const remoteAddress, inode = 2, 9 // columns, as proc_pid_net(5) has them
	for line := range strings.Lines(string(table)) {
		fields := strings.Fields(line)
		if len(fields) > inode && strings.HasSuffix(fields[remoteAddress], remote) && sockets["socket:["+fields[inode]+"]"] {
			count++
		}
	}
	return count, nil
}

// fetch returns what an HTTP endpoint answers.
func fetch(ctx context.Context, url string) (string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return "", err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = errors.New(resp.Status)
	}
	return string(body), err
}

// argumentsOf returns the command line of a process, so that another like it can
// be started.
func argumentsOf(t *testing.T, pid int) []string {
	t.Helper()
	line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSuffix(string(line), "\x00"), "\x00")
}

// valueOf returns the value of a flag in a command line.
func valueOf(args []string, flag string) string {
	for i, arg := range args {
		if arg == flag && i+1 < len(args) {
			return args[i+1]
		}
		if value, found := strings.CutPrefix(arg, flag+"="); found {
			return value
		}
	}
	return ""
}
