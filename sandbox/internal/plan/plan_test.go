package plan

import (
	"flag"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// fixedPorts counts up from 20000, in the order of PortNames.
func fixedPorts(members int, bare bool) map[string]int {
	ports := map[string]int{}
	for i, name := range PortNames(members, bare) {
		ports[name] = 20000 + i
	}
	return ports
}

func testOptions(members int, bare bool) Options {
	return Options{
		Dir: "DIR", BinDir: "BIN", Sandbox: "BIN/sandbox",
		Members: members, Bare: bare, Ports: fixedPorts(members, bare),
	}
}

func withDataPlane(o Options) Options {
	o.DataPlane, o.FleetID, o.Images = true, "0123abcd", "images.yaml"
	for i, name := range DataPlanePortNames(o.Members) {
		o.Ports[name] = 21000 + i
	}
	return o
}

func TestGolden(t *testing.T) {
	mixed := testOptions(3, false)
	mixed.Pull, mixed.AgentArgs = []string{"member2", "member3"}, []string{"--v=4"}
	for i, name := range AgentPortNames(mixed.Pull) {
		mixed.Ports[name] = 22000 + i
	}
	withArgs := testOptions(2, false)
	withArgs.ControllerManagerArgs = []string{"--v=4", "--note=two words"}
	tests := map[string]Options{
		"hub-alone": testOptions(0, true),
		"bare-1":    testOptions(1, true),
		"plain-2":   withArgs,
		"mixed-3":   mixed,
		"data-1":    withDataPlane(testOptions(1, true)),
	}
	for name, options := range tests {
		t.Run(name, func(t *testing.T) {
			p, err := New(options)
			if err != nil {
				t.Fatal(err)
			}
			var got strings.Builder
			if err := p.Print(&got); err != nil {
				t.Fatal(err)
			}
			golden := filepath.Join("testdata", name+".golden")
			if *update {
				if err := os.WriteFile(golden, []byte(got.String()), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got.String()); diff != "" {
				t.Errorf("plan (-want +got), rewrite with -update:\n%s", diff)
			}
		})
	}
}

func TestBadOptions(t *testing.T) {
	noPort := testOptions(1, true)
	delete(noPort.Ports, RelayPort("member1"))
	tests := map[string]struct {
		options Options
		want    string
	}{
		"negative":        {testOptions(-1, true), "0 to 60 members, not -1"},
		"too many":        {testOptions(61, true), "0 to 60 members, not 61"},
		"port left out":   {noPort, "no port is given for member1-relay"},
		"a bare agent":    {Options{Members: 1, Bare: true, Pull: []string{"member1"}, Ports: fixedPorts(1, true)}, "a bare fleet has no agents"},
		"no port for own": {Options{Ports: fixedPorts(0, true)}, "no port is given for controller-manager-metrics"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if _, err := New(tt.options); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error = %v, want %q", err, tt.want)
			}
		})
	}
}

func TestParsePull(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "0": "", "2": "member2,member3", "3": "member1,member2,member3", "member1": "member1", "member3,member1": "member3,member1",
	} {
		if got, err := ParsePull(text, 3); err != nil || strings.Join(got, ",") != want {
			t.Errorf("ParsePull(%q) = %v, %v, want %q", text, got, err, want)
		}
	}
	for _, text := range []string{"4", "-1", "member4", "member1,member1", "member1,", "all"} {
		if got, err := ParsePull(text, 3); err == nil {
			t.Errorf("ParsePull(%q) = %v, want an error", text, got)
		}
	}
}

// Ranges of different clusters must never overlap, whatever their number, and
// each must be one that Kubernetes takes.
func TestAddressesDoNotOverlap(t *testing.T) {
	benchmarking := netip.MustParsePrefix("198.18.0.0/15")
	for members := range MaxMembers + 1 {
		var all []netip.Prefix
		for i := range members + 1 {
			a := addressesOf(i, members+1)
			for _, p := range []netip.Prefix{a.pods4, a.services4} {
				if !benchmarking.Contains(p.Addr()) || p.Bits() > 22 {
					t.Fatalf("%d members: %s is outside %s or too small", members, p, benchmarking)
				}
			}
			if a.services6.Bits() < 108 {
				t.Fatalf("%s has more addresses than Kubernetes takes", a.services6)
			}
			all = append(all, a.pods4, a.pods6, a.services4, a.services6)
		}
		for i, p := range all {
			if p != p.Masked() {
				t.Fatalf("%d members: %s is not the start of a range", members, p)
			}
			if j := slices.IndexFunc(all[:i], p.Overlaps); j >= 0 {
				t.Fatalf("%d members: %s overlaps %s", members, p, all[j])
			}
		}
	}
}

// Every need must be a component that is planned before, else `up` would wait
// for ever; nobody may be stopped before those that need him.
func TestNeedsAreMet(t *testing.T) {
	p, err := New(withDataPlane(testOptions(3, false)))
	if err != nil {
		t.Fatal(err)
	}
	tiers := map[string]int{}
	for _, c := range append(p.Components, p.Manager...) {
		for _, need := range c.Needs {
			tier, ok := tiers[need]
			if !ok {
				t.Errorf("%s needs %s, which is not planned before it", c.Name, need)
			}
			if tier >= c.Tier {
				t.Errorf("%s is stopped before or with %s, which needs it", need, c.Name)
			}
		}
		tiers[c.Name] = c.Tier
	}
}

// Pods of different members must never share an address, whatever the number of
// members, and each must have room for a few hundred.
func TestPodAddresses(t *testing.T) {
	for _, members := range []int{1, 2, 3, 8, MaxMembers} {
		seen := map[netip.Addr]string{}
		add := func(a netip.Addr, whose string) {
			if other, ok := seen[a]; ok {
				t.Fatalf("%d members: %s is of %s and of %s", members, a, other, whose)
			}
			seen[a] = whose
		}
		for _, m := range newNetwork(withDataPlane(testOptions(members, true))).Members {
			add(m.Node4, m.Name+"'s node")
			add(m.Node6, m.Name+"'s node")
			add(m.Fabric4.Addr(), m.Name+" on the fabric")
			add(m.Fabric6.Addr(), m.Name+" on the fabric")
			add(m.ClientAddresses().V4, m.Name+"'s client")
			add(m.ClientAddresses().V6, m.Name+"'s client")
			n := 0
			for ; n < 600; n++ {
				a, ok := m.PodAddresses(n)
				if !ok {
					break
				}
				if !m.Pods4.Contains(a.V4) || !m.Pods6.Contains(a.V6) {
					t.Fatalf("%d members: pod %d of %s has %v", members, n, m.Name, a)
				}
				add(a.V4, m.Name+"'s pods")
				add(a.V6, m.Name+"'s pods")
			}
			if n < 500 {
				t.Fatalf("%d members: only %d pods in %s", members, n, m.Name)
			}
		}
	}
}
