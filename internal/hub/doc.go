// Package hub puts the controller-manager together: flags, caches and indexes,
// the connections to members, and the one list of controllers (controllers.go).
package hub
