// Package complete offers what the hub knows to the user's shell. It answers
// within a moment or not at all: a shell that hangs on a key is worse than one
// that knows nothing.
package complete

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/namesake-io/namesake/api/cluster/v1alpha1"
	networkingv1alpha1 "github.com/namesake-io/namesake/api/networking/v1alpha1"
	"github.com/namesake-io/namesake/internal/cli/target"
)

const (
	patience = 2 * time.Second
	// most names that a completion reads.
	most = 500
)

// Func is what cobra calls for a completion.
type Func = cobra.CompletionFunc

// First completes the first argument only.
func First(f Func) Func {
	return func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return f(cmd, args, typed)
	}
}

// CommaSeparated completes the last of a list a,b,c.
func CommaSeparated(f Func) Func {
	return func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		i := strings.LastIndex(typed, ",") + 1
		before, last := typed[:i], typed[i:]
		names, directive := f(cmd, strings.Split(before, ","), last)
		for n := range names {
			names[n] = before + names[n]
		}
		return names, directive | cobra.ShellCompDirectiveNoSpace
	}
}

// Flag sets the completion of a flag that exists.
func Flag(cmd *cobra.Command, name string, f Func) {
	if err := cmd.RegisterFlagCompletionFunc(name, f); err != nil {
		panic(err) // a name that does not exist, or twice: a mistake in the program
	}
}

// Clusters completes names of joined clusters.
func Clusters(f *target.Factory) Func {
	return listed(f, func(ctx context.Context, c client.Client, _ string) ([]string, error) {
		var list clusterv1alpha1.ClusterList
		err := c.List(ctx, &list, client.Limit(most))
		return names(list.Items, func(o clusterv1alpha1.Cluster) string { return o.Name }), err
	})
}

// MultiClusterServices completes names of exposed services.
func MultiClusterServices(f *target.Factory) Func {
	return listed(f, func(ctx context.Context, c client.Client, namespace string) ([]string, error) {
		var list networkingv1alpha1.MultiClusterServiceList
		err := c.List(ctx, &list, client.InNamespace(namespace), client.Limit(most))
		return names(list.Items, func(o networkingv1alpha1.MultiClusterService) string { return o.Name }), err
	})
}

// Services completes names of the hub's Services.
func Services(f *target.Factory) Func {
	return listed(f, func(ctx context.Context, c client.Client, namespace string) ([]string, error) {
		var list corev1.ServiceList
		err := c.List(ctx, &list, client.InNamespace(namespace), client.Limit(most))
		return names(list.Items, func(o corev1.Service) string { return o.Name }), err
	})
}

// Namespaces completes names of the hub's namespaces.
func Namespaces(f *target.Factory) Func {
	return listed(f, func(ctx context.Context, c client.Client, _ string) ([]string, error) {
		var list corev1.NamespaceList
		err := c.List(ctx, &list, client.Limit(most))
		return names(list.Items, func(o corev1.Namespace) string { return o.Name }), err
	})
}

// HubContexts completes the contexts of the hub's kubeconfig.
func HubContexts(f *target.Factory) Func {
	return func(_ *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		return matching(f.Contexts(""), args, typed), cobra.ShellCompDirectiveNoFileComp
	}
}

// Contexts completes the contexts of the kubeconfig that a flag names.
func Contexts(f *target.Factory, flag string) Func {
	return func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		return matching(f.Contexts(cmd.Flag(flag).Value.String()), args, typed), cobra.ShellCompDirectiveNoFileComp
	}
}

// listed completes with what list finds on the hub, without the arguments that
// stand there already.
func listed(f *target.Factory, list func(context.Context, client.Client, string) ([]string, error)) Func {
	return func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		hub, err := f.Hub()
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		namespace, err := f.Namespace()
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		ctx, cancel := context.WithTimeout(cmd.Context(), patience)
		defer cancel()
		found, err := list(ctx, hub.Client, namespace)
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		return matching(found, args, typed), cobra.ShellCompDirectiveNoFileComp
	}
}

func matching(found, taken []string, typed string) []string {
	found = slices.DeleteFunc(found, func(name string) bool {
		return !strings.HasPrefix(name, typed) || slices.Contains(taken, name)
	})
	slices.Sort(found)
	return found
}

func names[T any](items []T, name func(T) string) []string {
	found := make([]string, 0, len(items))
	for _, item := range items {
		found = append(found, name(item))
	}
	return found
}
