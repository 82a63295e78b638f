package discovery_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"

	networkingv1alpha1 "github.com/namesake-io/namesake/api/networking/v1alpha1"
	"github.com/namesake-io/namesake/internal/discovery"
)

var shopFoo = types.NamespacedName{Namespace: namespace, Name: service}

// deliveredTo are the slices that a plan has for a consumer, as a Work holds them.
func deliveredTo(p *discovery.Plan, consumer discovery.ClusterName) (out []*discoveryv1.EndpointSlice) {
	for _, d := range p.Wanted(consumer) {
		out = append(out, d.Slice)
	}
	return out
}

// An agent lets stand what the hub would have let stand, to the byte, and takes
// away what the hub would have taken away.
func TestDelivered(t *testing.T) {
	hub := discovery.NewPlan(snapshot(crossCluster(),
		member("a", slice("s1", pod("10.0.0.1")), slice("s2", pod("10.0.0.2"), pod("10.0.0.3", notReady))),
		member("a-b", slice("c", pod("10.1.0.1"))), member("m", slice("own", pod("10.2.0.1")))))
	agent := discovery.Delivered(shopFoo, "m", deliveredTo(hub, "m"))
	direct := hub.For("m", discovery.Standing{})
	delivered := agent.For("m", discovery.Standing{})
	byName := func(a, b *discoveryv1.EndpointSlice) int { return slices.Compare([]byte(a.Name), []byte(b.Name)) }
	slices.SortFunc(direct.Create, byName)
	slices.SortFunc(delivered.Create, byName)
	if diff := cmp.Diff(direct, delivered); diff != "" {
		t.Errorf("changes in an empty cluster (-hub +agent):\n%s", diff)
	}
	standing := discovery.Standing{Dispatched: delivered.Create}
	if got := agent.For("m", standing); !got.Empty() {
		t.Errorf("changes where everything stands: %+v", got)
	}
	less := discovery.Delivered(shopFoo, "m", deliveredTo(hub, "m")[:1])
	if got := less.For("m", standing); len(got.Delete) != 2 || len(got.Create)+len(got.Update) > 0 {
		t.Errorf("changes where less is delivered: %+v, want two deletions", got)
	}
	// A name that the cluster's own slice has is avoided, as the hub does it.
	taken := func(name discovery.SliceName) bool { return name == "a-s1" }
	a, b := hub.For("m", discovery.Standing{Native: taken}), agent.For("m", discovery.Standing{Native: taken})
	if len(a.Create) != 3 || len(b.Create) != 3 || !slices.ContainsFunc(b.Create, func(s *discoveryv1.EndpointSlice) bool { return s.Name == a.Create[0].Name }) {
		t.Errorf("where a name is taken: hub %v, agent %v", a.Create, b.Create)
	}
}

// What is no dispatched slice of the service and of another cluster is not let stand.
func TestDelivered_others(t *testing.T) {
	from := func(provider string) sliceOption {
		return annotation(networkingv1alpha1.ProvisionClusterAnnotation, provider)
	}
	elsewhere := slice("s", from("a"))
	elsewhere.Namespace = "kube-system"
	for name, s := range map[string]*discoveryv1.EndpointSlice{
		"of no cluster":        slice("s"),
		"of the cluster's own": slice("s", from("m")),
		"of another service":   slice("s", from("a"), label(discoveryv1.LabelServiceName, "bar")),
		"of another namespace": elsewhere,
	} {
		t.Run(name, func(t *testing.T) {
			if got := discovery.Delivered(shopFoo, "m", []*discoveryv1.EndpointSlice{s}).For("m", discovery.Standing{}); !got.Empty() {
				t.Errorf("changes %+v, want none", got)
			}
		})
	}
}
