// Package fabric makes the network that joins the nodes of a fleet, carries each
// node's connections to its API server, and harms the network on request.
//
// All links are made inside the fleet's namespaces: the machine's own network is
// never touched, and deleting the namespaces deletes everything.
package fabric
