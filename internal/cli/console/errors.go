package console

import (
	"errors"
	"fmt"
	"io"
	"strings"
)

// Exit codes of the program.
const (
	ExitOK     = 0
	ExitFailed = 1
	ExitUsage  = 2
)

// HintError is an error and the way out of it.
type HintError struct {
	Err  error
	Hint string
}

func (e *HintError) Error() string { return e.Err.Error() }

func (e *HintError) Unwrap() error { return e.Err }

// WithHint gives err a way out. A hint that err already carries stays: who is
// nearer to the fault knows better.
func WithHint(err error, format string, args ...any) error {
	var hinted *HintError
	if err == nil || errors.As(err, &hinted) {
		return err
	}
	return &HintError{Err: err, Hint: fmt.Sprintf(format, args...)}
}

// UsageError is a mistake in the command line, found before anything was done.
type UsageError struct {
	Err error
}

func (e *UsageError) Error() string { return e.Err.Error() }

func (e *UsageError) Unwrap() error { return e.Err }

// Usage returns a UsageError.
func Usage(format string, args ...any) error {
	return &UsageError{Err: fmt.Errorf(format, args...)}
}

// ExitCode is the exit code for err.
func ExitCode(err error) int {
	var usage *UsageError
	switch {
	case err == nil:
		return ExitOK
	case errors.As(err, &usage):
		return ExitUsage
	default:
		return ExitFailed
	}
}

// PrintError writes err and its hint, one line each.
func PrintError(w io.Writer, err error) {
	fmt.Fprintf(w, "error: %s\n", oneLine(err.Error()))
	var hinted *HintError
	if errors.As(err, &hinted) {
		fmt.Fprintf(w, "hint:  %s\n", oneLine(hinted.Hint))
	}
}

// Warn writes a warning and, when there is one, its hint.
func Warn(w io.Writer, text, hint string) {
	fmt.Fprintf(w, "warning: %s\n", oneLine(text))
	if hint != "" {
		fmt.Fprintf(w, "hint:    %s\n", oneLine(hint))
	}
}

func oneLine(s string) string {
	return strings.Join(strings.FieldsFunc(s, func(r rune) bool { return r == '\n' || r == '\r' }), "; ")
}

// List joins names for a sentence and says how many it left out, so that a
// fleet of a thousand fits on a line.
func List(names []string) string {
	const most = 10
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}
