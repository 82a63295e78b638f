// Package process starts, names, signals and finds the processes of a fleet.
//
// A process is named by its pid and its start time, so that a pid that the
// kernel gave to somebody else is never signalled. Every child also carries the
// fleet's directory in its environment: a child that was started but not yet
// recorded when `sandbox up` was killed is still found by scanning /proc.
package process
