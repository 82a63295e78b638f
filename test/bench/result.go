package main

import (
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
)

// result is what one run found out.
type result struct {
	Date    string  `json:"date"`
	Machine machine `json:"machine"`
	// Members, and Endpoints of each service in each of them.
	Members   int       `json:"members"`
	Endpoints int       `json:"endpoints"`
	Measures  []measure `json:"measures"`
	Rest      *idleness `json:"rest,omitempty"`
	Memory    []level   `json:"memory,omitempty"`
	PeakBytes float64   `json:"peakBytes,omitempty"`
	// Hub is what the hub held when it held most.
	Hub map[string]stored `json:"hub,omitempty"`
	// Seconds that the run took.
	Seconds float64 `json:"seconds"`
}

// machine is where a run was made.
type machine struct {
	Cores     int    `json:"cores"`
	MemoryGiB int    `json:"memoryGiB"`
	System    string `json:"system"`
	Go        string `json:"go"`
}

// measure is one thing measured.
type measure struct {
	// Name is one of the keys in doc.go, with what sets it apart.
	Name string `json:"name"`
	What string `json:"what"`
	// Took is how long each operation took until it was everywhere, Slices until
	// it had reached each slice, and Floor what each took a bare client.
	Took   []milliseconds `json:"took"`
	Slices []milliseconds `json:"slices,omitempty"`
	Floor  []milliseconds `json:"floor,omitempty"`
	// Cost of all operations together.
	Cost *cost `json:"cost,omitempty"`
	// Operations that the cost is for.
	Operations int `json:"operations,omitempty"`
}

// idleness is what is spent while nothing happens.
type idleness struct {
	Seconds float64 `json:"seconds"`
	Cost    *cost   `json:"cost"`
}

// level is how much memory the control plane takes with something.
type level struct {
	With  string  `json:"with"`
	Bytes float64 `json:"bytes"`
}

// milliseconds is a duration as people read it.
type milliseconds float64

func millisecondsOf(d time.Duration) milliseconds {
	return milliseconds(float64(d.Round(10*time.Microsecond)) / float64(time.Millisecond))
}

// String gives about three digits.
func (m milliseconds) String() string {
	switch {
	case m < 10:
		return strconv.FormatFloat(float64(m), 'f', 1, 64) + " ms"
	case m < 1000:
		return strconv.FormatFloat(float64(m), 'f', 0, 64) + " ms"
	}
	return strconv.FormatFloat(float64(m)/1000, 'f', 2, 64) + " s"
}

// quantile returns the smallest sample that a share of all does not exceed.
func quantile(samples []milliseconds, share float64) milliseconds {
	if len(samples) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(samples))
	i := int(share*float64(len(sorted))+0.999999) - 1
	return sorted[min(max(i, 0), len(sorted)-1)]
}

// since returns how long after a point in time each thing was seen, and the last.
func since(start time.Time, seen map[string]time.Time) (all []milliseconds, last milliseconds) {
	for _, at := range seen {
		all = append(all, millisecondsOf(at.Sub(start)))
	}
	slices.Sort(all)
	if len(all) > 0 {
		last = all[len(all)-1]
	}
	return all, last
}

// thisMachine describes the machine.
func thisMachine() machine {
	m := machine{Cores: runtime.NumCPU(), Go: runtime.Version(), System: runtime.GOOS + "/" + runtime.GOARCH}
	if text, err := os.ReadFile("/proc/meminfo"); err == nil {
		for line := range strings.Lines(string(text)) {
			if fields := strings.Fields(line); len(fields) > 1 && fields[0] == "MemTotal:" {
				kib, _ := strconv.Atoi(fields[1])
				m.MemoryGiB = (kib + 1<<19) >> 20
			}
		}
	}
	return m
}

// String is the machine in a few words.
func (m machine) String() string {
	return fmt.Sprintf("%d cores, %d GiB, %s, %s", m.Cores, m.MemoryGiB, m.System, m.Go)
}

// save writes the result as JSON.
func (r *result) save(path string) error {
	data, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		return fmt.Errorf("encoding the result: %w", err)
	}
	return os.WriteFile(path, append(data, '\n'), 0o644)
}

// load reads a result.
func load(path string) (*result, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	r := &result{}
	if err := json.Unmarshal(data, r); err != nil {
		return nil, fmt.Errorf("reading %s: %w", path, err)
	}
	return r, nil
}
