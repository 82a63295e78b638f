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
// The version must be set: an API server built without one calls itself
// v0.0.0-master+$Format:%H$, and clients judge what it can do by that.
package main

import (
	"fmt"
	"os"

	"github.com/namesake-io/namesake/sandbox/internal/applet"
)

func main() {
	chosen, args, err := applet.Choose(applets(), os.Args)
	if err != nil {
		fmt.Fprintln(os.Stderr, "kubebox:", err)
		os.Exit(2)
	}
	os.Args = args // most of them look there
	os.Exit(chosen.Run(args))
}
