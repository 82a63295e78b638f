package discovery

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"

	discoveryv1 "k8s.io/api/discovery/v1"

	networkingv1alpha1 "github.com/namesake-io/namesake/api/networking/v1alpha1"
)

// Standing is what a consumer holds now, as far as one service is concerned.
type Standing struct {
	// Dispatched are the slices that a hub put there: those labelled with the
	// service, and those that bear the name of a slice of the plan.
	Dispatched []*discoveryv1.EndpointSlice
	// Native says whether a slice of the consumer's own has this name, in the
	// service's namespace.
	Native func(SliceName) bool
}

// Changes make a consumer hold what it should. Creations and updates come before
// deletions.
type Changes struct {
	Create []*discoveryv1.EndpointSlice
	Update []*discoveryv1.EndpointSlice
	Delete []Deletion
}

// Deletion removes one standing slice.
type Deletion struct {
	Slice *discoveryv1.EndpointSlice
	// After names the slice that takes its place under another name and must be
	// accepted first. Empty: nothing does.
	After SliceName
}

// Empty says that the consumer holds what it should.
func (c Changes) Empty() bool {
	return len(c.Create) == 0 && len(c.Update) == 0 && len(c.Delete) == 0
}

// Wanted returns the slices that a consumer should hold, sorted by provider and
// name: all but its own. None for a cluster that is no consumer.
func (p *Plan) Wanted(consumer ClusterName) []DispatchedSlice {
	if _, selected := slices.BinarySearch(p.Selection.Consumers, consumer); !selected {
		return nil
	}
	wanted := make([]DispatchedSlice, 0, len(p.Slices))
	for _, d := range p.Slices {
		if d.Provider != consumer {
			wanted = append(wanted, d)
		}
	}
	return wanted
}

// For returns the changes that make a consumer hold what it should. A cluster
// that is no consumer should hold nothing. Objects in Create and Update are
// copies that the caller may change.
func (p *Plan) For(consumer ClusterName, standing Standing) Changes {
	if p.Hold != nil {
		return Changes{}
	}
	byName := make(map[SliceName]*discoveryv1.EndpointSlice, len(standing.Dispatched))
	for _, s := range standing.Dispatched {
		byName[SliceName(s.Name)] = s
	}

	var changes Changes
	kept := map[SliceName]bool{}
	replacedBy := map[SliceName]SliceName{}
	for _, d := range p.Wanted(consumer) {
		name := freeName(d, standing.Native)
		kept[name] = true
		for _, alias := range aliases(d) {
			if alias != name {
				replacedBy[alias] = name
			}
		}
		want := d.Slice
		have, stands := byName[name]
		switch {
		case !stands:
			created := want.DeepCopy()
			created.Name = string(name)
			changes.Create = append(changes.Create, created)
		case have.AddressType != want.AddressType:
			// Immutable. It is created again once this deletion is seen.
			changes.Delete = append(changes.Delete, Deletion{Slice: have})
		case !Equal(want, have) && !p.outdated(d, have):
			changes.Update = append(changes.Update, updated(have, want))
		}
	}

	for _, have := range standing.Dispatched {
		name := SliceName(have.Name)
		if kept[name] || p.mayStillExist(consumer, have) {
			continue
		}
		changes.Delete = append(changes.Delete, Deletion{Slice: have, After: replacedBy[name]})
	}
	slices.SortFunc(changes.Delete, func(a, b Deletion) int { return cmp.Compare(a.Slice.Name, b.Slice.Name) })
	return changes
}

// freeName is the slice's name in a consumer that may have a slice of its own of
// that name.
func freeName(d DispatchedSlice, native func(SliceName) bool) SliceName {
	name := SliceName(d.Slice.Name)
	for attempt := 0; native != nil && native(name); attempt++ {
		name = hashedName(d.Provider, d.Source, attempt)
	}
	return name
}

// aliases are the names that the slice may have had before clusters came or went.
func aliases(d DispatchedSlice) []SliceName {
	return []SliceName{
		SliceName(string(d.Provider) + "-" + string(d.Source)),
		SliceName(d.Slice.Name),
		hashedName(d.Provider, d.Source, 0),
	}
}

// updated returns the standing object with the wanted content. What others have
// annotated stays.
func updated(have, want *discoveryv1.EndpointSlice) *discoveryv1.EndpointSlice {
	out := want.DeepCopy()
	out.ObjectMeta = *have.ObjectMeta.DeepCopy()
	out.Labels = maps.Clone(want.Labels)
	if out.Annotations == nil {
		out.Annotations = map[string]string{}
	}
	maps.Copy(out.Annotations, want.Annotations)
	return out
}

// outdated says that the standing slice is newer than what the hub remembers of
// a provider that it cannot ask now.
func (p *Plan) outdated(d DispatchedSlice, have *discoveryv1.EndpointSlice) bool {
	if p.providers[d.Provider].Authoritative || have.Labels[discoveryv1.LabelServiceName] != p.Service.Name {
		return false
	}
	generation, err := strconv.ParseInt(have.Annotations[networkingv1alpha1.SliceGenerationAnnotation], 10, 64)
	return err == nil && generation > d.generation
}

// mayStillExist says that a slice which is not in the plan may all the same
// exist in its provider: the provider is wanted, but it cannot be asked now, and
// that the hub remembers no such slice proves nothing.
func (p *Plan) mayStillExist(consumer ClusterName, have *discoveryv1.EndpointSlice) bool {
	if !p.dispatches {
		return false
	}
	if _, selected := slices.BinarySearch(p.Selection.Consumers, consumer); !selected {
		return false
	}
	provider, marked := have.Annotations[networkingv1alpha1.ProvisionClusterAnnotation]
	for name, state := range p.providers {
		if state.Authoritative || name == consumer {
			continue
		}
		if provider == string(name) || !marked && strings.HasPrefix(have.Name, string(name)+"-") {
			return true
		}
	}
	return false
}
