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
		"in the order of coming":         {steps: "+a +b +c - - -", want: "a b c"},
		"what changed comes first":       {steps: "~a ~b +c - - -", want: "c a b"},
		"also while others are taken":    {steps: "~a ~b ~c - +d - - -", want: "a d b c"},
		"what changes moves up":          {steps: "~a ~b ~c +b - - -", want: "b a c"},
		"and is not taken twice":         {steps: "~a ~b +a +a ~a - - ~a -", want: "a b a"},
		"what changed is not put back":   {steps: "+a +b ~a - -", want: "a b"},
		"a trace is passed over":         {steps: "~a ~b +a - +c - -", want: "a c b"},
		"or serves when the key is back": {steps: "~a +a - ~b ~a - -", want: "a a b"},
		"patience is for one time only":  {steps: "~a - ~b +a - -", want: "a a b"},
		"a key that comes again and all": {steps: "~a +a - ~a ~b +b - -", want: "a b a"},
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
			if strings.Join(got, " ") != tc.want {
				t.Errorf("taken: %v, want %s", got, tc.want)
			}
			if l.Len() != 0 || len(l.patient) != 0 {
				t.Errorf("%d are left, %d of them patient", l.Len(), len(l.patient))
			}
		})
	}
}
