package expose

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/cli-runtime/pkg/genericclioptions"

	networkingv1alpha1 "github.com/namesake-io/namesake/api/networking/v1alpha1"
	"github.com/namesake-io/namesake/internal/cli/console"
	"github.com/namesake-io/namesake/internal/cli/join"
)

// Values of --dry-run.
const (
	dryRunNone   = "none"
	dryRunClient = "client"
	dryRunServer = "server"
)

// Options of an expose.
type Options struct {
	// Service and Namespace on the hub.
	Service, Namespace string
	// From and To are provider and consumer clusters; empty means all.
	From, To []string
	// Ports as they were typed: NAME:PORT or PORT.
	Ports []string
	// Type of the exposure.
	Type string
	// DryRun is none, client or server.
	DryRun string

	output *genericclioptions.PrintFlags
}

func (o *Options) addFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringSliceVar(&o.From, "from", nil, "clusters whose pods back the service (default: all)")
	flags.StringSliceVar(&o.To, "to", nil, "clusters whose pods may call the service (default: all)")
	flags.StringSliceVar(&o.Ports, "port", nil, "expose only this port of the Service, as NAME:PORT or PORT; may be repeated")
	flags.StringVar(&o.Type, "type", string(networkingv1alpha1.ExposureTypeCrossCluster), "CrossCluster or LoadBalancer")
	flags.StringVar(&o.DryRun, "dry-run", dryRunNone, "client: only print what would be created; server: let the hub check it too")
	flags.Lookup("dry-run").NoOptDefVal = dryRunClient
	o.output.AddFlags(cmd)
}

// build checks the options and returns the object that they describe.
func (o *Options) build() (*networkingv1alpha1.MultiClusterService, error) {
	if faults := validation.IsDNS1035Label(o.Service); len(faults) > 0 {
		return nil, console.WithHint(
			console.Usage("the name %q is not one of a Service: a DNS-1035 label of at most 63 characters", o.Service),
			"lower case letters, digits and '-', starting with a letter")
	}
	mcs := &networkingv1alpha1.MultiClusterService{}
	mcs.SetGroupVersionKind(networkingv1alpha1.GroupVersion.WithKind("MultiClusterService"))
	mcs.Namespace, mcs.Name = o.Namespace, o.Service

	exposure := networkingv1alpha1.ExposureType(o.Type)
	switch exposure {
	case networkingv1alpha1.ExposureTypeCrossCluster, networkingv1alpha1.ExposureTypeLoadBalancer:
		mcs.Spec.Types = []networkingv1alpha1.ExposureType{exposure}
	default:
		return nil, console.Usage("--type %q is neither CrossCluster nor LoadBalancer", o.Type)
	}
	switch o.DryRun {
	case dryRunNone, dryRunClient, dryRunServer:
	default:
		return nil, console.Usage("--dry-run %q is none of: none, client, server", o.DryRun)
	}
	var err error
	if mcs.Spec.ProviderClusters, err = selectors("--from", o.From); err != nil {
		return nil, err
	}
	if mcs.Spec.ConsumerClusters, err = selectors("--to", o.To); err != nil {
		return nil, err
	}
	mcs.Spec.Ports, err = ports(o.Ports)
	return mcs, err
}

func selectors(flag string, names []string) ([]networkingv1alpha1.ClusterSelector, error) {
	var selected []networkingv1alpha1.ClusterSelector
	seen := map[string]bool{}
	for _, name := range names {
		if err := join.ValidateName(name); err != nil {
			return nil, fmt.Errorf("%s: %w", flag, err)
		}
		if seen[name] {
			return nil, console.Usage("%s names the cluster %q twice", flag, name)
		}
		seen[name] = true
		selected = append(selected, networkingv1alpha1.ClusterSelector{Name: networkingv1alpha1.ClusterName(name)})
	}
	return selected, nil
}

func ports(texts []string) ([]networkingv1alpha1.ExposurePort, error) {
	var parsed []networkingv1alpha1.ExposurePort
	seen := map[networkingv1alpha1.ExposurePort]bool{}
	for _, text := range texts {
		port, err := parsePort(text)
		if err != nil {
			return nil, err
		}
		if seen[port] {
			return nil, console.Usage("--port names %q twice", text)
		}
		seen[port] = true
		parsed = append(parsed, port)
	}
	return parsed, nil
}

func parsePort(text string) (networkingv1alpha1.ExposurePort, error) {
	const highest = 65535
	name, digits, named := strings.Cut(text, ":")
	if !named {
		name, digits = "", text
	}
	number, err := strconv.Atoi(digits)
	if err != nil || number < 1 || number > highest {
		return networkingv1alpha1.ExposurePort{}, console.WithHint(
			console.Usage("--port %q has no port number from 1 to %d", text, highest), "for example --port http:80, or --port 80")
	}
	if named && len(validation.IsDNS1123Label(name)) > 0 {
		return networkingv1alpha1.ExposurePort{}, console.WithHint(
			console.Usage("--port %q: %q is not the name of a port", text, name), "for example --port http:80, or --port 80")
	}
	return networkingv1alpha1.ExposurePort{Name: name, Port: int32(number)}, nil
}
