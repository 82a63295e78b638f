package discovery

import (
	"cmp"
	"slices"
	"strings"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Delivered returns an agent's plan for its own cluster: just the slices that the
// hub has planned for it and delivered. What is no dispatched slice of this
// service and of another cluster is passed over.
func Delivered(service types.NamespacedName, consumer ClusterName, delivered []*discoveryv1.EndpointSlice) *Plan {
	p := &Plan{
		Service: service, Selection: Selection{Consumers: []ClusterName{consumer}}, dispatches: true,
		providers: map[ClusterName]ProviderState{},
	}
	seen := map[string]bool{}
	for _, in := range delivered {
		provider := providerOf(in)
		if in.Namespace != service.Namespace || in.Labels[discoveryv1.LabelServiceName] != service.Name ||
			!Dispatched(in) || provider == "" || provider == consumer || seen[in.Name] {
			continue
		}
		seen[in.Name] = true
		// What is not delivered is not wanted: the hub has weighed what it knows.
		p.providers[provider] = ProviderState{Authoritative: true}
		p.Slices = append(p.Slices, DispatchedSlice{Provider: provider, Source: sourceOf(provider, in.Name), Slice: bare(in)})
	}
	slices.SortFunc(p.Slices, func(a, b DispatchedSlice) int { return cmp.Compare(a.Slice.Name, b.Slice.Name) })
	return p
}

// sourceOf returns the name that a dispatched slice has in its provider, or its
// own where that cannot be told any more.
func sourceOf(provider ClusterName, dispatched string) SliceName {
	if source, plain := strings.CutPrefix(dispatched, string(provider)+"-"); plain && !looksHashed(dispatched) {
		return SliceName(source)
	}
	return SliceName(dispatched)
}

// bare returns a slice as it is written: no more than the hub has decided.
func bare(in *discoveryv1.EndpointSlice) *discoveryv1.EndpointSlice {
	return &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Namespace: in.Namespace, Name: in.Name, Labels: in.Labels, Annotations: in.Annotations},
		AddressType: in.AddressType, Endpoints: in.Endpoints, Ports: in.Ports,
	}
}
