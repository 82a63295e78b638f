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
	// Slices to dispatch, sorted by provider and name. Shared by all consumers,
	// and in part with the snapshot: not to be changed.
	Slices []DispatchedSlice
	// Conflicts between providers that claim one address, sorted.
	Conflicts []AddressConflict
	// MissingPorts are the entries of spec.ports that the Service does not have.
	MissingPorts []string
	// Unsupported says why the Service cannot be shared. Empty: it can.
	Unsupported string
	// Retained are unreachable providers whose endpoints are kept although the
	// policy would by now act on them: most clusters are unreachable, so the
	// fault is likely the hub's own. Sorted.
	Retained []ClusterName
	// RecheckAfter is when time alone changes the plan. Zero: never.
	RecheckAfter time.Duration
	// Hold says why nothing may be changed now. Nil: changes may be made.
	Hold error

	// dispatches is true when consumers should hold slices at all.
	dispatches bool
	options    sliceOptions
	claims     addressClaims
	providers  map[ClusterName]ProviderState
	clusters   []ClusterName
	// unreachable is what is done with endpoints of providers that cannot be reached.
	unreachable networkingv1alpha1.UnreachableProviders
	// lacking are the clusters without EndpointSlices.
	lacking []ClusterName
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
	// Authoritative, UnreachableSince, UnreachableWhy and LacksSlices as in Cluster.
	Authoritative    bool
	UnreachableSince time.Time
	UnreachableWhy   string
	LacksSlices      bool
	// Slices, Endpoints and Ready count what was collected.
	Slices, Endpoints, Ready int

	// withdrawn and notReady are what the policy for unreachable providers does
	// to the slices of this one.
	withdrawn, notReady bool
}

// Provider returns what the plan knows of a selected provider.
func (p *Plan) Provider(name ClusterName) ProviderState { return p.providers[name] }

// NewPlan returns what consumers should hold. The order of the snapshot's lists
// does not matter.
func NewPlan(s Snapshot) *Plan {
	p := &Plan{Service: s.Service, providers: map[ClusterName]ProviderState{}}
	for i := range s.Clusters {
		p.clusters = append(p.clusters, s.Clusters[i].Name)
		if s.Clusters[i].LacksSlices {
			p.lacking = append(p.lacking, s.Clusters[i].Name)
		}
	}
	slices.Sort(p.clusters)
	slices.Sort(p.lacking)
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

	ports, missing, err := newPortFilter(s.MCS.Spec.Ports, s.Template)
	// What is collected can be told all the same.
	p.Hold = err
	p.MissingPorts = missing
	if s.Template != nil && s.Template.Spec.Type == corev1.ServiceTypeExternalName {
		p.Unsupported = "a Service of type ExternalName has no endpoints: it is a DNS alias, which works in every cluster by itself"
	}

	p.options = sliceOptions{mcs: s.MCS, template: s.Template, ports: ports}
	for _, c := range orderedProviders(s.Clusters, selection.Providers) {
		p.addProvider(c)
	}
	p.applyUnreachablePolicy(s)
	p.dispatches = p.Unsupported == "" && slices.Contains(s.MCS.Spec.Types, networkingv1alpha1.ExposureTypeCrossCluster)
	if !p.dispatches {
		p.Slices = nil
	}
	p.Conflicts, p.claims = withholdTakenAddresses(p.Slices)
	slices.SortFunc(p.Slices, func(a, b DispatchedSlice) int {
		return cmp.Or(cmp.Compare(a.Provider, b.Provider), cmp.Compare(a.Source, b.Source))
	})
	for i := range p.Slices {
		d := &p.Slices[i]
		d.Slice.Name = string(DispatchedName(d.Provider, d.Source, p.clusters))
	}
	return p
}

// orderedProviders returns the selected clusters, those that answer before those
// that do not, then by name. Of two that claim one address the first has it.
//
// That a provider is only remembered must not count: after a restart all are, and
// addresses would go to and fro while one member after the other is seen again.
func orderedProviders(clusters []Cluster, selected []ClusterName) []*Cluster {
	var out []*Cluster
	for i := range clusters {
		if _, found := slices.BinarySearch(selected, clusters[i].Name); found {
			out = append(out, &clusters[i])
		}
	}
	slices.SortFunc(out, func(a, b *Cluster) int {
		if a.UnreachableSince.IsZero() != b.UnreachableSince.IsZero() {
			if a.UnreachableSince.IsZero() {
				return -1
			}
			return 1
		}
		return cmp.Compare(a.Name, b.Name)
	})
	return out
}

// addProvider translates the slices of one provider, in the order of their names.
func (p *Plan) addProvider(c *Cluster) {
	state := ProviderState{
		Authoritative:    c.Authoritative,
		UnreachableSince: c.UnreachableSince, UnreachableWhy: c.UnreachableWhy,
		LacksSlices: c.LacksSlices,
	}
	own := slices.SortedFunc(slices.Values(c.Slices), func(a, b *discoveryv1.EndpointSlice) int {
		return cmp.Compare(a.Name, b.Name)
	})
	for _, in := range own {
		if !p.provides(in) {
			continue
		}
		state.Slices++
		state.Endpoints += len(in.Endpoints)
		for i := range in.Endpoints {
			if ready(&in.Endpoints[i]) {
				state.Ready++
			}
		}
		out, ok := translate(in, c.Name, p.options)
		if !ok {
			continue
		}
		p.Slices = append(p.Slices, DispatchedSlice{
			Provider: c.Name, Source: SliceName(in.Name), Slice: out, generation: in.Generation,
		})
	}
	p.providers[c.Name] = state
}

// provides says whether a slice is one of this service and its cluster's own.
// Gathering should have seen to that, but a member must not reach another
// service or namespace by what its slices say, and what a hub put into a cluster
// must never go out again as that cluster's.
func (p *Plan) provides(in *discoveryv1.EndpointSlice) bool {
	return in.Namespace == p.Service.Namespace && in.Labels[discoveryv1.LabelServiceName] == p.Service.Name && !Dispatched(in)
}

// ready says whether callers may use an endpoint. Unset means ready.
func ready(e *discoveryv1.Endpoint) bool {
	return e.Conditions.Ready == nil || *e.Conditions.Ready
}
