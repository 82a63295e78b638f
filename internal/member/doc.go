// Package member holds the connections to members: one per Cluster object, keyed
// by its name and UID, each with its own transport, health probe, caches and,
// through Queues, its own work queue. A member that is dead or slow delays no
// other, and everything of a member ends when it leaves.
//
//	Cluster + Secret ──▶ Registry.Ensure ──▶ Member
//	                                          ├─ probe        is its API server there? opens and closes the gate
//	                                          ├─ SliceStore   every EndpointSlice; endpoints only of wanted services
//	                                          ├─ objects      what the hub manages there, and Namespaces
//	                                          └─ Client       reads and writes, fails at once while the gate is closed
//	                      Registry.Subscribe ◀── events of all members
//
// While a member cannot be reached its gate is closed: caches wait and go on the
// moment it is back, instead of in some later turn of a back-off; writes fail at
// once instead of in a time-out. What was last seen stays in the store, since an
// unreachable API server says nothing about pods.
package member
