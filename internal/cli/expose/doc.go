// Package expose is the command that gives a Service one name in many clusters.
//
// Reads: the hub's Service and Clusters, to warn of what is missing: both may
// come later, so neither is an error. Writes: the MultiClusterService.
package expose
