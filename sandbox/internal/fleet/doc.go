// Package fleet carries plans out: it brings a fleet up, tells how it is, harms
// it on request and takes it down.
//
//	up.go         from nothing to ready, and back when anything fails
//	files.go      keys, certificates and kubeconfigs; what belongs to a fleet
//	start.go      one process: spawn, record, wait until ready
//	down.go       the end, in order, also of fleets that were killed half-way
//	component.go  restart, kill, stop, cont
//	dataplane.go  network, client pods
//	faults.go     faults of a member
//	status.go     what is true now
//
// Every change happens under the lock of the fleet's directory. Only processes
// that carry the directory's mark, or that the record names by pid and start
// time, are ever signalled; only files that a plan names are ever removed.
package fleet
