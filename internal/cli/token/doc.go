// Package token is the commands that let a cluster register itself: one cluster
// under one name, once, and not for long.
//
// Writes: on the hub, the cluster's execution namespace and accounts with the
// rights of package membership; a Secret that the token is bound to. Fails: for a
// name that is taken, before anything is written.
package token
