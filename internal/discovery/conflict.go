package discovery

import (
	"cmp"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
)

// AddressConflict says that two providers claim one address, as overlapping pod
// ranges make them. Consumers get it once, from Kept; the two themselves have
// their own.
type AddressConflict struct {
	// Kept provides the address to consumers; Withheld claims it too.
	Kept, Withheld ClusterName
	// Address is one address in conflict, and Count how many endpoints of
	// Withheld there are that Kept has too.
	Address string
	Count   int
}

// socket is what a connection goes to.
type socket struct {
	// address in its one canonical spelling, for IPs.
	address  netip.Addr
	name     string
	protocol corev1.Protocol
	port     int32
}

// sockets appends to out what connections to an endpoint go to. A slice without
// ports has one per address.
func sockets(out []socket, slice *discoveryv1.EndpointSlice, endpoint *discoveryv1.Endpoint) []socket {
	for _, address := range endpoint.Addresses {
		s := socket{}
		// Neither FQDNs nor IPv4 addresses with leading zeros parse; they are
		// compared by spelling.
		if ip, err := netip.ParseAddr(address); err == nil {
			s.address = ip
		} else {
			s.name = address
		}
		if len(slice.Ports) == 0 {
			out = append(out, s)
		}
		for _, p := range slice.Ports {
			s.protocol, s.port = corev1.ProtocolTCP, 0
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

// addressClaims are the addresses of all providers of a service.
type addressClaims struct {
	// owner is the provider that gives a socket to consumers.
	owner map[socket]ClusterName
	// withheld are the sockets that a provider has, but another owns.
	withheld map[ClusterName]map[socket]bool
}

// withholdTakenAddresses takes out of later slices the endpoints whose address
// an earlier provider has ready, and reports those that were ready too. An
// endpoint that is not ready claims nothing, since the address of a pod that ends
// in one cluster may already be used in another; but beside a ready one it must
// go, since kube-proxy knows endpoints by address and port alone, and which of
// two it follows is undefined.
func withholdTakenAddresses(dispatched []DispatchedSlice) ([]AddressConflict, addressClaims) {
	count := 0
	for _, d := range dispatched {
		count += len(d.Slice.Endpoints)
	}
	claims := addressClaims{owner: make(map[socket]ClusterName, count), withheld: map[ClusterName]map[socket]bool{}}
	found := map[[2]ClusterName]*AddressConflict{}

	var of []socket
	for _, d := range dispatched {
		d.Slice.Endpoints = slices.DeleteFunc(d.Slice.Endpoints, func(e discoveryv1.Endpoint) bool {
			if !ready(&e) {
				return false
			}
			of = sockets(of[:0], d.Slice, &e)
			kept, taken := claims.taken(d.Provider, of)
			if !taken {
				claims.own(d.Provider, of)
				return false
			}
			claims.withhold(d.Provider, of)
			pair := [2]ClusterName{kept, d.Provider}
			if found[pair] == nil {
				found[pair] = &AddressConflict{Kept: kept, Withheld: d.Provider, Address: e.Addresses[0]}
			}
			found[pair].Count++
			return true
		})
	}
	for _, d := range dispatched {
		d.Slice.Endpoints = slices.DeleteFunc(d.Slice.Endpoints, func(e discoveryv1.Endpoint) bool {
			if ready(&e) {
				return false
			}
			of = sockets(of[:0], d.Slice, &e)
			_, taken := claims.taken(d.Provider, of)
			return taken
		})
	}

	var conflicts []AddressConflict
	for _, c := range found {
		conflicts = append(conflicts, *c)
	}
	slices.SortFunc(conflicts, func(a, b AddressConflict) int {
		return cmp.Or(cmp.Compare(a.Kept, b.Kept), cmp.Compare(a.Withheld, b.Withheld))
	})
	return conflicts, claims
}

// taken returns the other provider that owns one of the sockets.
func (c addressClaims) taken(provider ClusterName, of []socket) (_ ClusterName, taken bool) {
	for _, s := range of {
		if owner, found := c.owner[s]; found && owner != provider {
			return owner, true
		}
	}
	return "", false
}

func (c addressClaims) own(provider ClusterName, of []socket) {
	for _, s := range of {
		c.owner[s] = provider
	}
}

func (c addressClaims) withhold(provider ClusterName, of []socket) {
	if c.withheld[provider] == nil {
		c.withheld[provider] = map[socket]bool{}
	}
	for _, s := range of {
		c.withheld[provider][s] = true
	}
}

// without returns the slice as a consumer may hold it that has ready endpoints
// of its own at addresses which others own elsewhere: in its network an address
// means its own pod.
func (c addressClaims) without(consumer ClusterName, slice *discoveryv1.EndpointSlice) *discoveryv1.EndpointSlice {
	own := c.withheld[consumer]
	if len(own) == 0 {
		return slice
	}
	var of []socket
	isOwn := func(e discoveryv1.Endpoint) bool {
		of = sockets(of[:0], slice, &e)
		return slices.ContainsFunc(of, func(s socket) bool { return own[s] })
	}
	if !slices.ContainsFunc(slice.Endpoints, isOwn) {
		return slice
	}
	out := slice.DeepCopy()
	out.Endpoints = slices.DeleteFunc(out.Endpoints, isOwn)
	return out
}
