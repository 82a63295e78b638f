// Package unjoin is the command that lets a member go.
//
// Writes: it deletes the Cluster, whose finalizer makes the controller clean the
// member, then the hub's Secret, then, given the member's kubeconfig, what the
// join left there. Fails: for an unknown name; when the controller has not
// finished in time, with what is still there.
package unjoin
