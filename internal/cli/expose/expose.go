package expose

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/printers"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/namesake-io/namesake/api/cluster/v1alpha1"
	networkingv1alpha1 "github.com/namesake-io/namesake/api/networking/v1alpha1"
	"github.com/namesake-io/namesake/internal/cli/complete"
	"github.com/namesake-io/namesake/internal/cli/console"
	"github.com/namesake-io/namesake/internal/cli/target"
)

// NewCommand returns `expose`.
func NewCommand(f *target.Factory) *cobra.Command {
	o := &Options{output: genericclioptions.NewPrintFlags("created")}
	cmd := &cobra.Command{
		Use:   "expose SERVICE",
		Short: "Give a Service one name in many clusters",
		Long: `Give a Service one name in many clusters: create the MultiClusterService of its
name in its namespace.`,
		Example: `  # foo, backed and callable in every cluster
  ` + f.Program + ` expose foo -n shop

  # backed in two clusters, callable in a third
  ` + f.Program + ` expose foo -n shop --from member1,member2 --to member3

  # only one of its ports; see what would be created
  ` + f.Program + ` expose foo -n shop --port http:80 --dry-run=client -o yaml`,
		Args:              console.ExactArgs("SERVICE"),
		ValidArgsFunction: complete.First(complete.Services(f)),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Service = args[0]
			var err error
			if o.Namespace, err = f.Namespace(); err != nil {
				return err
			}
			return Run(cmd.Context(), f, *o)
		},
	}
	o.addFlags(cmd)
	complete.Flag(cmd, "from", complete.CommaSeparated(complete.Clusters(f)))
	complete.Flag(cmd, "to", complete.CommaSeparated(complete.Clusters(f)))
	complete.Flag(cmd, "type", cobra.FixedCompletions([]string{
		string(networkingv1alpha1.ExposureTypeCrossCluster), string(networkingv1alpha1.ExposureTypeLoadBalancer),
	}, cobra.ShellCompDirectiveNoFileComp))
	complete.Flag(cmd, "dry-run", cobra.FixedCompletions([]string{dryRunNone, dryRunClient, dryRunServer}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// Run exposes a Service.
func Run(ctx context.Context, f *target.Factory, o Options) error {
	mcs, err := o.build()
	if err != nil {
		return err
	}
	success := "%s"
	if o.DryRun != dryRunNone {
		success = "%s (" + o.DryRun + " dry run)"
	}
	if err := o.output.Complete(success); err != nil {
		return fmt.Errorf("preparing the output: %w", err)
	}
	printer, err := o.output.ToPrinter()
	if err != nil {
		return &console.UsageError{Err: err}
	}
	if o.DryRun == dryRunClient {
		return show(f, printer, mcs)
	}

	hub, err := f.Hub()
	if err != nil {
		return err
	}
	warn(ctx, f, hub, mcs)
	var options []client.CreateOption
	if o.DryRun == dryRunServer {
		options = append(options, client.DryRunAll)
	}
	wanted := mcs.DeepCopy()
	err = hub.Client.Create(ctx, mcs, options...)
	switch {
	case apierrors.IsAlreadyExists(err):
		return exists(ctx, f, hub, wanted)
	case apierrors.IsNotFound(err) && !isMissingKind(err):
		return console.WithHint(fmt.Errorf("the %s has no namespace %q", hub, o.Namespace),
			"create it there first, with the Service: kubectl create namespace %s", o.Namespace)
	case err != nil:
		return hub.Explain(f.Program, fmt.Errorf("creating MultiClusterService %s/%s: %w", o.Namespace, o.Service, err))
	}
	mcs.SetGroupVersionKind(wanted.GroupVersionKind())
	return show(f, printer, mcs)
}

// show prints what was created, without the empty status that the Go type
// always has.
func show(f *target.Factory, printer printers.ResourcePrinter, mcs *networkingv1alpha1.MultiClusterService) error {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(mcs)
	if err != nil {
		return fmt.Errorf("preparing the output: %w", err)
	}
	delete(content, "status")
	if err := printer.PrintObj(&unstructured.Unstructured{Object: content}, f.Out); err != nil {
		return fmt.Errorf("printing: %w", err)
	}
	return nil
}

// isMissingKind: a 404 about the kind and not about the namespace.
func isMissingKind(err error) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status) && (status.Status().Details == nil || status.Status().Details.Kind != "namespaces")
}

// exists compares what is there with what was asked for. The same wish twice is
// no fault.
func exists(ctx context.Context, f *target.Factory, hub *target.Target, wanted *networkingv1alpha1.MultiClusterService) error {
	there := &networkingv1alpha1.MultiClusterService{}
	if err := hub.Client.Get(ctx, client.ObjectKeyFromObject(wanted), there); err != nil {
		return hub.Explain(f.Program, fmt.Errorf("reading MultiClusterService %s/%s: %w", wanted.Namespace, wanted.Name, err))
	}
	name := wanted.Namespace + "/" + wanted.Name
	differences := compare(&there.Spec, &wanted.Spec)
	if len(differences) == 0 {
		fmt.Fprintf(f.Out, "multiclusterservice.networking.karmada.io/%s unchanged: it is exposed like that already\n", wanted.Name)
		return nil
	}
	err := fmt.Errorf("%s is already exposed, and differently: %s", name, strings.Join(differences, "; "))
	if !slices.Equal(there.Spec.Types, wanted.Spec.Types) {
		return console.WithHint(err, "a type cannot be changed; to make a new one, first: kubectl delete mcs %s -n %s", wanted.Name, wanted.Namespace)
	}
	return console.WithHint(err, "to change it: kubectl edit mcs %s -n %s", wanted.Name, wanted.Namespace)
}

// compare says in which of the fields that expose sets two specs differ.
func compare(there, wanted *networkingv1alpha1.MultiClusterServiceSpec) []string {
	var differences []string
	add := func(field, is, shall string) {
		if is != shall {
			differences = append(differences, fmt.Sprintf("%s is %s, asked for was %s", field, is, shall))
		}
	}
	add("types", typeText(there.Types), typeText(wanted.Types))
	add("ports", portText(there.Ports), portText(wanted.Ports))
	add("providerClusters", clusterText(there.ProviderClusters), clusterText(wanted.ProviderClusters))
	add("consumerClusters", clusterText(there.ConsumerClusters), clusterText(wanted.ConsumerClusters))
	return differences
}

func typeText(types []networkingv1alpha1.ExposureType) string {
	texts := make([]string, 0, len(types))
	for _, t := range types {
		texts = append(texts, string(t))
	}
	return text(texts, "none")
}

func portText(ports []networkingv1alpha1.ExposurePort) string {
	texts := make([]string, 0, len(ports))
	for _, p := range ports {
		texts = append(texts, strings.TrimPrefix(fmt.Sprintf("%s:%d", p.Name, p.Port), ":"))
	}
	return text(texts, "all")
}

func clusterText(selectors []networkingv1alpha1.ClusterSelector) string {
	texts := make([]string, 0, len(selectors))
	for _, s := range selectors {
		if s.LabelSelector != nil {
			texts = append(texts, "a labelSelector")
			continue
		}
		texts = append(texts, string(s.Name))
	}
	return text(texts, "all")
}

// text writes a list without regard to its order, which means nothing here.
func text(items []string, empty string) string {
	if len(items) == 0 {
		return empty
	}
	slices.Sort(items)
	return "[" + strings.Join(items, " ") + "]"
}

// warn tells what will keep the exposure from working, as far as the user may
// see it. All of it may still come.
func warn(ctx context.Context, f *target.Factory, hub *target.Target, mcs *networkingv1alpha1.MultiClusterService) {
	var service corev1.Service
	err := hub.Client.Get(ctx, client.ObjectKeyFromObject(mcs), &service)
	switch {
	case apierrors.IsNotFound(err):
		console.Warn(f.ErrOut, fmt.Sprintf("the hub has no Service %s/%s: nothing is shared until it has", mcs.Namespace, mcs.Name),
			"apply the Service that the clusters have to the hub as well")
	case err == nil:
		if missing := missingPorts(&service, mcs.Spec.Ports); len(missing) > 0 {
			console.Warn(f.ErrOut, fmt.Sprintf("Service %s/%s has no port %s", mcs.Namespace, mcs.Name, strings.Join(missing, ", ")),
				"it has: "+strings.Join(servicePorts(&service), ", "))
		}
	}
	var clusters clusterv1alpha1.ClusterList
	if err := hub.Client.List(ctx, &clusters); err != nil {
		return
	}
	if unknown := unknownClusters(clusters.Items, mcs); len(unknown) > 0 {
		console.Warn(f.ErrOut, "not joined: "+console.List(unknown), "they count as soon as they join: "+f.Program+" get clusters")
	}
}

func unknownClusters(joined []clusterv1alpha1.Cluster, mcs *networkingv1alpha1.MultiClusterService) []string {
	known := map[string]bool{}
	for i := range joined {
		known[joined[i].Name] = true
	}
	var unknown []string
	for _, s := range slices.Concat(mcs.Spec.ProviderClusters, mcs.Spec.ConsumerClusters) {
		if name := string(s.Name); !known[name] {
			known[name] = true
			unknown = append(unknown, name)
		}
	}
	return unknown
}

func missingPorts(service *corev1.Service, wanted []networkingv1alpha1.ExposurePort) []string {
	has := servicePorts(service)
	var missing []string
	for _, port := range wanted {
		text := strings.TrimPrefix(fmt.Sprintf("%s:%d", port.Name, port.Port), ":")
		bare := fmt.Sprintf(":%d", port.Port)
		found := slices.ContainsFunc(has, func(h string) bool { return h == text || port.Name == "" && strings.HasSuffix(":"+h, bare) })
		if !found {
			missing = append(missing, text)
		}
	}
	return missing
}

// servicePorts are the ports of a Service as --port takes them.
func servicePorts(service *corev1.Service) []string {
	texts := make([]string, 0, len(service.Spec.Ports))
	for i := range service.Spec.Ports {
		texts = append(texts, strings.TrimPrefix(fmt.Sprintf("%s:%d", service.Spec.Ports[i].Name, service.Spec.Ports[i].Port), ":"))
	}
	return texts
}
