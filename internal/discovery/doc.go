// Package discovery is the pure core of Namesake: which slices each consumer
// should hold, what they are called and what is in them.
//
// Everything here is a function of its arguments. There is no client, clock,
// context or log; the current time is a field of the snapshot. Controllers
// gather a Snapshot, call NewPlan, and apply the Changes that Plan.For returns.
//
//	Snapshot ── NewPlan ──▶ Plan ── For(consumer, standing) ──▶ Changes
//	                          └──── Report(outcomes) ─────────▶ status
package discovery
