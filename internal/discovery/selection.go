package discovery

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	networkingv1alpha1 "github.com/namesake-io/namesake/api/networking/v1alpha1"
)

// Selection is which clusters take part in a service.
type Selection struct {
	// Providers and Consumers are joined, not leaving, and sorted.
	Providers, Consumers []ClusterName
	// Missing are named by the spec but have not joined, sorted.
	Missing []ClusterName
}

// Provides says whether a cluster provides the service.
func (s Selection) Provides(name ClusterName) bool {
	_, found := slices.BinarySearch(s.Providers, name)
	return found
}

// Consumes says whether a cluster consumes the service.
func (s Selection) Consumes(name ClusterName) bool {
	_, found := slices.BinarySearch(s.Consumers, name)
	return found
}

// Members returns providers and consumers together, sorted, each once.
func (s Selection) Members() []ClusterName {
	all := slices.Concat(s.Providers, s.Consumers)
	slices.Sort(all)
	return slices.Compact(all)
}

// Select returns the clusters that take part in a service: the new lists, else
// the deprecated ones, else every cluster. It fails on a label selector that
// cannot be parsed; then nothing is known about the wish.
func Select(spec *networkingv1alpha1.MultiClusterServiceSpec, clusters []Cluster) (Selection, error) {
	var deprecatedConsumers []networkingv1alpha1.ClusterName
	switch {
	case len(spec.ServiceConsumptionClusters) > 0:
		deprecatedConsumers = spec.ServiceConsumptionClusters
	case spec.Range != nil:
		deprecatedConsumers = spec.Range.ClusterNames
	}

	providers, missingProviders, err := selectRole(spec.ProviderClusters, spec.ServiceProvisionClusters, clusters)
	if err != nil {
		return Selection{}, fmt.Errorf("reading spec.providerClusters%w", err)
	}
	consumers, missingConsumers, err := selectRole(spec.ConsumerClusters, deprecatedConsumers, clusters)
	if err != nil {
		return Selection{}, fmt.Errorf("reading spec.consumerClusters%w", err)
	}

	if slices.Contains(spec.Types, networkingv1alpha1.ExposureTypeLoadBalancer) {
		// A load balancer stands in front of the providers: nobody consumes.
		consumers, missingConsumers = nil, nil
	}
	missing := slices.Concat(missingProviders, missingConsumers)
	slices.Sort(missing)
	return Selection{Providers: providers, Consumers: consumers, Missing: slices.Compact(missing)}, nil
}

// selectRole returns the selected clusters of one role, sorted, and the missing.
func selectRole(
	selectors []networkingv1alpha1.ClusterSelector, deprecated []networkingv1alpha1.ClusterName, clusters []Cluster,
) (selected, missing []ClusterName, err error) {
	if len(selectors) == 0 {
		for _, name := range deprecated {
			selectors = append(selectors, networkingv1alpha1.ClusterSelector{Name: name})
		}
	}

	byName := make(map[ClusterName]*Cluster, len(clusters))
	for i := range clusters {
		byName[clusters[i].Name] = &clusters[i]
	}
	add := func(c *Cluster) {
		if !c.Leaving {
			selected = append(selected, c.Name)
		}
	}

	if len(selectors) == 0 {
		for i := range clusters {
			add(&clusters[i])
		}
	}
	for i, s := range selectors {
		if s.LabelSelector == nil {
			if c, found := byName[ClusterName(s.Name)]; found {
				add(c)
			} else {
				missing = append(missing, ClusterName(s.Name))
			}
			continue
		}
		selector, err := metav1.LabelSelectorAsSelector(s.LabelSelector)
		if err != nil {
			return nil, nil, fmt.Errorf("[%d].labelSelector: %w", i, err)
		}
		for j := range clusters {
			if selector.Matches(labels.Set(clusters[j].Labels)) {
				add(&clusters[j])
			}
		}
	}

	slices.Sort(selected)
	return slices.Compact(selected), missing, nil
}
