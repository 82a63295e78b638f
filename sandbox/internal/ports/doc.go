// Package ports chooses the loopback ports of a fleet and holds them until the
// processes that they are for start.
//
// Free ports are taken from below the range that the kernel gives to outgoing
// connections. In that range a fleet would now and then lose the port of a
// stopped server to somebody's connection, and a client that keeps dialling a
// dead port there can even connect to itself.
package ports
