package demo

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// summary is what is told of several times.
type summary struct {
	median, worst time.Duration
}

// summarize needs at least one time.
func summarize(times []time.Duration) summary {
	sorted := slices.Sorted(slices.Values(times))
	n := len(sorted)
	return summary{median: (sorted[(n-1)/2] + sorted[n/2]) / 2, worst: sorted[n-1]}
}

func (s summary) String() string {
	return fmt.Sprintf("%s (worst %s)", words(s.median), words(s.worst))
}

// words writes a time with two digits, or with those before the point.
func words(d time.Duration) string {
	value, unit := float64(d)/float64(time.Millisecond), "ms"
	if d >= time.Second-time.Millisecond/2 {
		value, unit = d.Seconds(), "s"
	}
	if value < 9.95 {
		return fmt.Sprintf("%.1f %s", value, unit)
	}
	return fmt.Sprintf("%.0f %s", value, unit)
}

// soon is words for a time that may have been over before it was counted.
func soon(d time.Duration) string {
	if d <= 0 {
		return "at once"
	}
	return words(d)
}

// later is soon in a sentence.
func later(d time.Duration) string {
	if d <= 0 {
		return soon(d)
	}
	return "after " + words(d)
}

// names writes a list as in a sentence: "a, b and c", or "a to z" if there are more than three.
func names(list []string) string {
	const long = 3
	switch n := len(list); {
	case n == 0:
		return "none"
	case n == 1:
		return list[0]
	case n > long:
		return list[0] + " to " + list[n-1]
	default:
		return strings.Join(list[:n-1], ", ") + " and " + list[n-1]
	}
}

// String lists addresses in order, and says which are not ready.
func (e endpoints) String() string {
	if len(e) == 0 {
		return "none"
	}
	var list []string
	for _, address := range slices.Sorted(maps.Keys(e)) {
		if !e[address] {
			address += " (not ready)"
		}
		list = append(list, address)
	}
	return strings.Join(list, ", ")
}

// number writes a small number as a word.
func number(n int) string {
	small := []string{"no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"}
	if n >= 0 && n < len(small) {
		return small[n]
	}
	return fmt.Sprint(n)
}

// capital begins a sentence.
func capital(text string) string {
	if text == "" {
		return ""
	}
	return strings.ToUpper(text[:1]) + text[1:]
}

// tail returns the last lines of a log, none of them long.
func tail(text string) string {
	const last, long = 8, 140
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	lines = lines[max(0, len(lines)-last):]
	for i, line := range lines {
		if len(line) > long {
			lines[i] = line[:long] + "…"
		}
	}
	return strings.Join(lines, "\n")
}
