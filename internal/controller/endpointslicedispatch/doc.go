// Package endpointslicedispatch keeps the slices of every provider standing in
// every consumer, and tells on the MultiClusterService what stands where.
//
// Watches: slices of members, own and dispatched; MultiClusterServices, Services,
// Clusters and, for providers that cannot be asked, collected Works on the hub.
// Reads: all of them through a snapshot; one plan a service serves all consumers.
// Writes: dispatched slices in members; the status of MultiClusterServices, but
// for the condition ServiceApplied; events on them.
// Owns: dispatched slices, marked by label, annotation and field manager.
// Fails: a consumer that cannot be reached or refuses a write is told in the
// status and tried again; no other consumer waits for it.
//
//	slice, wish, cluster changed ─▶ planner.invalidate(service)
//	                             └▶ queue of each consumer ─▶ planner.plan(service)
//	                                                           plan.For(consumer) ─▶ apply ─▶ board ─▶ reporter
package endpointslicedispatch
