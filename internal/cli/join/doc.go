// Package join is the command that makes a cluster a member.
//
// Reads: the hub's Clusters, the member's marker. Writes: what package
// membership draws; the Cluster last. Fails: before the Cluster exists, with
// everything undone that this call made; after it, with what the hub says of
// the member.
package join
