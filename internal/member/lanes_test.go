package member

import (
	"strings"
	"testing"
)

func TestLanes(t *testing.T) {
	for title, tc := range map[string]struct {
		// steps: "+a" adds a, "~a" adds it without hurry, "-" takes one.
		steps, want string
	}{
		"in the order of coming":         {steps: "+a +b +c - - -", want: "abc"},
		"what changed comes first":       {steps: "~a ~b +c - - -", want: "cab"},
		"also while others are taken":    {steps: "~a ~b ~c - +d - - -", want: "adbc"},
		"what changes moves up":          {steps: "~a ~b ~c +b - - -", want: "bac"},
		"and is not taken twice":         {steps: "~a ~b +a +a ~a - - ~a -", want: "aba"},
		"what changed is not put back":   {steps: "+a +b ~a - -", want: "ab"},
		"a trace is passed over":         {steps: "~a ~b +a - +c - -", want: "acb"},
		"or serves when the key is back": {steps: "~a +a - ~b ~a - -", want: "aab"},
		"patience is for one time only":  {steps: "~a - ~b +a - -", want: "aab"},
		"a key that comes again and all": {steps: "~a +a - ~a ~b +b - -", want: "aba"},
	} {
		t.Run(title, func(t *testing.T) {
			l := newLanes[string]()
			queued := map[string]bool{}
			var got []string
			for _, step := range strings.Fields(tc.steps) {
				kind, key := step[:1], step[1:]
				if kind == "-" {
					key = l.Pop()
					queued[key] = false
					got = append(got, key)
					continue
				}
				if kind == "~" {
					l.later(key)
				}
				if queued[key] {
					l.Touch(key)
				} else {
					l.Push(key)
				}
				queued[key] = true
			}
			if strings.Join(got, "") != tc.want {
				t.Errorf("taken: %v, want %s", got, tc.want)
			}
			if l.Len() != 0 || len(l.patient) != 0 {
				t.Errorf("%d are left, %d of them patient", l.Len(), len(l.patient))
			}
		})
	}
}
