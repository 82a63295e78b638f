// Package chaos breaks what a fleet depends on, at random, while services come,
// change and go, and compares what stands in every member at every moment with a
// model of what may, must and must not stand there.
//
// A run consists of rounds. All of a round follows from its seed and the number of
// members, so that a round that found something can be had again: make chaos
// SEED=…. It begins and ends with a fleet that is whole and has nothing of ours:
//
//	deeds and faults, in turn ──▶ everything heals ──▶ exactly what should be? ──▶ no writes at rest ──▶ all is taken back
//	     └───────── each event of each member's watch is judged by the model ──────────┘
//
//	fleet.go    a fleet: programs, components, clients
//	deeds.go    what users do: wishes, slices, Services
//	meddle.go   what others do to our objects in members
//	faults.go   what breaks, and heals
//	pulse.go    how fast the machine is
//	view.go     what each member holds, by watches
//	journal.go  what was done and when, for who looks why
//	settle.go   what must be once everything has healed
//	round.go    one round
//
// The package model judges; docs/chaos.md says what is promised.
package chaos
