package fabric

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/namesake-io/namesake/sandbox/internal/netns"
	"github.com/namesake-io/namesake/sandbox/internal/plan"
)

const (
	bridgeName = "bridge"
	// uplink is a node's link to the fabric; its other end has the member's name.
	uplink = "fabric0"
	// podLink is a pod's only link besides loopback.
	podLink = "eth0"
)

// gateway6 is every node's address on every pod's link. Neighbour discovery
// answers only for addresses of the link itself, unlike ARP.
var gateway6 = netip.MustParseAddr("fe80::1")

// Read reads the network of a fleet.
func Read(path string) (*plan.Network, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading the network: %w", err)
	}
	var n plan.Network
	if err := json.Unmarshal(data, &n); err != nil {
		return nil, fmt.Errorf("parsing the network %s: %w", path, err)
	}
	return &n, nil
}

// Build makes namespaces, links, addresses and routes. What stands already is
// left as it is, so a restart disturbs no packet.
func Build(n *plan.Network) error {
	if err := buildBridge(n); err != nil {
		return fmt.Errorf("building the fabric: %w", err)
	}
	for _, m := range n.Members {
		if err := buildNode(n, m); err != nil {
			return fmt.Errorf("building the node of %s: %w", m.Name, err)
		}
		if err := AddPod(m, m.Client, m.ClientAddresses()); err != nil {
			return fmt.Errorf("building the client of %s: %w", m.Name, err)
		}
	}
	return nil
}

// Remove takes every namespace of the fleet away. Processes inside must have
// ended, else the namespaces live on without a name.
func Remove(id string) error {
	names, err := netns.List(plan.NamespacePrefix(id))
	errs := []error{err}
	for _, name := range names {
		errs = append(errs, netns.Delete(name))
	}
	return errors.Join(errs...)
}

// create makes a namespace whose links are of use at once: by default, a link
// looks for a second whether somebody else has its IPv6 address.
func create(namespace string) error {
	if err := netns.Create(namespace); err != nil {
		return err
	}
	return netns.Do(namespace, func() error {
		return errors.Join(
			setSysctl("net/ipv6/conf/all/accept_dad", "0"),
			setSysctl("net/ipv6/conf/default/accept_dad", "0"),
			setSysctl("net/ipv6/conf/default/dad_transmits", "0"),
		)
	})
}

func buildBridge(n *plan.Network) error {
	if err := create(n.Fabric); err != nil {
		return err
	}
	return inside(n.Fabric, func(h *handle) error {
		return h.add(&netlink.Bridge{LinkAttrs: named(bridgeName)}, nil)
	})
}

func buildNode(n *plan.Network, m plan.MemberNetwork) error {
	if err := create(m.Node); err != nil {
		return err
	}
	err := netns.Do(m.Node, func() error {
		return errors.Join(
			setSysctl("net/ipv4/ip_forward", "1"),
			setSysctl("net/ipv6/conf/all/forwarding", "1"),
			setSysctl("net/ipv4/conf/all/rp_filter", "0"),
			setSysctl("net/ipv4/conf/default/rp_filter", "0"),
			// A caller in another member must hear of a pod that is gone as surely as
			// one at home, where no limit applies: else a call that fails at once here
			// waits there for its time to run out.
			setSysctl("net/ipv4/icmp_ratelimit", "0"),
			setSysctl("net/ipv6/icmp/ratelimit", "0"),
		)
	})
	if err != nil {
		return err
	}
	err = inside(n.Fabric, func(h *handle) error {
		if err := h.veth(m.Name, uplink, m.Node); err != nil {
			return err
		}
		return h.enslave(m.Name, bridgeName)
	})
	if err != nil {
		return err
	}
	return inside(m.Node, func(h *handle) error {
		errs := []error{
			h.up("lo"), h.up(uplink),
			h.address("lo", netip.PrefixFrom(m.Node4, 32)), h.address("lo", netip.PrefixFrom(m.Node6, 128)),
			h.address(uplink, m.Fabric4), h.address(uplink, m.Fabric6),
		}
		for _, other := range n.Members {
			if other.Name != m.Name {
				errs = append(errs,
					h.route(uplink, route{to: other.Pods4, via: other.Fabric4.Addr()}),
					h.route(uplink, route{to: other.Pods6, via: other.Fabric6.Addr()}))
			}
		}
		return errors.Join(errs...)
	})
}

// AddPod makes a pod's namespace and joins it to its node by a link of its own:
// all packets of a pod are routed by the node, as kube-proxy needs it.
func AddPod(m plan.MemberNetwork, namespace string, a plan.Addresses) error {
	if err := create(namespace); err != nil {
		return err
	}
	link := nodeEnd(a)
	err := inside(m.Node, func(h *handle) error {
		if err := h.veth(link, podLink, namespace); err != nil {
			return err
		}
		return errors.Join(
			h.up(link),
			h.address(link, netip.PrefixFrom(gateway6, 64)),
			h.route(link, route{to: netip.PrefixFrom(a.V4, 32)}),
			h.route(link, route{to: netip.PrefixFrom(a.V6, 128)}),
		)
	})
	if err != nil {
		return err
	}
	return inside(namespace, func(h *handle) error {
		return errors.Join(
			h.up("lo"), h.up(podLink),
			h.address(podLink, netip.PrefixFrom(a.V4, 32)), h.address(podLink, netip.PrefixFrom(a.V6, 128)),
			h.route(podLink, route{to: netip.PrefixFrom(m.Node4, 32)}),
			h.route(podLink, route{to: netip.PrefixFrom(netip.IPv4Unspecified(), 0), via: m.Node4}),
			h.route(podLink, route{to: netip.PrefixFrom(netip.IPv6Unspecified(), 0), via: gateway6}),
		)
	})
}

// RemovePod takes a pod's link and namespace away at once, also when a process
// still holds the namespace.
func RemovePod(m plan.MemberNetwork, namespace string, a plan.Addresses) error {
	err := inside(m.Node, func(h *handle) error { return h.remove(nodeEnd(a)) })
	return errors.Join(err, netns.Delete(namespace))
}

// nodeEnd names the node's end of a pod's link; a name has room for 15 bytes.
func nodeEnd(a plan.Addresses) string {
	b := a.V4.As4()
	return fmt.Sprintf("pod%d.%d", b[2], b[3])
}

func setSysctl(name, value string) error {
	if err := os.WriteFile("/proc/sys/"+name, []byte(value), 0o600); err != nil {
		return fmt.Errorf("setting %s: %w", strings.ReplaceAll(name, "/", "."), err)
	}
	return nil
}

// handle is a connection to the kernel from inside a namespace. Its methods do
// nothing where what they make is there already.
type handle struct {
	*netlink.Handle
}

func inside(namespace string, fn func(*handle) error) error {
	return netns.Do(namespace, func() error {
		h, err := netlink.NewHandle(unix.NETLINK_ROUTE)
		if err != nil {
			return fmt.Errorf("speaking to the kernel in %s: %w", namespace, err)
		}
		defer h.Close()
		return fn(&handle{h})
	})
}

func named(name string) netlink.LinkAttrs {
	attrs := netlink.NewLinkAttrs()
	attrs.Name = name
	return attrs
}

// add makes a link; then says what else it needs before it goes up.
func (h *handle) add(link netlink.Link, then func() error) error {
	name := link.Attrs().Name
	if err := h.LinkAdd(link); err != nil && !errors.Is(err, unix.EEXIST) {
		return fmt.Errorf("making link %s: %w", name, err)
	}
	if then != nil {
		if err := then(); err != nil {
			return err
		}
	}
	return h.up(name)
}

// veth makes a pair of links, one end here, the other in the namespace.
func (h *handle) veth(name, peer, peerNamespace string) error {
	ns, err := os.Open(netns.Path(peerNamespace))
	if err != nil {
		return fmt.Errorf("making link %s: %w", name, err)
	}
	defer ns.Close()
	return h.add(&netlink.Veth{LinkAttrs: named(name), PeerName: peer, PeerNamespace: netlink.NsFd(ns.Fd())}, nil)
}

func (h *handle) enslave(name, bridge string) error {
	link, err := h.LinkByName(name)
	if err != nil {
		return fmt.Errorf("finding link %s: %w", name, err)
	}
	master, err := h.LinkByName(bridge)
	if err != nil {
		return fmt.Errorf("finding bridge %s: %w", bridge, err)
	}
	if err := h.LinkSetMaster(link, master); err != nil {
		return fmt.Errorf("joining %s to %s: %w", name, bridge, err)
	}
	return nil
}

func (h *handle) up(name string) error {
	link, err := h.LinkByName(name)
	if err != nil {
		return fmt.Errorf("finding link %s: %w", name, err)
	}
	if err := h.LinkSetUp(link); err != nil {
		return fmt.Errorf("setting link %s up: %w", name, err)
	}
	return nil
}

func (h *handle) remove(name string) error {
	link, err := h.LinkByName(name)
	if errors.As(err, &netlink.LinkNotFoundError{}) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("finding link %s: %w", name, err)
	}
	if err := h.LinkDel(link); err != nil {
		return fmt.Errorf("removing link %s: %w", name, err)
	}
	return nil
}

// address gives a link an address, without looking whether others have it: the
// plan has seen to that, and looking takes a second.
func (h *handle) address(name string, a netip.Prefix) error {
	link, err := h.LinkByName(name)
	if err != nil {
		return fmt.Errorf("finding link %s: %w", name, err)
	}
	addr := &netlink.Addr{IPNet: ipNet(a)}
	if a.Addr().Is6() {
		addr.Flags = unix.IFA_F_NODAD
	}
	if err := h.AddrAdd(link, addr); err != nil && !errors.Is(err, unix.EEXIST) {
		return fmt.Errorf("giving %s to link %s: %w", a, name, err)
	}
	return nil
}

// route leads to a range, directly unless via is given.
type route struct {
	to  netip.Prefix
	via netip.Addr
}

func (h *handle) route(name string, r route) error {
	link, err := h.LinkByName(name)
	if err != nil {
		return fmt.Errorf("finding link %s: %w", name, err)
	}
	nr := &netlink.Route{LinkIndex: link.Attrs().Index, Dst: ipNet(r.to)}
	if r.via.IsValid() {
		nr.Gw = r.via.AsSlice()
		nr.Flags = int(netlink.FLAG_ONLINK)
	} else {
		nr.Scope = netlink.SCOPE_LINK
	}
	if err := h.RouteReplace(nr); err != nil {
		return fmt.Errorf("making the route to %s over %s: %w", r.to, name, err)
	}
	return nil
}

func ipNet(p netip.Prefix) *net.IPNet {
	return &net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())}
}

// RemovePods takes the links and namespaces of all pods of a member away, but
// its client's.
func RemovePods(n *plan.Network, m plan.MemberNetwork) error {
	err := inside(m.Node, func(h *handle) error {
		links, err := h.LinkList()
		if err != nil {
			return fmt.Errorf("listing links: %w", err)
		}
		for _, link := range links {
			name := link.Attrs().Name
			if strings.HasPrefix(name, "pod") && name != nodeEnd(m.ClientAddresses()) {
				err = errors.Join(err, h.remove(name))
			}
		}
		return err
	})
	names, listErr := netns.List(n.PodNamespace(m.Name, ""))
	errs := []error{err, listErr}
	for _, name := range names {
		if name != m.Client {
			errs = append(errs, netns.Delete(name))
		}
	}
	return errors.Join(errs...)
}
