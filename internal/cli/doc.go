// Package cli is namesakectl, which is also the kubectl plugin
// kubectl-namesake: the root command here, one package below for each command.
//
//	target      the API servers that a command talks to
//	console     steps, warnings, errors with a hint
//	membership  what a join leaves behind and an unjoin takes away
//	install  join  unjoin  get  expose
package cli
