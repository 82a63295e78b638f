// Package node is a member's node: it registers a Node, takes the pods that wait
// for one, and runs each as processes of this machine in a network namespace of
// its own. virtual-kubelet's library speaks to the API server; what a kubelet
// would do on its machine is here.
//
//	agent.go      what one node consists of, and its run
//	object.go     the Node as the API server shows it
//	bind.go       the scheduler of a cluster that has one node
//	provider.go   pods as virtual-kubelet asks for them
//	pod.go        one pod: network, order of containers, end
//	container.go  one container: start, wait, restart, end
//	watch.go      its probes
//	state.go      pure: what states and exits come to
//	logs.go       what containers print
//	server.go     logs, exec and port-forward, for the API server
//	terminal.go   a terminal for exec
//
// Pods live as long as the agent. It makes them anew, with their addresses, when
// it comes back.
package node
