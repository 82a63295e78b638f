package plan

import (
	"math/bits"
	"net/netip"
)

// addresses are the ranges of one control plane. Pods and nodes have none of
// theirs in use until there is a data plane, but the plan keeps them apart from
// the start, since routes between members need it.
type addresses struct {
	pods4, pods6         netip.Prefix
	services4, services6 netip.Prefix
}

// The benchmarking range is routed nowhere, so that a sandbox can't shadow a
// network of the machine. Its lower half is for pods, its upper for services.
var (
	podRange4     = netip.MustParseAddr("198.18.0.0")
	serviceRange4 = netip.MustParseAddr("198.19.0.0")
	// range6 is a unique local /48; the fourth group tells what and whose.
	range6 = netip.MustParseAddr("fd6e:616d:6573::")
)

const (
	halfBits      = 16 // prefix length of each half of 198.18.0.0/15
	podBits6      = 64
	serviceBits6  = 112 // Kubernetes takes at most 20 bits of service addresses
	serviceGroup6 = 0x100
)

// addressesOf cuts each IPv4 half into equal parts, as few and so as large as
// the number of control planes allows.
func addressesOf(index, count int) addresses {
	cut := halfBits + bits.Len(uint(count-1))
	return addresses{
		pods4:     part4(podRange4, index, cut),
		pods6:     part6(index, podBits6),
		services4: part4(serviceRange4, index, cut),
		services6: part6(serviceGroup6+index, serviceBits6),
	}
}

func part4(base netip.Addr, index, length int) netip.Prefix {
	b := base.As4()
	offset := index << (32 - length)
	b[2] += byte(offset >> 8)
	b[3] += byte(offset)
	return netip.PrefixFrom(netip.AddrFrom4(b), length)
}

func part6(group, length int) netip.Prefix {
	b := range6.As16()
	b[6], b[7] = byte(group>>8), byte(group)
	return netip.PrefixFrom(netip.AddrFrom16(b), length)
}

// first returns the first host address of a range.
func first(p netip.Prefix) string { return p.Addr().Next().String() }
