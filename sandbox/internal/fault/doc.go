// Package fault knows the faults that can be given to a member: their names,
// their values, and how each is written on the command line. Package fleet
// brings them about.
package fault
