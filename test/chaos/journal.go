package chaos

import (
	"fmt"
	"strings"
	"sync"
	"time"
)

// journal is what was done to the fleet and when, and the first thing that was
// found to be wrong.
type journal struct {
	start time.Time
	found chan struct{} // closed when something was

	mu      sync.Mutex
	entries []entry
	finding string
}

type entry struct {
	at   time.Time
	text string
}

func newJournal() *journal { return &journal{start: time.Now(), found: make(chan struct{})} }

// note adds a line.
func (j *journal) note(format string, args ...any) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.entries = append(j.entries, entry{time.Now(), fmt.Sprintf(format, args...)})
}

// find records what is wrong. The first counts: others may follow from it.
func (j *journal) find(at time.Time, what string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.entries = append(j.entries, entry{at, "FOUND " + what})
	if j.finding == "" {
		j.finding = what
		close(j.found)
	}
}

// what returns what was found, nothing if all is well.
func (j *journal) what() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.finding
}

// last returns the latest lines, with their times since the start.
func (j *journal) last(count int) string {
	j.mu.Lock()
	defer j.mu.Unlock()
	var out strings.Builder
	for _, e := range j.entries[max(0, len(j.entries)-count):] {
		fmt.Fprintf(&out, "%8.3fs %s %s\n", e.at.Sub(j.start).Seconds(), e.at.Format("15:04:05.000"), e.text)
	}
	return out.String()
}
