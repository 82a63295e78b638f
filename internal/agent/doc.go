// Package agent puts the agent together, which stands in for the hub in a member
// that the hub does not call: flags, the two connections, and the one list of
// controllers (controllers.go). They are the hub's own, and work on one member.
//
//	hub: execution namespace                                      agent                   its cluster
//	  Works with objects        ──watch─▶ execution                 ──write─▶ Services, Namespaces
//	  deliveries (slices)       ──watch─▶ endpointsliceDispatch     ──write─▶ dispatched slices
//	  orders                    ──watch─▶ endpointsliceCollect      ◀─watch── its own slices
//	  collected Works           ◀─write──┘
//	hub: its Cluster's status   ◀─write── cluster                   ◀─/readyz
//	hub: its Lease              ◀─write── heartbeat
//
// That and no more is what its account on the hub may do; its credential is bound
// to its own name and renewed by itself (credential.go).
package agent
