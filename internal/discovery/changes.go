package discovery

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
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

// Changes make a consumer hold what it should. They are made in this order:
// creations, then updates, then deletions. An update may reuse the name of a
// slice that a creation puts under a new one, and a deletion may remove it.
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
	if !p.Selection.Consumes(consumer) {
		return nil
	}
	localFirst := p.prefersLocal(consumer)
	wanted := make([]DispatchedSlice, 0, len(p.Slices))
	for _, d := range p.Slices {
		if d.Provider != consumer {
			d.Slice = p.claims.without(consumer, d.Slice)
			if localFirst {
				d.Slice = asSecondChoice(d.Slice)
			}
			wanted = append(wanted, d)
		}
	}
	return wanted
}

// origin is what a standing slice says of where it comes from.
type origin struct {
	provider ClusterName
	name     SliceName
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
	wanted := p.Wanted(consumer)
	settled := make(map[SliceName]bool, len(wanted))
	for _, d := range wanted {
		name := freeName(d, standing.Native)
		settled[name] = true
		have, stands := byName[name]
		switch {
		case !stands:
			created := d.Slice.DeepCopy()
			created.Name = string(name)
			changes.Create = append(changes.Create, created)
		case p.outdated(d, have):
			p.retain(&changes, have, d.Provider)
		case have.AddressType != d.Slice.AddressType:
			// Immutable. It is created again once this deletion is seen.
			changes.Delete = append(changes.Delete, Deletion{Slice: have})
		case !Equal(d.Slice, have):
			changes.Update = append(changes.Update, updated(have, d.Slice))
		}
	}

	var replacedBy map[origin]SliceName
	for _, have := range standing.Dispatched {
		name := SliceName(have.Name)
		if settled[name] || p.belongsToAnother(have) {
			continue
		}
		if replacedBy == nil {
			replacedBy = replacements(wanted, standing.Native)
		}
		after, replaced := replacedBy[origin{providerOf(have), name}]
		if !replaced && p.mayStillExist(consumer, have) {
			p.retain(&changes, have, providerOf(have))
			continue
		}
		changes.Delete = append(changes.Delete, Deletion{Slice: have, After: after})
	}
	slices.SortFunc(changes.Update, byObjectName)
	slices.SortFunc(changes.Delete, func(a, b Deletion) int { return byObjectName(a.Slice, b.Slice) })
	return changes
}

func byObjectName(a, b *discoveryv1.EndpointSlice) int { return cmp.Compare(a.Name, b.Name) }

// freeName is the slice's name in a consumer that may have a slice of its own of
// that name.
func freeName(d DispatchedSlice, native func(SliceName) bool) SliceName {
	name := SliceName(d.Slice.Name)
	for attempt := 0; native != nil && native(name); attempt++ {
		name = hashedName(d.Provider, d.Source, attempt)
	}
	return name
}

// replacements says under which name each slice now goes that may have had
// another one before clusters came or went.
func replacements(wanted []DispatchedSlice, native func(SliceName) bool) map[origin]SliceName {
	out := make(map[origin]SliceName, 2*len(wanted))
	for _, d := range wanted {
		name := freeName(d, native)
		for _, earlier := range []SliceName{
			SliceName(string(d.Provider) + "-" + string(d.Source)),
			SliceName(d.Slice.Name),
			hashedName(d.Provider, d.Source, 0),
		} {
			if earlier != name {
				out[origin{d.Provider, earlier}] = name
			}
		}
	}
	return out
}

// updated returns the standing object with the wanted content. What others have
// annotated stays.
func updated(have, want *discoveryv1.EndpointSlice) *discoveryv1.EndpointSlice {
	out := want.DeepCopy()
	out.ObjectMeta = *have.ObjectMeta.DeepCopy()
	// The server keeps its own account, and a cache may hold less of it.
	out.ManagedFields = nil
	out.Labels = maps.Clone(want.Labels)
	if out.Annotations == nil {
		out.Annotations = map[string]string{}
	}
	if staleTrigger(want, have) {
		delete(out.Annotations, corev1.EndpointsLastChangeTriggerTime)
	}
	maps.Copy(out.Annotations, want.Annotations)
	return out
}

// providerOf returns what a standing slice says of its provider. Empty: it says
// nothing.
func providerOf(have *discoveryv1.EndpointSlice) ClusterName {
	return ClusterName(have.Annotations[networkingv1alpha1.ProvisionClusterAnnotation])
}

// belongsToAnother says that a slice which only bears a name of this plan is
// dispatched for another service.
func (p *Plan) belongsToAnother(have *discoveryv1.EndpointSlice) bool {
	service := have.Labels[discoveryv1.LabelServiceName]
	return service != "" && service != p.Service.Name
}

// outdated says that the hub may remember less of a slice than stands already:
// its provider cannot be asked now, and the standing slice is of a later
// generation, or of another address type, so that one of the two was made anew
// and generations mean nothing.
func (p *Plan) outdated(d DispatchedSlice, have *discoveryv1.EndpointSlice) bool {
	if p.providers[d.Provider].Authoritative || providerOf(have) != d.Provider {
		return false
	}
	if have.AddressType != d.Slice.AddressType {
		return true
	}
	generation, err := strconv.ParseInt(have.Annotations[networkingv1alpha1.SliceGenerationAnnotation], 10, 64)
	return err == nil && generation > d.generation
}

// mayStillExist says that a slice which is not in the plan may all the same
// exist in its provider: the provider is wanted, but it cannot be asked now, and
// that the hub remembers no such slice proves nothing.
func (p *Plan) mayStillExist(consumer ClusterName, have *discoveryv1.EndpointSlice) bool {
	if !p.dispatches || !p.Selection.Consumes(consumer) {
		return false
	}
	provider := providerOf(have)
	for name, state := range p.providers {
		// The policy is the intent that removal needs.
		if state.Authoritative || state.withdrawn || name == consumer {
			continue
		}
		if provider == name || provider == "" && strings.HasPrefix(have.Name, string(name)+"-") {
			return true
		}
	}
	return false
}

// retain keeps a standing slice of a provider that cannot be asked now, which
// knows better than the hub's memory what is in it. All that does not depend on
// the provider still holds: marks, exposed ports, and the policy for unreachable
// providers.
func (p *Plan) retain(changes *Changes, have *discoveryv1.EndpointSlice, provider ClusterName) {
	if provider == "" || p.belongsToAnother(have) {
		return
	}
	want, exposed := translate(have, provider, p.options)
	if !exposed {
		changes.Delete = append(changes.Delete, Deletion{Slice: have})
		return
	}
	// The generation is the provider's, not that of the standing object.
	delete(want.Annotations, networkingv1alpha1.SliceGenerationAnnotation)
	if p.providers[provider].notReady {
		markNotReady(want)
	}
	if !Equal(want, have) {
		changes.Update = append(changes.Update, updated(have, want))
	}
}
