package target

import (
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/namesake-io/namesake/internal/cli/console"
)

// Factory gives commands what they share: the hub that the global flags name,
// the streams to write to, and the program's name for hints.
type Factory struct {
	genericiooptions.IOStreams

	// Program is how the user calls us: "namesakectl" or "kubectl namesake".
	Program string

	flags *genericclioptions.ConfigFlags
}

// NewFactory returns a Factory whose flags have still to be added and parsed.
func NewFactory(program string, streams genericiooptions.IOStreams) *Factory {
	var kubeconfig, contextName, namespace string
	return &Factory{
		IOStreams: streams,
		Program:   program,
		flags: &genericclioptions.ConfigFlags{
			KubeConfig: &kubeconfig,
			Context:    &contextName,
			Namespace:  &namespace,
		},
	}
}

// AddFlags adds the flags that name the hub.
func (f *Factory) AddFlags(flags *pflag.FlagSet) {
	flags.StringVar(f.flags.KubeConfig, "kubeconfig", "", "kubeconfig file of the hub (default: $KUBECONFIG, else ~/.kube/config)")
	flags.StringVar(f.flags.Context, "context", "", "context of that kubeconfig (default: its current-context)")
	flags.StringVarP(f.flags.Namespace, "namespace", "n", "", "namespace on the hub (default: that of the context)")
}

// Namespace is the one asked for, else that of the context, else "default".
func (f *Factory) Namespace() (string, error) {
	namespace, _, err := f.flags.ToRawKubeConfigLoader().Namespace()
	return namespace, err
}

// Contexts are the names of the contexts in a kubeconfig, for completion; an
// empty file means the hub's.
func (f *Factory) Contexts(file string) []string {
	loader := f.flags.ToRawKubeConfigLoader()
	if file != "" {
		loader = clientcmd.NewNonInteractiveDeferredLoadingClientConfig(
			&clientcmd.ClientConfigLoadingRules{ExplicitPath: file}, nil)
	}
	raw, err := loader.RawConfig()
	if err != nil {
		return nil
	}
	names := make([]string, 0, len(raw.Contexts))
	for name := range raw.Contexts {
		names = append(names, name)
	}
	return names
}

// Hub returns the API server that the global flags name. It opens no connection.
func (f *Factory) Hub() (*Target, error) {
	loader := f.flags.ToRawKubeConfigLoader()
	access := loader.ConfigAccess()
	file := access.GetExplicitFile()
	if file == "" {
		file = strings.Join(access.GetLoadingPrecedence(), ":")
	}
	hub, err := load(&Target{Role: RoleHub, Kubeconfig: file, Context: *f.flags.Context}, loader, f.ErrOut)
	return hub, console.WithHint(err, "name the hub's kubeconfig with --kubeconfig FILE, and one of its contexts with --context NAME")
}
