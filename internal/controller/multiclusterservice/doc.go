// Package multiclusterservice claims the Service of each MultiClusterService, so
// that it stands in every cluster that takes part, and tells how far it does.
//
// Watches: MultiClusterServices, Services, Clusters, their bindings and Works on
// the hub.
// Reads: on deletion also the slice stores of members, to see that all is gone.
// Writes: the binding of the Service, or its claim on a binding of another's; marks
// on the Service; on MultiClusterServices the permanent id, the finalizer and the
// condition ServiceApplied, and Ready once they are being deleted; events on them.
// Owns: bindings labelled with MultiClusterService; those conditions.
// Fails: a missing or unsupported Service, and clusters that refuse it, are told
// in the condition. Nothing is retried that a change does not announce.
package multiclusterservice
