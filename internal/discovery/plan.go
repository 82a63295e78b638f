package discovery

import (
	"cmp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"

	networkingv1alpha1 "github.com/namesake-io/namesake/api/networking/v1alpha1"
)

// Plan is what consumers should hold of one service. It is made once for all of
// them: each holds every slice but those of its own.
type Plan struct {
	// Service that the plan is for.
	Service types.NamespacedName
	// Selection of clusters. Empty when nothing may stand anywhere.
	Selection Selection
	// Slices to dispatch, sorted by provider and name. Shared by all consumers:
	// not to be changed.
	Slices []DispatchedSlice
	// Conflicts between providers that claim one address, sorted.
	Conflicts []AddressConflict
	// MissingPorts are the entries of spec.ports that the Service does not have.
	MissingPorts []string
	// Unsupported says why the Service cannot be shared. Empty: it can.
	Unsupported string
	// Retained are unreachable providers whose endpoints are kept although the
	// policy would by now act on them: most providers are unreachable, so the
	// fault is likely the hub's own. Sorted.
	Retained []ClusterName
	// RecheckAfter is when time alone changes the plan. Zero: never.
	RecheckAfter time.Duration
	// Hold says why nothing may be changed now. Nil: changes may be made.
	Hold error

	// dispatches is true when consumers should hold slices at all.
	dispatches bool
	providers  map[ClusterName]ProviderState
	clusters   []ClusterName
}

// DispatchedSlice is one provider's slice as consumers hold it.
type DispatchedSlice struct {
	// Provider that the slice comes from, and its name there.
	Provider ClusterName
	Source   SliceName
	// Slice as it is written, with its name and without a resourceVersion.
	Slice *discoveryv1.EndpointSlice

	generation int64
}

// ProviderState is what a plan knows of one provider.
type ProviderState struct {
	// Authoritative, UnreachableSince and LacksSlices as in Cluster.
	Authoritative    bool
	UnreachableSince time.Time
	LacksSlices      bool
	// Slices, Endpoints and Ready count what was collected.
	Slices, Endpoints, Ready int
}

// Provider returns what the plan knows of a selected provider.
func (p *Plan) Provider(name ClusterName) ProviderState { return p.providers[name] }

// NewPlan returns what consumers should hold. The order of the snapshot's lists
// does not matter.
func NewPlan(s Snapshot) *Plan {
	p := &Plan{Service: s.Service, providers: map[ClusterName]ProviderState{}}
	for i := range s.Clusters {
		p.clusters = append(p.clusters, s.Clusters[i].Name)
	}
	slices.Sort(p.clusters)
	if s.MCS == nil || s.MCS.DeletionTimestamp != nil {
		return p
	}

	selection, err := Select(&s.MCS.Spec, s.Clusters)
	if err != nil {
		// The wish cannot be read, so nothing is known to be unwanted.
		p.Hold = err
		return p
	}
	p.Selection = selection

	ports, missing := newPortFilter(s.MCS.Spec.Ports, s.Template)
	p.MissingPorts = missing
	if s.Template != nil && s.Template.Spec.Type == corev1.ServiceTypeExternalName {
		p.Unsupported = "a Service of type ExternalName has no endpoints: it is a DNS alias, which works in every cluster by itself"
	}

	opts := sliceOptions{mcs: s.MCS, template: s.Template, ports: ports}
	for _, c := range orderedProviders(s.Clusters, selection.Providers) {
		p.addProvider(c, opts)
	}
	p.applyUnreachablePolicy(s)
	p.dispatches = p.Unsupported == "" && slices.Contains(s.MCS.Spec.Types, networkingv1alpha1.ExposureTypeCrossCluster)
	if !p.dispatches {
		p.Slices = nil
	}
	p.Conflicts = withholdTakenAddresses(p.Slices)
	slices.SortFunc(p.Slices, func(a, b DispatchedSlice) int {
		return cmp.Or(cmp.Compare(a.Provider, b.Provider), cmp.Compare(a.Source, b.Source))
	})
	p.nameSlices()
	return p
}

// orderedProviders returns the selected clusters, those whose word can be
// trusted now before those that are only remembered, then by name. Of two that
// claim one address the first has it.
func orderedProviders(clusters []Cluster, selected []ClusterName) []*Cluster {
	var out []*Cluster
	for i := range clusters {
		if _, found := slices.BinarySearch(selected, clusters[i].Name); found {
			out = append(out, &clusters[i])
		}
	}
	rank := func(c *Cluster) int {
		switch {
		case !c.Authoritative:
			return 2
		case !c.UnreachableSince.IsZero():
			return 1
		default:
			return 0
		}
	}
	slices.SortFunc(out, func(a, b *Cluster) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a.Name, b.Name))
	})
	return out
}

// addProvider translates the slices of one provider, in the order of their names.
func (p *Plan) addProvider(c *Cluster, opts sliceOptions) {
	state := ProviderState{
		Authoritative:    c.Authoritative,
		UnreachableSince: c.UnreachableSince,
		LacksSlices:      c.LacksSlices,
		Slices:           len(c.Slices),
	}
	sorted := slices.SortedFunc(slices.Values(c.Slices), func(a, b *discoveryv1.EndpointSlice) int {
		return cmp.Compare(a.Name, b.Name)
	})
	for _, in := range sorted {
		state.Endpoints += len(in.Endpoints)
		for i := range in.Endpoints {
			if ready(&in.Endpoints[i]) {
				state.Ready++
			}
		}
		out, ok := translate(in, c.Name, opts)
		if !ok {
			continue
		}
		p.Slices = append(p.Slices, DispatchedSlice{
			Provider: c.Name, Source: SliceName(in.Name), Slice: out, generation: in.Generation,
		})
	}
	p.providers[c.Name] = state
}

// nameSlices gives each slice its name. Two slices of one name can only come
// from a slice that was named to look like another's hash; the later one then
// gets another hash.
func (p *Plan) nameSlices() {
	taken := make(map[SliceName]bool, len(p.Slices))
	for i := range p.Slices {
		s := &p.Slices[i]
		name := DispatchedName(s.Provider, s.Source, p.clusters)
		for attempt := 1; taken[name]; attempt++ {
			name = hashedName(s.Provider, s.Source, attempt)
		}
		taken[name] = true
		s.Slice.Name = string(name)
	}
}

// ready says whether callers may use an endpoint. Unset means ready.
func ready(e *discoveryv1.Endpoint) bool {
	return e.Conditions.Ready == nil || *e.Conditions.Ready
}
