// Package get is the command that shows clusters and services: tables for
// people, the objects as they are for programs.
//
// Reads: Clusters, MultiClusterServices. Writes: nothing.
package get
