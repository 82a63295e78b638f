// Package pull does for members that have an agent what the hub does itself for
// the others: it tells the agent which services to collect, and gives it the
// slices that shall stand in its cluster. Part of endpointsliceDispatch, whose
// plans it brings to these consumers.
//
// Watches: what endpointsliceDispatch watches; orders and deliveries.
// Reads: the plan of a service; Clusters; orders and deliveries, and what the
// agents say on them.
// Writes: orders (one for each service that a member provides) and deliveries
// (one or more for each service that it consumes), both Works in the member's
// execution namespace.
// Owns: those Works, but for their status, which is the agent's.
// Fails: an agent that is silent is told as such; its Works are kept up to date,
// so that it finds them when it is back.
//
//	plan.For(consumer, slices in its deliveries) ─▶ deliveries ─▶ agent: plan.For(itself, slices in its cluster) ─▶ cluster
//	                                                     ◀── condition Applied ──┘
package pull
