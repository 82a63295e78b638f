// Package test holds the sandbox to its contract: it runs the command as a
// person does and looks at the fleets with nothing but their kubeconfigs. It
// needs bin/kubebox.
package test
