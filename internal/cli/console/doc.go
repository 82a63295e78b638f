// Package console is how namesakectl speaks: steps with marks and durations,
// and errors of one line with a hint beside them that says the way out.
package console
