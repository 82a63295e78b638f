package discovery

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
)

// AddressConflict says that two providers claim one address, as overlapping pod
// ranges make them. Consumers get it once, from Kept.
type AddressConflict struct {
	// Kept provides the address to consumers; Withheld claims it too.
	Kept, Withheld ClusterName
	// Address is one address in conflict, and Count how many there are between
	// these two.
	Address string
	Count   int
}

// socket is what a connection goes to.
type socket struct {
	addressType discoveryv1.AddressType
	address     string
	protocol    corev1.Protocol
	port        int32
}

// sockets returns what connections to an endpoint go to. A slice without ports
// has one per address.
func sockets(slice *discoveryv1.EndpointSlice, endpoint *discoveryv1.Endpoint) []socket {
	var out []socket
	for _, address := range endpoint.Addresses {
		if len(slice.Ports) == 0 {
			out = append(out, socket{addressType: slice.AddressType, address: address})
		}
		for _, p := range slice.Ports {
			s := socket{addressType: slice.AddressType, address: address, protocol: corev1.ProtocolTCP}
			if p.Protocol != nil {
				s.protocol = *p.Protocol
			}
			if p.Port != nil {
				s.port = *p.Port
			}
			out = append(out, s)
		}
	}
	return out
}

// withholdTakenAddresses takes the ready endpoints out of later slices whose
// address an earlier provider already gives, and reports them. Endpoints that
// are not ready draw no calls and claim nothing: the address of a pod that ends
// in one cluster may already be used in another.
func withholdTakenAddresses(dispatched []DispatchedSlice) []AddressConflict {
	owner := map[socket]ClusterName{}
	found := map[[2]ClusterName]*AddressConflict{}

	for _, d := range dispatched {
		d.Slice.Endpoints = slices.DeleteFunc(d.Slice.Endpoints, func(e discoveryv1.Endpoint) bool {
			if !ready(&e) {
				return false
			}
			claims := sockets(d.Slice, &e)
			for _, claim := range claims {
				kept, taken := owner[claim]
				if !taken || kept == d.Provider {
					continue
				}
				pair := [2]ClusterName{kept, d.Provider}
				if found[pair] == nil {
					found[pair] = &AddressConflict{Kept: kept, Withheld: d.Provider, Address: claim.address}
				}
				found[pair].Count++
				return true
			}
			for _, claim := range claims {
				owner[claim] = d.Provider
			}
			return false
		})
	}

	var conflicts []AddressConflict
	for _, c := range found {
		conflicts = append(conflicts, *c)
	}
	slices.SortFunc(conflicts, func(a, b AddressConflict) int {
		return cmp.Or(cmp.Compare(a.Kept, b.Kept), cmp.Compare(a.Withheld, b.Withheld))
	})
	return conflicts
}
