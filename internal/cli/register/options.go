package register

import (
	"encoding/base64"
	"fmt"
	"io"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/namesake-io/namesake/internal/cli/console"
	"github.com/namesake-io/namesake/internal/cli/join"
)

// tokenVariable is the environment variable that may hold the token.
const tokenVariable = "NAMESAKE_TOKEN"

// Options of a registration.
type Options struct {
	// Name of the cluster on the hub.
	Name string
	// Token, or TokenFile ("-" is standard input), or the variable.
	Token, TokenFile string
	// HubServer, HubCAFile and HubCAData say where the hub is, or HubKubeconfig
	// says all of it.
	HubServer, HubCAFile, HubCAData, HubKubeconfig string
	// Kubeconfig and Context of the member.
	Kubeconfig, Context string
	// AgentKubeconfig is a file to write for an agent outside of the cluster.
	AgentKubeconfig string
	// Image of an agent to be run in the cluster. Empty: none.
	Image string
	// CredentialTTL is for how long the first credential is asked for.
	CredentialTTL time.Duration
	// Provider, Region and Zones describe the member.
	Provider, Region string
	Zones            []string
	// NodeSummary lets its nodes be listed.
	NodeSummary bool
	// Force takes the member over from another hub.
	Force bool
}

// AddFlags adds the flags of the command.
func (o *Options) AddFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.Token, "token", "", "token of `token create`; others on this machine may see it there: better say $"+tokenVariable+" or --token-file")
	flags.StringVar(&o.TokenFile, "token-file", "", "file with the token, - for standard input")
	flags.StringVar(&o.HubServer, "hub-server", "", "URL of the hub's API server")
	flags.StringVar(&o.HubCAFile, "hub-ca-file", "", "file with the hub's certificate authority, in PEM (default: those of this machine)")
	flags.StringVar(&o.HubCAData, "hub-ca-data", "", "the same in base64")
	flags.StringVar(&o.HubKubeconfig, "hub-kubeconfig", "", "file of `token create --write`, which says all of the above")
	flags.StringVar(&o.Kubeconfig, "cluster-kubeconfig", "", "kubeconfig file of the cluster, of somebody who may create roles there (required)")
	flags.StringVar(&o.Context, "cluster-context", "", "context of that kubeconfig (default: its current-context)")
	flags.StringVar(&o.AgentKubeconfig, "agent-kubeconfig", "", "write a kubeconfig into this file by which an agent outside of the cluster works in it")
	flags.StringVar(&o.Image, "image", "", "run the agent in the cluster, from this image")
	flags.DurationVar(&o.CredentialTTL, "credential-ttl", 7*24*time.Hour, "for how long the agent's first credential is valid; it renews it by itself")
	flags.StringVar(&o.Provider, "provider", "", "provider of the cluster, for example the name of a cloud")
	flags.StringVar(&o.Region, "region", "", "region that the cluster stands in")
	flags.StringSliceVar(&o.Zones, "zone", nil, "zones that the cluster stands in")
	flags.BoolVar(&o.NodeSummary, "node-summary", false, "let the hub list nodes there, to count them (see --cluster-node-summary of the agent)")
	flags.BoolVar(&o.Force, "force", false, "take the cluster over from another hub, or another name")
}

// Validate checks what can be checked without an API server.
func (o *Options) Validate() error {
	if err := join.ValidateName(o.Name); err != nil {
		return err
	}
	if o.Kubeconfig == "" {
		return console.WithHint(console.Usage("--cluster-kubeconfig is required"),
			"--cluster-kubeconfig FILE names the kubeconfig of the cluster to register")
	}
	if o.HubKubeconfig != "" {
		if o.HubServer != "" || o.HubCAFile != "" || o.HubCAData != "" || o.Token != "" || o.TokenFile != "" {
			return console.Usage("--hub-kubeconfig says where the hub is, and holds the token: leave --hub-server, --hub-ca-… and --token… out")
		}
		return nil
	}
	if u, err := url.Parse(o.HubServer); err != nil || u.Scheme != "https" || u.Host == "" {
		return console.WithHint(console.Usage("--hub-server %q is no https URL", o.HubServer),
			"run `token create %s` against the hub: it prints the whole command", o.Name)
	}
	if o.HubCAFile != "" && o.HubCAData != "" {
		return console.Usage("--hub-ca-file and --hub-ca-data exclude each other")
	}
	return nil
}

// way is where the hub is, and the token for it.
type way struct {
	server string
	ca     []byte
	token  string
}

// way reads it from wherever the options say.
func (o *Options) way(stdin io.Reader) (way, error) {
	if o.HubKubeconfig != "" {
		config, err := clientcmd.BuildConfigFromFlags("", o.HubKubeconfig)
		if err != nil {
			return way{}, fmt.Errorf("reading --hub-kubeconfig: %w", err)
		}
		if config.BearerToken == "" {
			return way{}, console.WithHint(fmt.Errorf("%s has no token", o.HubKubeconfig), "`token create %s --write FILE` makes one that has", o.Name)
		}
		return way{server: config.Host, ca: config.CAData, token: config.BearerToken}, nil
	}
	out := way{server: o.HubServer}
	var err error
	switch {
	case o.HubCAFile != "":
		if out.ca, err = os.ReadFile(o.HubCAFile); err != nil {
			return out, fmt.Errorf("reading --hub-ca-file: %w", err)
		}
	case o.HubCAData != "":
		if out.ca, err = base64.StdEncoding.DecodeString(o.HubCAData); err != nil {
			return out, console.Usage("--hub-ca-data is not base64: %v", err)
		}
	}
	out.token, err = o.token(stdin)
	return out, err
}

// token reads the token.
func (o *Options) token(stdin io.Reader) (string, error) {
	var raw []byte
	var err error
	switch {
	case o.Token != "":
		raw = []byte(o.Token)
	case o.TokenFile == "-":
		raw, err = io.ReadAll(stdin)
	case o.TokenFile != "":
		raw, err = os.ReadFile(o.TokenFile)
	default:
		raw = []byte(os.Getenv(tokenVariable))
	}
	if err != nil {
		return "", fmt.Errorf("reading the token: %w", err)
	}
	token := strings.TrimSpace(string(raw))
	if token == "" {
		return "", console.WithHint(console.Usage("there is no token"), "say $%s, --token-file or --token; `token create %s` makes one", tokenVariable, o.Name)
	}
	return token, nil
}
