package demo

import (
	"strings"
	"testing"
	"time"
)

func TestSummarize(t *testing.T) {
	const ms = time.Millisecond
	tests := map[string]struct {
		times []time.Duration
		want  summary
	}{
		"one":    {[]time.Duration{7 * ms}, summary{7 * ms, 7 * ms}},
		"odd":    {[]time.Duration{9 * ms, 1 * ms, 5 * ms}, summary{5 * ms, 9 * ms}},
		"even":   {[]time.Duration{90 * ms, 1 * ms, 5 * ms, 7 * ms}, summary{6 * ms, 90 * ms}},
		"sorted": {[]time.Duration{1 * ms, 2 * ms}, summary{1500 * time.Microsecond, 2 * ms}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			before := tc.times[0]
			if got := summarize(tc.times); got != tc.want {
				t.Errorf("got %+v, want %+v", got, tc.want)
			}
			if tc.times[0] != before {
				t.Error("the caller's times were sorted")
			}
		})
	}
	if got, want := (summary{9 * ms, 1200 * ms}).String(), "9.0 ms (worst 1.2 s)"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestWords(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0:                       "0.0 ms",
		432 * time.Microsecond:  "0.4 ms",
		9940 * time.Microsecond: "9.9 ms",
		9960 * time.Microsecond: "10 ms",
		23 * time.Millisecond:   "23 ms",
		999 * time.Millisecond:  "999 ms",
		time.Second - 1:         "1.0 s",
		3140 * time.Millisecond: "3.1 s",
		9960 * time.Millisecond: "10 s",
		16 * time.Second:        "16 s",
		90 * time.Second:        "90 s",
	} {
		if got := words(d); got != want {
			t.Errorf("words(%s) is %q, want %q", d, got, want)
		}
	}
}

func TestNames(t *testing.T) {
	for list, want := range map[string]string{
		"":          "none",
		"a":         "a",
		"a b":       "a and b",
		"a b c":     "a, b and c",
		"a b c d":   "a to d",
		"a b c d e": "a to e",
	} {
		if got := names(strings.Fields(list)); got != want {
			t.Errorf("names(%q) is %q, want %q", list, got, want)
		}
	}
}

func TestSentences(t *testing.T) {
	for got, want := range map[string]string{
		number(0):            "no",
		number(12):           "twelve",
		number(13):           "13",
		number(-1):           "-1",
		soon(-1):             "at once",
		later(0):             "at once",
		later(time.Second):   "after 1.0 s",
		soon(time.Second):    "1.0 s",
		capital("ten"):       "Ten",
		capital(""):          "",
		endpoints{}.String(): "none",
		endpoints{"b": true, "a": false}.String(): "a (not ready), b",
		tail("1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n"):   "3\n4\n5\n6\n7\n8\n9\n10",
		tail(strings.Repeat("x", 300)):            strings.Repeat("x", 140) + "…",
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
