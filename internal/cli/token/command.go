package token

import (
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/namesake-io/namesake/internal/cli/console"
	"github.com/namesake-io/namesake/internal/cli/join"
	"github.com/namesake-io/namesake/internal/cli/target"
)

// leastTTL is the shortest life that an API server gives a token.
const leastTTL = 10 * time.Minute

// Options of a creation.
type Options struct {
	// Name that the cluster will have.
	Name string
	// TTL is how long the token is valid.
	TTL time.Duration
	// HubServer is the hub's URL as the cluster sees it; empty means that of the
	// kubeconfig.
	HubServer string
	// Write names a file to put the token into, with the way to the hub.
	Write string
}

// AddFlags adds the flags of the command.
func (o *Options) AddFlags(flags *pflag.FlagSet) {
	flags.DurationVar(&o.TTL, "ttl", time.Hour, "how long the token is valid")
	flags.StringVar(&o.HubServer, "hub-server", "", "URL of the hub's API server as the cluster sees it (default: that of the kubeconfig)")
	flags.StringVar(&o.Write, "write", "", "put token and way to the hub into this file, a kubeconfig, and print neither")
}

// Validate checks what can be checked without an API server.
func (o *Options) Validate() error {
	if err := join.ValidateName(o.Name); err != nil {
		return err
	}
	if o.Name == leaderLease {
		return console.Usage("the name %q is that of the controller-manager's own lease, and an agent's lease has its cluster's name", o.Name)
	}
	if o.TTL < leastTTL {
		return console.Usage("--ttl %s is too short: at least %s", o.TTL, leastTTL)
	}
	return nil
}

// NewCommand returns `token`.
func NewCommand(f *target.Factory) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "token",
		Short: "Let a cluster register itself, which the hub cannot or shall not call",
		Args:  cobra.ArbitraryArgs,
		RunE:  console.Group,
	}
	cmd.AddCommand(newCreate(f), newList(f), newDelete(f))
	return cmd
}

func newCreate(f *target.Factory) *cobra.Command {
	o := &Options{}
	cmd := &cobra.Command{
		Use:   "create NAME",
		Short: "Make a token that registers one cluster under NAME, once",
		Long: `Make a token that registers one cluster under NAME, once, and print the command
to run where that cluster can be reached. The accounts that its agent will have
on the hub are made with it: they may write what is the cluster's own, and
nothing else.

For a cluster that is registered already, the token renews the agent's
credential.`,
		Args: console.ExactArgs("NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Name = args[0]
			if err := o.Validate(); err != nil {
				return err
			}
			return Create(cmd.Context(), f, *o)
		},
	}
	o.AddFlags(cmd.Flags())
	return cmd
}

func newList(f *target.Factory) *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List the tokens that can still be used",
		Args:  console.ExactArgs(),
		RunE:  func(cmd *cobra.Command, _ []string) error { return List(cmd.Context(), f) },
	}
}

func newDelete(f *target.Factory) *cobra.Command {
	return &cobra.Command{
		Use:   "delete NAME",
		Short: "Revoke the token for NAME",
		Long: `Revoke the token for NAME. When no cluster has registered under that name, the
accounts that were made with the token go too.`,
		Args: console.ExactArgs("NAME"),
		RunE: func(cmd *cobra.Command, args []string) error { return Delete(cmd.Context(), f, args[0]) },
	}
}
