package demo

import (
	"bytes"
	"os"
	"strings"
	"testing"
	"time"
)

func TestOutput(t *testing.T) {
	tests := map[string]struct {
		colours bool
		write   func(*output)
		want    string
	}{
		"heading":         {false, func(o *output) { o.heading(2, 7, "On") }, "\n2/7  On\n"},
		"heading, bright": {true, func(o *output) { o.heading(2, 7, "On") }, "\n\x1b[1m2/7  On\x1b[0m\n"},
		"say":             {true, func(o *output) { o.say("%d pods", 2) }, "  2 pods\n"},
		"fact":            {false, func(o *output) { o.fact("after", time.Second) }, "  after" + strings.Repeat(" ", 86) + "1.0 s\n"},
		"fact of letters": {false, func(o *output) { o.figure("größe", "é") }, "  größe" + strings.Repeat(" ", 90) + "é\n"},
		"fact, bright":    {true, func(o *output) { o.figure(strings.Repeat("x", 95), "none") }, "  " + strings.Repeat("x", 95) + "  \x1b[32mnone\x1b[0m\n"},
		"quote":           {false, func(o *output) { o.quote("A   B  \n1   2\n") }, "  A   B\n  1   2\n"},
		"quote, dim":      {true, func(o *output) { o.quote("A") }, "  \x1b[2mA\x1b[0m\n"},
		"progress":        {false, func(o *output) { _, _ = o.progress().Write([]byte("x\n")) }, "x\n"},
		"progress, dim":   {true, func(o *output) { _, _ = o.progress().Write([]byte("x\n")) }, "\x1b[2mx\x1b[0m\n"},
		"fail":            {true, func(o *output) { o.fail("no") }, "\n\x1b[31mno\x1b[0m\n"},
		"title":           {false, func(o *output) { o.title("it") }, "it\n"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var buffer bytes.Buffer
			tc.write(&output{w: &buffer, colours: tc.colours})
			if got := buffer.String(); got != tc.want {
				t.Errorf("got  %q\nwant %q", got, tc.want)
			}
		})
	}
}

// A file and a pipe are no terminals.
func TestNoColoursInFiles(t *testing.T) {
	file, err := os.CreateTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	none := func(string) string { return "" }
	if newOutput(file, none).colours || newOutput(&bytes.Buffer{}, none).colours {
		t.Error("colours without a terminal")
	}
}
