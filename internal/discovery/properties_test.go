package discovery_test

import (
	"crypto/sha256"
	"encoding/json"
	"maps"
	"math/rand/v2"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	discoveryv1 "k8s.io/api/discovery/v1"
	"pgregory.net/rapid"

	networkingv1alpha1 "github.com/namesake-io/namesake/api/networking/v1alpha1"
	"github.com/namesake-io/namesake/internal/discovery"
)

// What holds of any snapshot.
var planProperties = map[string]func(*rapid.T, discovery.Snapshot, *discovery.Plan){
	"is_a_function_of_its_input": isFunction,
	"is_accepted":                isAccepted,
	"for_consumers_only":         isForConsumersOnly,
	"has_nothing_of_its_own":     isFromProviders,
	"no_socket_twice":            hasNoSocketTwice,
	"endpoints_are_foreign":      isForeign,
}

func TestPlanProperties(t *testing.T) {
	for name, holds := range planProperties {
		t.Run(name, rapid.MakeCheck(func(t *rapid.T) {
			s := someSnapshot(t)
			holds(t, s, discovery.NewPlan(s))
		}))
	}
}

// FuzzPlan checks all properties on one snapshot, and what its changes do. The
// bytes are the first choices of the generators.
func FuzzPlan(f *testing.F) {
	for seed := range 16 {
		f.Add([]byte{byte(seed)})
	}
	f.Add([]byte(strings.Repeat("\x00", 1024)))
	f.Add([]byte(strings.Repeat("\x01\x02\x03\x04\x05\x06\x07\x08", 128)))
	check := rapid.MakeFuzz(func(t *rapid.T) {
		s := someSnapshot(t)
		for _, name := range slices.Sorted(maps.Keys(planProperties)) {
			planProperties[name](t, s, discovery.NewPlan(s))
		}
		settles(t, s)
	})
	f.Fuzz(func(t *testing.T, data []byte) { check(t, stretch(data)) })
}

// stretch appends to the choices as many as a snapshot may take: an input that
// runs out of them would be skipped, and nearly all would.
func stretch(data []byte) []byte {
	out := make([]byte, 1<<17)
	_, _ = rand.NewChaCha8(sha256.Sum256(data)).Read(out[copy(out, data):]) // never fails
	return out
}

// inside compares plans with all that is in them.
var inside = cmp.Options{
	cmp.Exporter(func(reflect.Type) bool { return true }),
	cmp.Comparer(func(a, b netip.Addr) bool { return a == b }),
	cmp.Comparer(func(a, b error) bool { return errText(a) == errText(b) }),
}

func isFunction(t *rapid.T, s discovery.Snapshot, p *discovery.Plan) {
	before := clone(s)
	again := discovery.NewPlan(s)
	if !reflect.DeepEqual(before, s) {
		t.Fatalf("the snapshot is changed:\n%s", cmp.Diff(before, s))
	}
	other := discovery.NewPlan(shuffle(t, s))
	for what, q := range map[string]*discovery.Plan{"a second time": again, "in another order": other} {
		if diff := cmp.Diff(p, q, inside); diff != "" {
			t.Fatalf("planned %s it is another plan:\n%s", what, diff)
		}
		want, got := asJSON(t, p.Slices), asJSON(t, q.Slices)
		if want != got {
			t.Fatalf("planned %s it has other bytes:\n%s\n%s", what, want, got)
		}
	}
}

func asJSON(t *rapid.T, v any) string {
	out, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

func isAccepted(t *rapid.T, _ discovery.Snapshot, p *discovery.Plan) {
	names := map[string]bool{}
	for _, d := range p.Slices {
		if err := acceptable(d.Slice); err != nil {
			t.Fatalf("slice %s of %s: %v", d.Source, d.Provider, err)
		}
		if names[d.Slice.Name] {
			t.Fatalf("two slices are named %s", d.Slice.Name)
		}
		names[d.Slice.Name] = true
		if d.Slice.Namespace != namespace || d.Slice.Labels[discoveryv1.LabelServiceName] != service || !discovery.Dispatched(d.Slice) {
			t.Fatalf("slice %s is not marked as dispatched for %s/%s", d.Slice.Name, namespace, service)
		}
	}
}

func isForConsumersOnly(t *rapid.T, s discovery.Snapshot, p *discovery.Plan) {
	var consumers []clusterName
	if s.MCS != nil && s.MCS.DeletionTimestamp == nil {
		if selection, err := discovery.Select(&s.MCS.Spec, s.Clusters); err == nil {
			consumers = selection.Consumers
		}
	}
	for i := range s.Clusters {
		c := &s.Clusters[i]
		wanted := p.Wanted(c.Name)
		if (c.Leaving || !slices.Contains(consumers, c.Name)) && len(wanted) > 0 {
			t.Fatalf("%s is no consumer and is to hold %d slices", c.Name, len(wanted))
		}
		for _, d := range wanted {
			if d.Provider == c.Name {
				t.Fatalf("%s is given its own slice %s", c.Name, d.Source)
			}
		}
	}
}

// isFromProviders: no address that the provider's slice of that name and address
// type does not have.
func isFromProviders(t *rapid.T, s discovery.Snapshot, p *discovery.Plan) {
	type source struct {
		provider clusterName
		slice    string
		discoveryv1.AddressType
		address string
	}
	known := map[source]bool{}
	for i := range s.Clusters {
		for _, in := range s.Clusters[i].Slices {
			for _, e := range in.Endpoints {
				if in.Labels[discoveryv1.LabelServiceName] == service && !discovery.Dispatched(in) && !s.Clusters[i].Leaving {
					known[source{s.Clusters[i].Name, in.Name, in.AddressType, spelled(e.Addresses[0])}] = true
				}
			}
		}
	}
	for _, d := range p.Slices {
		for _, e := range d.Slice.Endpoints {
			if !known[source{d.Provider, string(d.Source), d.Slice.AddressType, e.Addresses[0]}] {
				t.Fatalf("slice %s of %s has no %s endpoint %s", d.Source, d.Provider, d.Slice.AddressType, e.Addresses[0])
			}
		}
	}
}

// spelled is an address in its canonical spelling, as far as it is an IP.
func spelled(address string) string {
	if ip, err := netip.ParseAddr(address); err == nil {
		return ip.String()
	}
	return address
}

// hasNoSocketTwice: whatever address and port kube-proxy finds in a consumer, all
// ready endpoints of it are in one cluster, and none that is not ready is beside
// them.
func hasNoSocketTwice(t *rapid.T, s discovery.Snapshot, p *discovery.Plan) {
	type socket struct{ address, port string }
	for i := range s.Clusters {
		c := &s.Clusters[i]
		held := p.Wanted(c.Name)
		// Its own ones, as far as they are known and counted.
		for _, d := range p.Slices {
			if d.Provider == c.Name && c.UnreachableSince.IsZero() && len(held) > 0 {
				for _, in := range c.Slices {
					if in.Name == string(d.Source) {
						held = append(held, discovery.DispatchedSlice{Provider: c.Name, Source: d.Source, Slice: withPorts(in, d.Slice.Ports)})
					}
				}
			}
		}
		owner := map[socket]clusterName{}
		each := func(readyOnes bool, see func(clusterName, socket)) {
			for _, d := range held {
				for _, e := range d.Slice.Endpoints {
					if readyOnes != (e.Conditions.Ready == nil || *e.Conditions.Ready) {
						continue
					}
					address := spelled(e.Addresses[0])
					see(d.Provider, socket{address: address})
					for _, port := range d.Slice.Ports {
						see(d.Provider, socket{address, asJSON(t, []any{port.Port, port.Protocol})})
					}
				}
			}
		}
		portless := !slices.ContainsFunc(held, func(d discovery.DispatchedSlice) bool { return len(d.Slice.Ports) > 0 })
		each(true, func(provider clusterName, at socket) {
			if at.port == "" && !portless {
				return
			}
			if other, taken := owner[at]; taken && other != provider {
				t.Fatalf("in %s both %s and %s have %v ready", c.Name, other, provider, at)
			}
			owner[at] = provider
		})
		each(false, func(provider clusterName, at socket) {
			if other, taken := owner[at]; taken && other != provider && provider != c.Name && (at.port != "" || portless) {
				t.Fatalf("in %s %s has %v not ready, beside %s", c.Name, provider, at, other)
			}
		})
	}
}

func withPorts(in *discoveryv1.EndpointSlice, ports []discoveryv1.EndpointPort) *discoveryv1.EndpointSlice {
	out := in.DeepCopy()
	out.Ports = ports
	return out
}

// isForeign: nothing ties an endpoint to a node, pod or zone of the provider.
func isForeign(t *rapid.T, s discovery.Snapshot, p *discovery.Plan) {
	sameNode := s.Template != nil && s.Template.Spec.TrafficDistribution != nil
	for _, d := range p.Slices {
		for _, e := range d.Slice.Endpoints {
			zones, nodes := zonesOf(e), nodesOf(e)
			switch {
			case e.NodeName != nil || e.TargetRef != nil:
				t.Fatalf("%s has node %v and pod %v", d.Slice.Name, e.NodeName, e.TargetRef)
			case len(zones) != 1 || zones[0] == "zone-1":
				t.Fatalf("%s has zone hints %v", d.Slice.Name, zones)
			case sameNode != (len(nodes) == 1) || slices.Contains(nodes, "node-1"):
				t.Fatalf("%s has node hints %v, and the Service prefers the same node: %t", d.Slice.Name, nodes, sameNode)
			}
		}
	}
}

// Whatever stood in a consumer, and whatever was edited, two rounds set it right.
func TestChangesProperties(t *testing.T) {
	t.Run("settle", rapid.MakeCheck(func(t *rapid.T) { settles(t, someSnapshot(t)) }))
	t.Run("remove_only_what_is_known_to_be_gone", rapid.MakeCheck(removesOnlyTheGone))
}

func settles(t *rapid.T, before discovery.Snapshot) {
	after := someLater(t, before)
	if rapid.Bool().Draw(t, "joined") {
		// Then it is members that joined.
		before, after = after, before
	}
	old, p := discovery.NewPlan(before), discovery.NewPlan(after)
	names := []clusterName{"stranger"}
	for _, s := range []discovery.Snapshot{before, after} {
		for i := range s.Clusters {
			names = append(names, s.Clusters[i].Name)
		}
	}
	slices.Sort(names)
	tampered := rapid.Bool().Draw(t, "tampered")
	for _, name := range slices.Compact(names) {
		c := newConsumer(string(name))
		settle(t, c, old)
		if tampered {
			tamper(t, c)
		}
		settle(t, c, p)
		if p.Hold == nil && !tampered {
			holdsTheWanted(t, c, p)
		}
	}
}

func settle(t *rapid.T, c *consumer, p *discovery.Plan) {
	for range 2 {
		standing := c.standing(p)
		before := cloneAll(standing.Dispatched)
		changes := p.For(c.name, standing)
		if !reflect.DeepEqual(before, standing.Dispatched) {
			t.Fatalf("what stands is changed:\n%s", cmp.Diff(before, standing.Dispatched))
		}
		slices.Reverse(standing.Dispatched)
		if other := p.For(c.name, standing); !reflect.DeepEqual(tell(other), tell(changes)) {
			t.Fatalf("what stands in another order is changed otherwise: %q, not %q", tell(other), tell(changes))
		}
		if err := c.apply(changes); err != nil {
			t.Fatalf("consumer %s: %v", c.name, err)
		}
	}
	if left := c.changes(p); !left.Empty() {
		t.Fatalf("consumer %s is not right after two rounds: %q", c.name, tell(left))
	}
}

// holdsTheWanted: all that is wanted stands, and beside it only slices of
// providers that cannot be asked.
func holdsTheWanted(t *rapid.T, c *consumer, p *discovery.Plan) {
	wanted := map[string]*discoveryv1.EndpointSlice{}
	for _, d := range p.Wanted(c.name) {
		wanted[d.Slice.Name] = d.Slice
	}
	for name, s := range c.slices {
		provider := clusterName(s.Annotations[networkingv1alpha1.ProvisionClusterAnnotation])
		asked := p.Provider(provider).Authoritative || !slices.Contains(p.Selection.Providers, provider)
		if want := wanted[name]; want != nil && (asked || discovery.Equal(want, s)) {
			if !discovery.Equal(want, s) {
				t.Fatalf("%s in %s is not what is wanted:\n%s", name, c.name, cmp.Diff(want, s))
			}
		} else if asked {
			t.Fatalf("%s of %s stands in %s and is not wanted", name, provider, c.name)
		}
		delete(wanted, name)
	}
	if len(wanted) > 0 {
		t.Fatalf("%s lacks %q", c.name, slices.Sorted(maps.Keys(wanted)))
	}
}

// removesOnlyTheGone: a slice of a wanted provider that cannot be asked goes only
// when it stands under another name, or by the policy, or for its ports.
func removesOnlyTheGone(t *rapid.T) {
	before := someSnapshot(t)
	after := someLater(t, before)
	old, p := discovery.NewPlan(before), discovery.NewPlan(after)
	crossCluster := after.MCS != nil && slices.Contains(after.MCS.Spec.Types, networkingv1alpha1.ExposureTypeCrossCluster)
	if !crossCluster || p.Unsupported != "" || len(after.MCS.Spec.Ports) > 0 {
		return
	}
	withdraw := after.MCS.Spec.UnreachableProviders != nil &&
		after.MCS.Spec.UnreachableProviders.Policy == networkingv1alpha1.UnreachableWithdraw
	for _, name := range p.Selection.Consumers {
		c := newConsumer(string(name))
		settle(t, c, old)
		for _, d := range c.changes(p).Delete {
			provider := clusterName(d.Slice.Annotations[networkingv1alpha1.ProvisionClusterAnnotation])
			state := p.Provider(provider)
			unasked := slices.Contains(p.Selection.Providers, provider) && !state.Authoritative && provider != name
			if unasked && d.After == "" && (!withdraw || state.UnreachableSince.IsZero()) {
				t.Fatalf("%s is deleted from %s although %s cannot be asked", d.Slice.Name, name, provider)
			}
		}
	}
}
