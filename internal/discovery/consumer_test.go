package discovery_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/namesake-io/namesake/internal/discovery"
)

// consumer is a member's API server as far as slices of one namespace go.
type consumer struct {
	name   discovery.ClusterName
	slices map[string]*discoveryv1.EndpointSlice
}

func newConsumer(name string, standing ...*discoveryv1.EndpointSlice) *consumer {
	c := &consumer{name: discovery.ClusterName(name), slices: map[string]*discoveryv1.EndpointSlice{}}
	for _, s := range standing {
		c.slices[s.Name] = s
	}
	return c
}

// standing is what a controller finds here for a plan.
func (c *consumer) standing(p *discovery.Plan) discovery.Standing {
	planned := map[string]bool{}
	for _, d := range p.Slices {
		planned[d.Slice.Name] = true
	}
	st := discovery.Standing{Native: func(name discovery.SliceName) bool {
		s, found := c.slices[string(name)]
		return found && !discovery.Dispatched(s)
	}}
	for _, name := range slices.Sorted(maps.Keys(c.slices)) {
		s := c.slices[name]
		if discovery.Dispatched(s) && (s.Labels[discoveryv1.LabelServiceName] == p.Service.Name || planned[name]) {
			st.Dispatched = append(st.Dispatched, s)
		}
	}
	return st
}

// changes that the consumer needs.
func (c *consumer) changes(p *discovery.Plan) discovery.Changes { return p.For(c.name, c.standing(p)) }

// apply makes changes as an API server would, and refuses what it would refuse.
func (c *consumer) apply(changes discovery.Changes) error {
	for _, s := range changes.Create {
		if c.slices[s.Name] != nil {
			return fmt.Errorf("creating %s: already exists", s.Name)
		}
		if err := acceptable(s); err != nil {
			return fmt.Errorf("creating %s: %w", s.Name, err)
		}
		c.slices[s.Name] = stored(s)
	}
	for _, s := range changes.Update {
		have := c.slices[s.Name]
		switch {
		case have == nil:
			return fmt.Errorf("updating %s: not found", s.Name)
		case have.AddressType != s.AddressType:
			return fmt.Errorf("updating %s: addressType is immutable", s.Name)
		}
		if err := acceptable(s); err != nil {
			return fmt.Errorf("updating %s: %w", s.Name, err)
		}
		c.slices[s.Name] = stored(s)
	}
	for _, d := range changes.Delete {
		if c.slices[d.Slice.Name] == nil {
			return fmt.Errorf("deleting %s: not found", d.Slice.Name)
		}
		if d.After != "" && c.slices[string(d.After)] == nil {
			return fmt.Errorf("deleting %s: %s, which replaces it, does not stand", d.Slice.Name, d.After)
		}
		delete(c.slices, d.Slice.Name)
	}
	return nil
}

// stored is what an API server makes of what it is sent.
func stored(s *discoveryv1.EndpointSlice) *discoveryv1.EndpointSlice {
	out := s.DeepCopy()
	for i := range out.Ports {
		if out.Ports[i].Name == nil {
			out.Ports[i].Name = ptr("")
		}
		if out.Ports[i].Protocol == nil {
			out.Ports[i].Protocol = ptr(corev1.ProtocolTCP)
		}
	}
	out.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: discovery.FieldManager, Operation: metav1.ManagedFieldsOperationUpdate}}
	return out
}

// dispatch brings the consumer to what the plan wants.
func (c *consumer) dispatch(t *testing.T, p *discovery.Plan) *consumer {
	t.Helper()
	for range 2 {
		if err := c.apply(c.changes(p)); err != nil {
			t.Fatal(err)
		}
	}
	if left := tell(c.changes(p)); len(left) > 0 {
		t.Fatalf("changes are left after two rounds: %v", left)
	}
	return c
}

// tell writes changes as "create NAME", "update NAME", "delete NAME" and "delete
// NAME after NAME".
func tell(changes discovery.Changes) (out []string) {
	for _, s := range changes.Create {
		out = append(out, "create "+s.Name)
	}
	for _, s := range changes.Update {
		out = append(out, "update "+s.Name)
	}
	for _, d := range changes.Delete {
		line := "delete " + d.Slice.Name
		if d.After != "" {
			line += " after " + string(d.After)
		}
		out = append(out, line)
	}
	return out
}

// names of what stands, sorted.
func (c *consumer) names() []string { return slices.Sorted(maps.Keys(c.slices)) }

// endpoints tells the endpoints of a slice as "ADDRESS" or "ADDRESS not ready".
func endpoints(s *discoveryv1.EndpointSlice) (out []string) {
	for _, e := range s.Endpoints {
		line := strings.Join(e.Addresses, ",")
		if e.Conditions.Ready != nil && !*e.Conditions.Ready {
			line += " not ready"
		}
		out = append(out, line)
	}
	return out
}
