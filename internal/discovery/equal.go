package discovery

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
)

// Equal says whether a standing slice is what was wanted. Labels must be equal,
// since selectors read them; annotations that others have added are theirs.
//
// All slices of all consumers are compared on each change of a service, so this
// is spelled out: by reflection it takes many times as long. A test sees that no
// field is forgotten.
func Equal(want, standing *discoveryv1.EndpointSlice) bool {
	for key, value := range want.Annotations {
		if have, found := standing.Annotations[key]; !found || have != value {
			return false
		}
	}
	return !staleTrigger(want, standing) &&
		want.AddressType == standing.AddressType &&
		maps.Equal(want.Labels, standing.Labels) &&
		slices.EqualFunc(want.Ports, standing.Ports, equalPort) &&
		slices.EqualFunc(want.Endpoints, standing.Endpoints, equalEndpoint)
}

// staleTrigger says that the standing slice has a trigger time of an earlier
// change. It must go when the provider's slice has none: kube-proxy would count
// from it how long the next change took.
func staleTrigger(want, standing *discoveryv1.EndpointSlice) bool {
	_, wanted := want.Annotations[corev1.EndpointsLastChangeTriggerTime]
	_, stands := standing.Annotations[corev1.EndpointsLastChangeTriggerTime]
	return stands && !wanted
}

func equalPort(a, b discoveryv1.EndpointPort) bool {
	return same(a.Name, b.Name) && same(a.Port, b.Port) && same(a.Protocol, b.Protocol) && same(a.AppProtocol, b.AppProtocol)
}

func equalEndpoint(a, b discoveryv1.Endpoint) bool {
	return slices.Equal(a.Addresses, b.Addresses) &&
		same(a.Conditions.Ready, b.Conditions.Ready) &&
		same(a.Conditions.Serving, b.Conditions.Serving) &&
		same(a.Conditions.Terminating, b.Conditions.Terminating) &&
		same(a.Hostname, b.Hostname) &&
		same(a.TargetRef, b.TargetRef) &&
		maps.Equal(a.DeprecatedTopology, b.DeprecatedTopology) &&
		same(a.NodeName, b.NodeName) &&
		same(a.Zone, b.Zone) &&
		equalHints(a.Hints, b.Hints)
}

func equalHints(a, b *discoveryv1.EndpointHints) bool {
	if a == nil || b == nil {
		return a == b
	}
	return slices.Equal(a.ForZones, b.ForZones) && slices.Equal(a.ForNodes, b.ForNodes)
}

// same says whether two pointers are both nil or point to equal values.
func same[T comparable](a, b *T) bool {
	if a == nil || b == nil {
		return a == b
	}
	return *a == *b
}
