package fabric

import (
	"errors"
	"fmt"
	"net/netip"
	"os/exec"
	"strings"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/namesake-io/namesake/sandbox/internal/netns"
	"github.com/namesake-io/namesake/sandbox/internal/plan"
)

// Faults are all that is wrong with a member's network.
type Faults struct {
	// LinkDown cuts the member off from the others.
	LinkDown bool
	// PodsUnreachable cuts its pods off from everybody but their own node.
	PodsUnreachable bool
	// Loss is the share of packets lost on the link, 0 to 1, each way.
	Loss float64
	// Latency is what the link adds to a round trip.
	Latency time.Duration
}

// SetFaults brings the member's network into exactly these faults.
func SetFaults(n *plan.Network, m plan.MemberNetwork, f Faults) error {
	// The one that a kernel may not know comes first, so that nothing is half done.
	if err := setLatency(n, m, f.Latency); err != nil {
		return err
	}
	if err := nft(m.Node, faultRules(m, f)); err != nil {
		return err
	}
	return inside(n.Fabric, func(h *handle) error {
		link, err := h.LinkByName(m.Name)
		if err != nil {
			return fmt.Errorf("finding link %s: %w", m.Name, err)
		}
		change := h.LinkSetUp
		if f.LinkDown {
			change = h.LinkSetDown
		}
		if err := change(link); err != nil {
			return fmt.Errorf("changing link %s: %w", m.Name, err)
		}
		return nil
	})
}

// setLatency has the two ends of the member's link hold packets back, each for
// half of what a round trip is to take longer.
func setLatency(n *plan.Network, m plan.MemberNetwork, d time.Duration) error {
	ends := []struct{ namespace, link string }{{m.Node, uplink}, {n.Fabric, m.Name}}
	for _, end := range ends {
		err := inside(end.namespace, func(h *handle) error {
			link, err := h.LinkByName(end.link)
			if err != nil {
				return fmt.Errorf("finding link %s: %w", end.link, err)
			}
			attrs := netlink.QdiscAttrs{LinkIndex: link.Attrs().Index, Handle: netlink.MakeHandle(1, 0), Parent: netlink.HANDLE_ROOT}
			qdisc := netlink.NewNetem(attrs, netlink.NetemQdiscAttrs{Latency: uint32(d.Microseconds() / 2)})
			if d == 0 {
				if err := h.QdiscDel(qdisc); err != nil && !errors.Is(err, unix.ENOENT) && !errors.Is(err, unix.EINVAL) {
					return fmt.Errorf("taking latency off link %s: %w", end.link, err)
				}
				return nil
			}
			err = h.QdiscReplace(qdisc)
			if errors.Is(err, unix.ENOENT) {
				return errors.New("this kernel was built without the queue discipline netem (CONFIG_NET_SCH_NETEM), which holds packets back")
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// faultTable is made anew for each change of faults.
const faultTable = "inet sandbox_faults"

// faultRules is what nft reads: the former table goes, the new one comes, in one
// transaction.
func faultRules(m plan.MemberNetwork, f Faults) string {
	var b strings.Builder
	fmt.Fprintf(&b, "table %s\ndelete table %s\n", faultTable, faultTable)
	if !f.PodsUnreachable && f.Loss == 0 {
		return b.String()
	}
	fmt.Fprintf(&b, "table %s {\n", faultTable)
	if f.PodsUnreachable {
		client := m.ClientAddresses()
		b.WriteString("  chain pods {\n    type filter hook forward priority -300;\n")
		for _, family := range []struct {
			word   string
			pods   netip.Prefix
			client netip.Addr
		}{{"ip", m.Pods4, client.V4}, {"ip6", m.Pods6, client.V6}} {
			for _, end := range []string{"saddr", "daddr"} {
				fmt.Fprintf(&b, "    %s %s %s %s %s != %s drop\n", family.word, end, family.pods, family.word, end, family.client)
			}
		}
		b.WriteString("  }\n")
	}
	if f.Loss > 0 {
		const of = 10000
		for _, way := range []struct{ chain, hook, word string }{{"in", "prerouting", "iifname"}, {"out", "postrouting", "oifname"}} {
			fmt.Fprintf(&b, "  chain %s {\n    type filter hook %s priority -310;\n    %s %q numgen random mod %d <= %d drop\n  }\n",
				way.chain, way.hook, way.word, uplink, of, max(1, int(f.Loss*of))-1)
		}
	}
	b.WriteString("}\n")
	return b.String()
}

// nft has the program nft read rules inside a namespace.
func nft(namespace, rules string) error {
	return netns.Do(namespace, func() error {
		cmd := exec.Command("nft", "-f", "-") // a child begins where its thread is
		cmd.Stdin = strings.NewReader(rules)
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("changing nftables: %w: %s", err, strings.TrimSpace(string(out)))
		}
		return nil
	})
}
