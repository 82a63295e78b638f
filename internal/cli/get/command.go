package get

import (
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericclioptions"

	clusterv1alpha1 "github.com/namesake-io/namesake/api/cluster/v1alpha1"
	networkingv1alpha1 "github.com/namesake-io/namesake/api/networking/v1alpha1"
	"github.com/namesake-io/namesake/internal/cli/complete"
	"github.com/namesake-io/namesake/internal/cli/console"
	"github.com/namesake-io/namesake/internal/cli/target"
)

// wide is the one output format that is ours and not a library's.
const wide = "wide"

// Options of a get.
type Options struct {
	// Names to show; empty means all.
	Names []string
	// Namespace to look in; empty means all, or that there are none.
	Namespace string

	output *genericclioptions.PrintFlags
}

// NewCommand returns `get`, with a command below it for each kind.
func NewCommand(f *target.Factory) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "get",
		Short: "Show clusters and services",
		Args:  cobra.ArbitraryArgs,
		RunE:  console.Group,

		SuggestionsMinimumDistance: 2,
	}
	cmd.AddCommand(newClustersCommand(f), newServicesCommand(f))
	return cmd
}

func newClustersCommand(f *target.Factory) *cobra.Command {
	o := newOptions()
	cmd := &cobra.Command{
		Use:               "clusters [NAME...]",
		Aliases:           []string{"cluster"},
		Short:             "Show the joined clusters",
		ValidArgsFunction: complete.Clusters(f),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Names = args
			return run(cmd.Context(), f, o, kind{
				gvk:   clusterv1alpha1.GroupVersion.WithKind("Cluster"),
				title: "clusters",
				table: clusterTable,
			})
		},
	}
	o.addFlags(cmd)
	return cmd
}

func newServicesCommand(f *target.Factory) *cobra.Command {
	o := newOptions()
	all := false
	cmd := &cobra.Command{
		Use:     "services [NAME...]",
		Aliases: []string{"service", "svc", "mcs"},
		Short:   "Show the exposed services: providers, consumers, endpoints, state",
		Long: `Show the exposed services: providers, consumers, endpoints, state.

ENDPOINTS are the ready ones of all that the providers have. -o wide has a line
for each service and cluster.`,
		ValidArgsFunction: complete.MultiClusterServices(f),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Names = args
			if all && len(args) > 0 {
				return console.Usage("names and --all-namespaces exclude each other: a name is one in a namespace")
			}
			if !all {
				var err error
				if o.Namespace, err = f.Namespace(); err != nil {
					return err
				}
			}
			return run(cmd.Context(), f, o, kind{
				gvk:        networkingv1alpha1.GroupVersion.WithKind("MultiClusterService"),
				title:      "services",
				namespaced: true,
				table:      serviceTable,
			})
		},
	}
	cmd.Flags().BoolVarP(&all, "all-namespaces", "A", false, "show those of all namespaces")
	o.addFlags(cmd)
	return cmd
}

func newOptions() *Options {
	return &Options{output: genericclioptions.NewPrintFlags("")}
}

func (o *Options) addFlags(cmd *cobra.Command) {
	o.output.AddFlags(cmd)
	formats := append([]string{wide}, o.output.AllowedFormats()...)
	cmd.Flag("output").Usage = "output format, one of: " + strings.Join(formats, ", ")
	complete.Flag(cmd, "output", cobra.FixedCompletions(formats, cobra.ShellCompDirectiveNoFileComp))
}

// format is "" or wide for a table, else a format of the library.
func (o *Options) format() string { return *o.output.OutputFormat }

func (o *Options) checkFormat() error {
	if o.format() == wide || o.format() == "" && *o.output.TemplatePrinterFlags.TemplateArgument == "" {
		return nil
	}
	_, err := o.output.ToPrinter()
	if genericclioptions.IsNoCompatiblePrinterError(err) {
		return console.WithHint(console.Usage("unknown output format %q", o.format()),
			"known are: %s", strings.Join(append([]string{wide}, o.output.AllowedFormats()...), ", "))
	}
	if err != nil {
		return &console.UsageError{Err: err}
	}
	return nil
}

// kind is what a get shows.
type kind struct {
	gvk        schema.GroupVersionKind
	title      string
	namespaced bool
	table      tableFunc
}
