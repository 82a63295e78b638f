package fabric

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/namesake-io/namesake/sandbox/internal/netns"
	"github.com/namesake-io/namesake/sandbox/internal/plan"
)

// newNetwork builds the network of two members, and removes it after the test.
func newNetwork(t *testing.T) *plan.Network {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("network namespaces need root")
	}
	o := plan.Options{Members: 2, Bare: true, DataPlane: true, FleetID: fmt.Sprintf("test%d", os.Getpid()), Ports: map[string]int{}}
	for i, name := range append(plan.PortNames(2, true), plan.DataPlanePortNames(2)...) {
		o.Ports[name] = 20000 + i
	}
	p, err := plan.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := Remove(o.FleetID); err != nil {
			t.Error(err)
		}
		if left, err := netns.List(plan.NamespacePrefix(o.FleetID)); err != nil || len(left) > 0 {
			t.Errorf("namespaces left: %v, %v", left, err)
		}
	})
	for range 2 { // the second time as after a restart
		if err := Build(p.Network); err != nil {
			t.Fatal(err)
		}
	}
	return p.Network
}

// serve answers every connection inside the namespace with the caller's address.
func serve(t *testing.T, namespace string, a netip.Addr) {
	t.Helper()
	l, err := netns.Listen(namespace, "tcp", netip.AddrPortFrom(a, 8080).String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			fmt.Fprint(conn, conn.RemoteAddr())
			conn.Close()
		}
	}()
}

// call returns the address that the server saw.
func call(t *testing.T, namespace string, a netip.Addr) (netip.Addr, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	conn, err := netns.Dial(ctx, namespace, "tcp", netip.AddrPortFrom(a, 8080).String())
	if err != nil {
		return netip.Addr{}, err
	}
	defer conn.Close()
	text, err := io.ReadAll(conn)
	if err != nil {
		return netip.Addr{}, err
	}
	seen, err := netip.ParseAddrPort(string(text))
	return seen.Addr(), err
}

func mustCall(t *testing.T, namespace string, from, to netip.Addr) {
	t.Helper()
	seen, err := call(t, namespace, to)
	if err != nil || seen != from {
		t.Errorf("%s calls %s: seen as %v, want %s (%v)", namespace, to, seen, from, err)
	}
}

func TestPodsReachEachOther(t *testing.T) {
	n := newNetwork(t)
	m1, m2 := n.Members[0], n.Members[1]
	addresses, _ := m1.PodAddresses(0)
	pod := n.PodNamespace(m1.Name, "0")
	for range 2 {
		if err := AddPod(m1, pod, addresses); err != nil {
			t.Fatal(err)
		}
	}
	serve(t, pod, addresses.V4)
	serve(t, pod, addresses.V6)
	for _, m := range []plan.MemberNetwork{m1, m2} {
		mustCall(t, m.Client, m.ClientAddresses().V4, addresses.V4)
		mustCall(t, m.Client, m.ClientAddresses().V6, addresses.V6)
	}
	mustCall(t, m1.Node, m1.Node4, addresses.V4)

	if err := RemovePod(m1, pod, addresses); err != nil {
		t.Fatal(err)
	}
	if _, err := call(t, m2.Client, addresses.V4); err == nil {
		t.Error("a removed pod answers")
	}
	if links, _ := filepath.Glob("/sys/class/net/pod*"); len(links) > 0 {
		t.Errorf("links on the machine: %v", links)
	}
}

func mustNotCall(t *testing.T, namespace string, to netip.Addr) {
	t.Helper()
	if seen, err := call(t, namespace, to); err == nil {
		t.Errorf("%s calls %s: seen as %s, want no answer", namespace, to, seen)
	}
}

func TestFaults(t *testing.T) {
	n := newNetwork(t)
	m1, m2 := n.Members[0], n.Members[1]
	addresses, _ := m1.PodAddresses(0)
	pod := n.PodNamespace(m1.Name, "0")
	if err := AddPod(m1, pod, addresses); err != nil {
		t.Fatal(err)
	}
	serve(t, pod, addresses.V4)
	serve(t, pod, addresses.V6)
	set := func(f Faults) {
		t.Helper()
		for range 2 { // saying it twice changes nothing
			if err := SetFaults(n, m1, f); err != nil {
				t.Fatal(err)
			}
		}
	}
	set(Faults{LinkDown: true})
	mustNotCall(t, m2.Client, addresses.V4)
	mustCall(t, m1.Client, m1.ClientAddresses().V4, addresses.V4)

	set(Faults{})
	mustCall(t, m2.Client, m2.ClientAddresses().V4, addresses.V4)
	mustCall(t, m2.Client, m2.ClientAddresses().V6, addresses.V6)

	set(Faults{PodsUnreachable: true})
	mustNotCall(t, m2.Client, addresses.V4)
	mustNotCall(t, m1.Client, addresses.V6)
	mustCall(t, m1.Node, m1.Node4, addresses.V4)

	set(Faults{Loss: 1})
	mustNotCall(t, m2.Client, addresses.V4)
	mustCall(t, m1.Client, m1.ClientAddresses().V6, addresses.V6)

	set(Faults{})
	mustCall(t, m2.Client, m2.ClientAddresses().V4, addresses.V4)
}

func TestForwarder(t *testing.T) {
	n := newNetwork(t)
	m := n.Members[0]
	l, err := net.Listen("tcp4", fmt.Sprintf("127.0.0.1:%d", m.APIPort))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = io.Copy(conn, conn)
			conn.Close()
		}
	}()
	f := forwarder{}
	if err := f.open(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	conn, err := netns.Dial(t.Context(), m.Node, "tcp4", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.Write([]byte("hello")); err != nil {
		t.Fatal(err)
	}
	tcp, ok := conn.(*net.TCPConn)
	if !ok {
		t.Fatalf("dialled a %T", conn)
	}
	if err := tcp.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(conn); err != nil || string(got) != "hello" {
		t.Errorf("got %q, %v", got, err)
	}
}
