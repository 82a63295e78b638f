// Package cli is the command line of the sandbox: flags, arguments and output.
// What the commands do is in package fleet.
package cli
