// Package demo tells Namesake's main job as a story, on a fleet of its own, and
// measures each sentence that it says.
//
//	demo.go     a run from the first process to the last one
//	story.go    the steps, and what happens in good weather
//	outage.go   what happens when things stop
//	world.go    clusters: their clients, and the objects that the story makes
//	journey.go  a pod's change, from its write to the last consumer
//	watch.go    one watch on the slices of each member
//	objects.go  fields of objects that have no type here
//	book.go     what a watch has seen: pure
//	stats.go    times as numbers and as words: pure
//	output.go   lines, colours and columns
//
// There is no data plane yet: pods are objects whose status the story writes.
// Everything else is real: Kubernetes' own controller makes slices of them, and
// Namesake's controller-manager carries the slices.
package demo
