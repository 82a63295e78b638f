// Package binding turns a binding into one Work for each member that shall hold
// the resource: the union of what all its claimants want.
//
// Watches: ResourceBindings; the bound resources; their Works; Clusters.
// Reads: the resource as it is, with fields that we do not know.
// Writes: Works that put the resource into members; the finalizer of bindings.
// Owns: those Works. A Work of the same resource that stands there under another
// name is taken over.
// Fails: a resource that is missing takes its Works away; a cluster that has not
// joined, or is leaving, gets none.
package binding
