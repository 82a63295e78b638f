package console

import (
	"fmt"
	"io"
	"time"
)

// Steps tells what a command does, a line for each step.
type Steps struct {
	out   io.Writer
	start time.Time
}

// NewSteps writes a heading and returns Steps below it.
func NewSteps(out io.Writer, format string, args ...any) *Steps {
	fmt.Fprintf(out, format+"\n", args...)
	return &Steps{out: out, start: time.Now()}
}

// Do runs step and writes a line when it ends: what it was, what came of it
// (the string that step returns), and how long it took.
func (s *Steps) Do(what string, step func() (string, error)) error {
	start := time.Now()
	result, err := step()
	mark := "✓"
	if err != nil {
		mark = "✗"
	}
	if result != "" {
		what += ": " + result
	}
	fmt.Fprintf(s.out, "  %s %s (%s)\n", mark, what, Duration(time.Since(start)))
	return err
}

// Note writes a line that is no step of its own.
func (s *Steps) Note(format string, args ...any) {
	fmt.Fprintf(s.out, "  · "+format+"\n", args...)
}

// End writes the closing line, with the time of all steps.
func (s *Steps) End(format string, args ...any) {
	fmt.Fprintf(s.out, format+" in %s\n", append(args, Duration(time.Since(s.start)))...)
}

// Duration writes d as a person says it: 12ms, 1.3s, 2m5s.
func Duration(d time.Duration) string {
	switch {
	case d < time.Millisecond:
		return "<1ms"
	case d < time.Second:
		return d.Round(time.Millisecond).String()
	case d < time.Minute:
		return d.Round(100 * time.Millisecond).String()
	default:
		return d.Round(time.Second).String()
	}
}
