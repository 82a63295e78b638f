// Package plan decides what a fleet consists of: files, processes, their
// arguments, ports and order. It is a pure function of its options. Nothing here
// reads a file, opens a port or starts a process; package fleet carries a plan
// out, and `sandbox up --dry-run` prints one.
//
//	etcd ──▶ hub-apiserver ──▶ hub-kube-controller-manager
//	   └───▶ memberN-apiserver ──▶ memberN-kube-controller-manager
//	relay                           (the hub's path to each member)
//	then install, controller-manager, join member1 … memberN   (not when bare)
//	     or, for a pull member, token, register and its agent
//
// A further layer (a data plane) is one more function that appends components,
// files and ports in New and PortNames.
package plan
