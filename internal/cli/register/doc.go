// Package register is the command that makes a cluster a member by a token of the
// hub, for one that the hub cannot or shall not call.
//
// Reads: the marker in the member; the Cluster of its name on the hub. Writes: in
// the member what package membership draws, the credential last; on the hub the
// Cluster. Run again after a failure, it goes on.
package register
