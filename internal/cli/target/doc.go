// Package target is the API servers that a command talks to: the hub, named by
// the global flags, and a member, named by its own kubeconfig. It also turns
// what they answer into sentences for people.
package target
