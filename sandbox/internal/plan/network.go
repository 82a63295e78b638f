package plan

import (
	"fmt"
	"net/netip"
	"path/filepath"
)

// NetworkFile says in the fleet's directory what the data plane's network is.
const NetworkFile = "network.json"

const (
	// NodeName is the one Node of each member. It is the same everywhere, since
	// that is what most clusters' nodes have in common: a name that says nothing.
	NodeName = "node"
	// Zone is every node's topology zone.
	Zone = "zone-a"
	// FabricPort and the ports of NodePort are added by a data plane.
	FabricPort = "fabric"

	namespacePrefix = "nsk-"
	// Hosts of a pod range, counted from its start.
	nodeHost     = 1
	clientHost   = 2
	firstPodHost = 10
)

// Network is the data plane of a fleet: a node for each member, all of them
// joined by a bridge in a namespace of its own.
//
//	pods ─┐                                                  ┌─ pods
//	      ├─ member1's node ─── fabric (bridge) ─── member2's node
//	client┘                                                  └─ client
type Network struct {
	// ID is part of every namespace's name.
	ID      string          `json:"id"`
	Fabric  string          `json:"fabric"` // network namespace
	Members []MemberNetwork `json:"members"`
}

// MemberNetwork is one member's part. Node addresses stand in the pod ranges,
// fabric addresses carry the length of the fabric's range.
type MemberNetwork struct {
	Name   string       `json:"name"`
	Node   string       `json:"node"`   // network namespace
	Client string       `json:"client"` // network namespace
	Node4  netip.Addr   `json:"node4"`
	Node6  netip.Addr   `json:"node6"`
	Pods4  netip.Prefix `json:"pods4"`
	Pods6  netip.Prefix `json:"pods6"`
	// Fabric4 and Fabric6 are the node's addresses between nodes.
	Fabric4 netip.Prefix `json:"fabric4"`
	Fabric6 netip.Prefix `json:"fabric6"`
	// APIPort is the member's API server on the machine's loopback, and by the
	// forwarder on the node's.
	APIPort int `json:"apiPort"`
	// KubeletPort is where the node serves logs and exec, on the machine's loopback.
	KubeletPort int `json:"kubeletPort"`
}

// NamespacePrefix begins the name of every network namespace of a fleet.
func NamespacePrefix(id string) string { return namespacePrefix + id + "-" }

// Member returns the network of the member with the name.
func (n *Network) Member(name string) (MemberNetwork, error) {
	for _, m := range n.Members {
		if m.Name == name {
			return m, nil
		}
	}
	return MemberNetwork{}, fmt.Errorf("no member %q in the network", name)
}

// PodNamespace names the network namespace of a pod by its UID.
func (n *Network) PodNamespace(member, uid string) string {
	return NamespacePrefix(n.ID) + member + "-" + uid
}

// Addresses are a pod's, one of each family.
type Addresses struct {
	V4, V6 netip.Addr
}

// ClientAddresses are those of the member's client pod.
func (m MemberNetwork) ClientAddresses() Addresses { return m.host(clientHost) }

// PodAddresses returns the addresses of the member's nth pod, and false when
// its range is used up.
func (m MemberNetwork) PodAddresses(n int) (Addresses, bool) {
	a := m.host(firstPodHost + n)
	last := 1<<(32-m.Pods4.Bits()) - 1
	return a, n >= 0 && firstPodHost+n < last
}

func (m MemberNetwork) host(n int) Addresses {
	return Addresses{V4: offset(m.Pods4.Addr(), n), V6: offset(m.Pods6.Addr(), n)}
}

// offset counts within the last 16 bits, which no range here exceeds.
func offset(a netip.Addr, n int) netip.Addr {
	b := a.AsSlice()
	last := len(b) - 1
	sum := int(b[last-1])<<8 + int(b[last]) + n
	b[last-1], b[last] = byte(sum>>8), byte(sum)
	moved, _ := netip.AddrFromSlice(b)
	return moved
}

// newNetwork lays the network out. The hub has no pods, so its pod range is the
// fabric's.
func newNetwork(o Options) *Network {
	hub := addressesOf(0, o.Members+1)
	n := &Network{ID: o.FleetID, Fabric: NamespacePrefix(o.FleetID) + "fabric"}
	for i, name := range Members(o.Members) {
		a := addressesOf(i+1, o.Members+1)
		n.Members = append(n.Members, MemberNetwork{
			Name:   name,
			Node:   NamespacePrefix(o.FleetID) + name,
			Client: NamespacePrefix(o.FleetID) + name + "-client",
			Node4:  offset(a.pods4.Addr(), nodeHost), Node6: offset(a.pods6.Addr(), nodeHost),
			Pods4: a.pods4, Pods6: a.pods6,
			Fabric4:     netip.PrefixFrom(offset(hub.pods4.Addr(), i+1), hub.pods4.Bits()),
			Fabric6:     netip.PrefixFrom(offset(hub.pods6.Addr(), i+1), hub.pods6.Bits()),
			APIPort:     o.Ports[APIServer(name)],
			KubeletPort: o.Ports[NodePort(name)],
		})
	}
	return n
}

// MemberFile returns the path of a file of the member's data plane.
func MemberFile(dir, member, name string) string {
	return filepath.Join(dir, "dataplane", member, name)
}
