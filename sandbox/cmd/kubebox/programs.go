package main

import (
	"flag"

	"github.com/coredns/coredns/coremain"
	_ "github.com/coredns/coredns/plugin/cache"
	_ "github.com/coredns/coredns/plugin/errors"
	_ "github.com/coredns/coredns/plugin/kubernetes"
	_ "github.com/coredns/coredns/plugin/loadbalance"
	_ "github.com/coredns/coredns/plugin/ready"
	"github.com/spf13/cobra"
	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/metrics/prometheus/clientgo" // metrics of the clients of all components
	_ "k8s.io/component-base/metrics/prometheus/version"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	proxy "k8s.io/kubernetes/cmd/kube-proxy/app"

	"github.com/namesake-io/namesake/sandbox/internal/applet"
)

func applets() []applet.Applet {
	return []applet.Applet{
		{Name: "etcd", Run: runEtcd},
		{Name: "kube-apiserver", Run: kubernetes(apiserver.NewAPIServerCommand)},
		{Name: "kube-controller-manager", Run: kubernetes(controllermanager.NewControllerManagerCommand)},
		{Name: "kube-proxy", Run: kubernetes(proxy.NewProxyCommand)},
		{Name: "coredns", Run: runCoreDNS},
	}
}

// kubernetes adapts a Kubernetes program, which reads os.Args.
func kubernetes(newCommand func() *cobra.Command) func([]string) int {
	return func(args []string) int {
		// CoreDNS has put its flags into the global set, which some Kubernetes
		// programs take over: its --version would hide theirs.
		flag.CommandLine = flag.NewFlagSet(args[0], flag.ExitOnError)
		return cli.Run(newCommand())
	}
}

// runEtcd returns when the server has stopped; etcd ends the process itself
// when it fails.
func runEtcd(args []string) int {
	etcdmain.Main(args)
	return 0
}

// runCoreDNS returns when the server has stopped; CoreDNS reads os.Args, and
// ends the process itself when it fails.
func runCoreDNS([]string) int {
	coremain.Run()
	return 0
}
