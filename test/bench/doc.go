// Program bench measures how fast and how dear a control plane is that gives a
// Service to every cluster: from outside, over kubeconfigs, with watches and
// clocks of its own. It knows the API and nothing of who serves it.
//
//	bench run --members 5       starts a fleet by bin/sandbox, measures, takes it down
//	bench run --kubeconfig-dir  measures any control plane that serves this API
//	bench report RESULT.json …  writes the tables and plots of earlier runs
//	bench scale --simulated N   a real hub with many simulated members (scale.go, membersim/)
//
// What is measured is in the files of these names:
//
//	dispatch.go   T1, T3: from the wish to the last slice
//	change.go     T2: from a change of one endpoint to the last consumer
//	restart.go    T4: from the start of a killed control plane to the last consumer
//	withdraw.go   T5: from the end of a wish, or of a membership, to nothing left
//	floor.go      the same writes in members by a bare client: what nobody can beat
//	cost.go       requests by resource, CPU, memory, objects: what it takes
//
// And how, in these:
//
//	plane.go      the control plane under test, and how it is killed and started
//	cluster.go    one API server
//	observer.go   when which slice was seen where
//	site.go       a namespace with services and slices
//	result.go, table.go, plot.go    what comes out
package main
