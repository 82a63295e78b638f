// Command kubebox is five programs in one: etcd, kube-apiserver,
// kube-controller-manager, kube-proxy and coredns. Which one it becomes is
// decided by the name it was started under (a symlink is enough), else by its
// first argument.
//
// Build it with
//
//	CGO_ENABLED=0 go build -trimpath -ldflags "-s -w \
//	  -X k8s.io/component-base/version.gitVersion=v1.37.2 \
//	  -X k8s.io/component-base/version.gitMajor=1 \
//	  -X k8s.io/component-base/version.gitMinor=37" \
//	  -o ../bin/kubebox ./cmd/kubebox
//
// The version must be set: an API server without one reports v0.0.0-master and
// refuses its own feature gates.
package main

import (
	"fmt"
	"os"
)

func main() {
	applet, args, err := choose(os.Args)
	if err != nil {
		fmt.Fprintln(os.Stderr, "kubebox:", err)
		os.Exit(2)
	}
	os.Exit(applet.run(args))
}
