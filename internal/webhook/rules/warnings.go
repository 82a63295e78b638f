package rules

import (
	"fmt"
	"slices"

	networkingv1alpha1 "github.com/namesake-io/namesake/api/networking/v1alpha1"
	"github.com/namesake-io/namesake/internal/discovery"
)

// Warnings says what of a MultiClusterService works, but not as one may think.
func Warnings(mcs *networkingv1alpha1.MultiClusterService) []string {
	spec := &mcs.Spec
	var out []string
	deprecated := func(was, now string, ignoredFor string) {
		if ignoredFor != "" {
			out = append(out, fmt.Sprintf("spec.%s is ignored, since spec.%s is set: take it out", was, ignoredFor))
			return
		}
		out = append(out, fmt.Sprintf("spec.%s is deprecated: use spec.%s", was, now))
	}
	first := func(fields ...string) string {
		for i, n := range []int{len(spec.ConsumerClusters), len(spec.ServiceConsumptionClusters)} {
			if i < len(fields) && n > 0 {
				return fields[i]
			}
		}
		return ""
	}
	if len(spec.ServiceProvisionClusters) > 0 {
		ignoredFor := ""
		if len(spec.ProviderClusters) > 0 {
			ignoredFor = "providerClusters"
		}
		deprecated("serviceProvisionClusters", "providerClusters[].name", ignoredFor)
	}
	if len(spec.ServiceConsumptionClusters) > 0 {
		deprecated("serviceConsumptionClusters", "consumerClusters[].name", first("consumerClusters"))
	}
	if spec.Range != nil && len(spec.Range.ClusterNames) > 0 {
		deprecated("range.clusterNames", "consumerClusters[].name", first("consumerClusters", "serviceConsumptionClusters"))
	}
	if u := spec.UnreachableProviders; u != nil && u.GracePeriod != nil &&
		(u.Policy == "" || u.Policy == networkingv1alpha1.UnreachableRetain) {
		out = append(out, "spec.unreachableProviders.gracePeriod has no effect with the policy Retain, which keeps endpoints for good: "+
			"set the policy MarkNotReady or Withdraw, or take the grace period out")
	}
	return append(out, repeated(spec)...)
}

// repeated warns of clusters that a list names twice.
func repeated(spec *networkingv1alpha1.MultiClusterServiceSpec) (out []string) {
	for name, selectors := range map[string][]networkingv1alpha1.ClusterSelector{
		"providerClusters": spec.ProviderClusters, "consumerClusters": spec.ConsumerClusters,
	} {
		seen := map[networkingv1alpha1.ClusterName]int{}
		for _, s := range selectors {
			seen[s.Name]++
			if s.Name != "" && seen[s.Name] == 2 {
				out = append(out, fmt.Sprintf("spec.%s names cluster %s more than once", name, s.Name))
			}
		}
	}
	slices.Sort(out)
	return out
}

// NamedClusters are the clusters that a MultiClusterService names, sorted, each
// once.
func NamedClusters(mcs *networkingv1alpha1.MultiClusterService) []string {
	spec := &mcs.Spec
	var out []string
	for _, s := range slices.Concat(spec.ProviderClusters, spec.ConsumerClusters) {
		if s.Name != "" {
			out = append(out, string(s.Name))
		}
	}
	names := slices.Concat(spec.ServiceProvisionClusters, spec.ServiceConsumptionClusters)
	if spec.Range != nil {
		names = append(names, spec.Range.ClusterNames...)
	}
	for _, name := range names {
		out = append(out, string(name))
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// UnknownClusters warns of named clusters that have not joined. Empty: there is
// none.
func UnknownClusters(names []string) string {
	if len(names) == 0 {
		return ""
	}
	return fmt.Sprintf("not joined: %s; they take part as soon as they join, the other clusters are served now", discovery.Bounded(names, ", "))
}
