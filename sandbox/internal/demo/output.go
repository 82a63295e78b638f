package demo

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/sys/unix"
)

const (
	// width is the number of columns that a line may take.
	width = 98
	// indent is before each line of the story. It is small, since the tables of
	// other programs, which are quoted, are wide.
	indent = "  "
)

type colour string

const (
	bold  colour = "\x1b[1m"
	dim   colour = "\x1b[2m"
	green colour = "\x1b[32m"
	red   colour = "\x1b[31m"
	reset        = "\x1b[0m"
)

// output writes the story. It writes on when the reader has gone: the fleet has
// to be taken down all the same.
type output struct {
	w       io.Writer
	colours bool
}

// newOutput uses colours if w is a terminal whose owner has not said no.
func newOutput(w io.Writer, getenv func(string) string) *output {
	file, ok := w.(*os.File)
	return &output{w: w, colours: ok && isTerminal(file) && getenv("NO_COLOR") == "" && getenv("TERM") != "dumb"}
}

func isTerminal(f *os.File) bool {
	_, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
	return err == nil
}

func (o *output) paint(c colour, text string) string {
	if !o.colours || text == "" {
		return text
	}
	return string(c) + text + reset
}

// title begins the story.
func (o *output) title(text string) { fmt.Fprintln(o.w, o.paint(bold, text)) }

// heading begins a step.
func (o *output) heading(n, of int, text string) {
	fmt.Fprintf(o.w, "\n%s\n", o.paint(bold, fmt.Sprintf("%d/%d  %s", n, of, text)))
}

// say writes a line of the story.
func (o *output) say(format string, args ...any) {
	fmt.Fprintf(o.w, indent+"%s\n", fmt.Sprintf(format, args...))
}

// fact writes what was seen, and on the right how long it took.
func (o *output) fact(text string, took time.Duration) {
	o.figure(text, words(took))
}

// figure writes a text, and on the right a figure.
func (o *output) figure(text, figure string) {
	gap := width - len(indent) - utf8.RuneCountInString(text) - utf8.RuneCountInString(figure)
	fmt.Fprintf(o.w, indent+"%s%s%s\n", text, strings.Repeat(" ", max(2, gap)), o.paint(green, figure))
}

// quote writes what another program printed.
func (o *output) quote(text string) {
	for line := range strings.Lines(text) {
		fmt.Fprintf(o.w, indent+"%s\n", o.paint(dim, strings.TrimRight(line, " \n")))
	}
}

// fail writes that something is wrong.
func (o *output) fail(text string) { fmt.Fprintf(o.w, "\n%s\n", o.paint(red, text)) }

// progress returns a writer for lines that matter less.
func (o *output) progress() io.Writer {
	if !o.colours {
		return o.w
	}
	return &dimmer{o}
}

// dimmer expects whole lines.
type dimmer struct{ *output }

func (d *dimmer) Write(p []byte) (int, error) {
	_, err := fmt.Fprintln(d.w, d.paint(dim, string(bytes.TrimRight(p, "\n"))))
	return len(p), err
}
