package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/coredns/coredns/coremain"
	_ "github.com/coredns/coredns/plugin/cache"
	_ "github.com/coredns/coredns/plugin/errors"
	_ "github.com/coredns/coredns/plugin/kubernetes"
	_ "github.com/coredns/coredns/plugin/ready"
	"github.com/spf13/cobra"
	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	proxy "k8s.io/kubernetes/cmd/kube-proxy/app"
)

// applet is one of the programs that kubebox can become. run receives the
// arguments as the program itself would see them, args[0] being its name, and
// returns the exit code.
type applet struct {
	name string
	run  func(args []string) int
}

func applets() []applet {
	return []applet{
		{"etcd", runEtcd},
		{"kube-apiserver", runCobra(apiserver.NewAPIServerCommand)},
		{"kube-controller-manager", runCobra(controllermanager.NewControllerManagerCommand)},
		{"kube-proxy", runCobra(proxy.NewProxyCommand)},
		{"coredns", runCoreDNS},
	}
}

// choose finds the applet by the name of the program, else by the first
// argument, and returns its arguments.
func choose(argv []string) (applet, []string, error) {
	var name string
	if len(argv) > 0 {
		name = filepath.Base(argv[0])
		if a, ok := byName(name); ok {
			return a, argv, nil
		}
	}
	if len(argv) > 1 {
		if a, ok := byName(argv[1]); ok {
			return a, argv[1:], nil
		}
		return applet{}, nil, fmt.Errorf("no applet is named %q or %q; applets: %s", name, argv[1], names())
	}
	return applet{}, nil, fmt.Errorf("give an applet as the first argument, or start kubebox through a link of its name; applets: %s", names())
}

func byName(name string) (applet, bool) {
	for _, a := range applets() {
		if a.name == name {
			return a, true
		}
	}
	return applet{}, false
}

func names() string {
	var list []string
	for _, a := range applets() {
		list = append(list, a.name)
	}
	return strings.Join(list, ", ")
}

// runEtcd calls etcd's main, which returns only when the server has stopped.
func runEtcd(args []string) int {
	etcdmain.Main(args)
	return 0
}

// runCobra adapts a Kubernetes command, which reads os.Args.
func runCobra(newCommand func() *cobra.Command) func([]string) int {
	return func(args []string) int {
		os.Args = args
		return cli.Run(newCommand())
	}
}

// runCoreDNS calls CoreDNS's main, which reads os.Args and ends the process
// itself when it fails.
func runCoreDNS(args []string) int {
	os.Args = args
	coremain.Run()
	return 0
}
