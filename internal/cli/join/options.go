package join

import (
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/validation"

	clusterv1alpha1 "github.com/namesake-io/namesake/api/cluster/v1alpha1"
	"github.com/namesake-io/namesake/internal/cli/console"
)

// Options of a join.
type Options struct {
	// Name of the cluster on the hub.
	Name string
	// Kubeconfig and Context of the member.
	Kubeconfig, Context string
	// APIEndpoint is the member's URL as the hub sees it; empty means that of
	// the kubeconfig.
	APIEndpoint string
	// Provider, Region and Zones describe the member.
	Provider, Region string
	Zones            []string
	// NodeSummary lets its nodes be listed.
	NodeSummary bool
	// Force takes the member over from another hub.
	Force bool
	// WaitTimeout is how long to wait for Ready; zero does not wait.
	WaitTimeout time.Duration
	// TokenWait is how long to wait for the member to fill the token's Secret.
	TokenWait time.Duration
}

// AddFlags adds the flags of the command.
func (o *Options) AddFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.Kubeconfig, "cluster-kubeconfig", "", "kubeconfig file of the cluster to join, of somebody who may create roles there (required)")
	flags.StringVar(&o.Context, "cluster-context", "", "context of that kubeconfig (default: its current-context)")
	flags.StringVar(&o.APIEndpoint, "api-endpoint", "",
		"URL of the cluster's API server as the hub sees it (default: that of the kubeconfig)")
	flags.StringVar(&o.Provider, "provider", "", "provider of the cluster, for example the name of a cloud")
	flags.StringVar(&o.Region, "region", "", "region that the cluster stands in")
	flags.StringSliceVar(&o.Zones, "zone", nil, "zones that the cluster stands in")
	flags.BoolVar(&o.NodeSummary, "node-summary", false, "let the hub list nodes there, to count them (see --cluster-node-summary of the controller-manager)")
	flags.BoolVar(&o.Force, "force", false, "take the cluster over from another hub, which loses its access")
	flags.DurationVar(&o.WaitTimeout, "wait-timeout", 60*time.Second, "how long to wait until the hub finds the cluster Ready; 0 does not wait")
	flags.DurationVar(&o.TokenWait, "token-wait", 10*time.Second, "how long to wait for the cluster to issue a token")
}

// Validate checks what can be checked without an API server.
func (o *Options) Validate() error {
	if err := ValidateName(o.Name); err != nil {
		return err
	}
	if o.Kubeconfig == "" {
		return console.WithHint(console.Usage("--cluster-kubeconfig is required"),
			"--cluster-kubeconfig FILE names the kubeconfig of the cluster to join")
	}
	if o.APIEndpoint != "" {
		if u, err := url.Parse(o.APIEndpoint); err != nil || u.Scheme != "https" || u.Host == "" {
			return console.Usage("--api-endpoint %q is no https URL, for example https://10.0.0.1:6443", o.APIEndpoint)
		}
	}
	return nil
}

// ValidateName checks a cluster's name.
func ValidateName(name string) error {
	const rule = "a cluster's name is a DNS-1123 label of at most %d characters (lower case letters, digits and '-', no dots)"
	var fault, hint string
	switch {
	case len(name) > clusterv1alpha1.MaxNameLength:
		fault = fmt.Sprintf("is %d characters long", len(name))
		hint = "choose a shorter name: it becomes part of the names of namespaces and slices"
	case strings.Contains(name, "."):
		fault = "has a dot"
		hint = fmt.Sprintf("for example %q", strings.ReplaceAll(name, ".", "-"))
	case len(validation.IsDNS1123Label(name)) > 0:
		fault = "is not valid"
		hint = "for example \"member1\" or \"eu-west-1a\""
	default:
		return nil
	}
	return console.WithHint(console.Usage("the name %q %s: "+rule, name, fault, clusterv1alpha1.MaxNameLength), "%s", hint)
}
