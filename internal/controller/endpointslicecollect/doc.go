// Package endpointslicecollect keeps the hub's memory of providers: one suspended
// Work for each slice of each wanted service, in the provider's execution
// namespace. It is what the hub knows after a restart of a provider that it
// cannot ask.
//
// Watches: own slices of members; MultiClusterServices, Clusters and collected
// Works on the hub.
// Reads: the provider's slice store.
// Writes: collected Works.
// Owns: collected Works; the label that lists their interested owners. Shares
// them with no other controller: whoever wants slices of a service asks here.
// Fails: on a hub that refuses writes, it tries again; a provider that cannot be
// reached changes nothing.
package endpointslicecollect
