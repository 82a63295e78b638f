// Package cluster follows the life of members: it connects them, tells how they
// are, and lets them go when nothing of ours is left in them.
//
// Watches: Clusters and their Secrets on the hub; the health of members.
// Reads: what a member's API server serves; on leaving, what still stands in it.
// Writes: the status, taints and finalizer of Clusters; execution namespaces;
// events on Clusters.
// Owns: execution namespaces; those fields.
// Fails: a Secret that is missing or cannot be used is told in the condition
// Ready and changes no connection that works. A member that leaves while it
// cannot be reached is waited for, unless its Cluster has the annotation
// cluster.namesake.io/force-unjoin.
package cluster
