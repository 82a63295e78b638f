package pull

import (
	"fmt"
	"maps"
	"slices"

	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	clusterv1alpha1 "github.com/namesake-io/namesake/api/cluster/v1alpha1"
	networkingv1alpha1 "github.com/namesake-io/namesake/api/networking/v1alpha1"
	workv1alpha1 "github.com/namesake-io/namesake/api/work/v1alpha1"
	"github.com/namesake-io/namesake/internal/discovery"
	"github.com/namesake-io/namesake/internal/manifest"
)

// maxDelivery is how many bytes of slices a delivery holds at most, but for a
// single slice that is larger. With its metadata it stays below 512 KiB.
const maxDelivery = 480 << 10

// changes make a member's orders and deliveries what the plan asks for.
type changes struct {
	// Create and Update in this order, and within Update those that gain slices
	// first: a slice that moves to another delivery is at no time in none.
	Create, Update, Delete []*workv1alpha1.Work
	// Outcome is how the consumer stands to the plan. Nil: it is on its way.
	Outcome *discovery.Outcome
}

// plan decides for one member.
func plan(st *state, m *memberState) (changes, error) {
	var out changes
	if !m.agent {
		// Whatever it was, it has no agent now.
		if m.order != nil {
			out.Delete = append(out.Delete, m.order)
		}
		for _, d := range m.deliveries {
			out.Delete = append(out.Delete, d.work)
		}
		return out, nil
	}
	planOrder(&out, st, m)
	waits, err := planDeliveries(&out, st, m)
	if err != nil {
		return out, err
	}
	if st.plan.Selection.Consumes(m.name) {
		moves := waits || len(out.Create)+len(out.Update)+len(out.Delete) > 0
		out.Outcome = outcome(m, moves)
	}
	return out, nil
}

// planOrder has the member's slices collected while it is a provider.
func planOrder(out *changes, st *state, m *memberState) {
	provides := st.plan.Selection.Provides(m.name)
	switch {
	case provides && m.order == nil && !slices.Contains(m.going, orderName(st.service)):
		suspended := true
		out.Create = append(out.Create, &workv1alpha1.Work{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: clusterv1alpha1.ExecutionNamespace(string(m.name)), Name: orderName(st.service),
				Labels: labels(st, networkingv1alpha1.PullOrder),
			},
			Spec: workv1alpha1.WorkSpec{SuspendDispatching: &suspended},
		})
	case provides && m.order != nil && st.permanentID != "" && m.order.Labels[networkingv1alpha1.PermanentIDLabel] != st.permanentID:
		updated := m.order.DeepCopy()
		maps.Copy(updated.Labels, labels(st, networkingv1alpha1.PullOrder))
		out.Update = append(out.Update, updated)
	case !provides && m.order != nil && st.plan.Hold == nil:
		out.Delete = append(out.Delete, m.order)
	}
}

// packed is a delivery as it is to be.
type packed struct {
	work *workv1alpha1.Work // nil: to be made
	name string
	// slices by name, and how many bytes they come to.
	slices map[string]*discoveryv1.EndpointSlice
	size   map[string]int
	bytes  int
	// gains and changes say what happens to it.
	gains, changed bool
}

// put adds or replaces a slice.
func (p *packed) put(slice *discoveryv1.EndpointSlice, bytes int) {
	p.bytes += bytes - p.size[slice.Name]
	p.slices[slice.Name], p.size[slice.Name] = slice, bytes
}

// drop takes a slice out.
func (p *packed) drop(name string) {
	p.bytes -= p.size[name]
	delete(p.slices, name)
	delete(p.size, name)
	p.changed = true
}

// planDeliveries packs the slices that the member shall hold. waits is true when
// a slice stays for now, until the one that replaces it is known to stand.
func planDeliveries(out *changes, st *state, m *memberState) (waits bool, err error) {
	packs, standing, err := unpack(m)
	if err != nil {
		return false, err
	}
	wanted := st.plan.For(m.name, discovery.Standing{Dispatched: standing})
	var loose []*discoveryv1.EndpointSlice
	for _, slice := range wanted.Update {
		p := packOf(packs, slice.Name)
		bytes, err := sizeOf(slice)
		if err != nil {
			return false, err
		}
		p.put(slice, bytes)
		p.changed = true
	}
	for _, deletion := range wanted.Delete {
		if deletion.After != "" && !stands(m, string(deletion.After)) {
			waits = true
			continue
		}
		packOf(packs, deletion.Slice.Name).drop(deletion.Slice.Name)
	}
	for _, p := range packs {
		loose = append(loose, p.shed()...)
	}
	loose = append(loose, wanted.Create...)
	if packs, err = place(st, m, packs, loose); err != nil {
		return false, err
	}
	return waits, write(out, st, m, packs)
}

// unpack returns the member's deliveries and the slices in them, each once.
func unpack(m *memberState) (packs []*packed, standing []*discoveryv1.EndpointSlice, err error) {
	seen := map[string]bool{}
	for _, d := range m.deliveries {
		p := &packed{work: d.work, name: d.work.Name, slices: map[string]*discoveryv1.EndpointSlice{}, size: map[string]int{}}
		whole := len(d.slices) == len(d.work.Spec.Workload.Manifests)
		p.changed = !whole
		for i, slice := range d.slices {
			if seen[slice.Name] {
				p.changed = true
				continue
			}
			seen[slice.Name] = true
			if whole {
				p.put(slice, len(d.work.Spec.Workload.Manifests[i].Raw))
			} else if bytes, err := sizeOf(slice); err != nil {
				return nil, nil, err
			} else {
				p.put(slice, bytes)
			}
			standing = append(standing, slice)
		}
		packs = append(packs, p)
	}
	return packs, standing, nil
}

// packOf returns the delivery that holds a slice.
func packOf(packs []*packed, name string) *packed {
	at := slices.IndexFunc(packs, func(p *packed) bool { return p.slices[name] != nil })
	return packs[at] // what stands came out of one
}

// shed returns the slices that a delivery which has grown too large cannot keep.
func (p *packed) shed() []*discoveryv1.EndpointSlice {
	var out []*discoveryv1.EndpointSlice
	names := slices.Sorted(maps.Keys(p.slices))
	for len(names) > 1 && p.bytes > maxDelivery {
		last := names[len(names)-1]
		names = names[:len(names)-1]
		out = append(out, p.slices[last])
		p.drop(last)
	}
	return out
}

// place puts loose slices where there is room.
func place(st *state, m *memberState, packs []*packed, loose []*discoveryv1.EndpointSlice) ([]*packed, error) {
	var made []string
	for _, slice := range loose {
		bytes, err := sizeOf(slice)
		if err != nil {
			return nil, err
		}
		at := slices.IndexFunc(packs, func(p *packed) bool { return p.bytes+bytes <= maxDelivery && len(p.slices) > 0 || p.bytes == 0 })
		if at < 0 {
			at = len(packs)
			packs = append(packs, &packed{
				name: m.freeName(st.service, made), slices: map[string]*discoveryv1.EndpointSlice{}, size: map[string]int{},
			})
			made = append(made, packs[at].name)
		}
		packs[at].put(slice, bytes)
		packs[at].gains, packs[at].changed = true, true
	}
	return packs, nil
}

// write turns packed deliveries into what is to be written.
func write(out *changes, st *state, m *memberState, packs []*packed) error {
	var shrinking []*workv1alpha1.Work
	for _, p := range packs {
		if len(p.slices) == 0 {
			out.Delete = append(out.Delete, p.work)
			continue
		}
		relabelled := p.work != nil && st.permanentID != "" && p.work.Labels[networkingv1alpha1.PermanentIDLabel] != st.permanentID
		if !p.changed && !relabelled {
			continue
		}
		var manifests []workv1alpha1.Manifest
		for _, name := range slices.Sorted(maps.Keys(p.slices)) {
			encoded, err := encode(p.slices[name])
			if err != nil {
				return err
			}
			manifests = append(manifests, encoded)
		}
		if p.work == nil {
			out.Create = append(out.Create, &workv1alpha1.Work{
				ObjectMeta: metav1.ObjectMeta{
					Namespace: clusterv1alpha1.ExecutionNamespace(string(m.name)), Name: p.name,
					Labels: labels(st, networkingv1alpha1.PullDelivery),
					// From the start: what a delivery puts into a member must not outlive it.
					Finalizers: []string{workv1alpha1.ExecutionFinalizer},
				},
				Spec: workv1alpha1.WorkSpec{Workload: workv1alpha1.WorkloadTemplate{Manifests: manifests}},
			})
			continue
		}
		updated := p.work.DeepCopy()
		updated.Spec.Workload.Manifests = manifests
		maps.Copy(updated.Labels, labels(st, networkingv1alpha1.PullDelivery))
		if p.gains {
			out.Update = append(out.Update, updated)
		} else {
			shrinking = append(shrinking, updated)
		}
	}
	out.Update = append(out.Update, shrinking...)
	return nil
}

// outcome says how a consumer stands to the plan. moves: its deliveries change.
func outcome(m *memberState, moves bool) *discovery.Outcome {
	arrived := !moves && len(m.going) == 0
	for _, d := range m.deliveries {
		said := applied(d.work)
		switch {
		case said == nil:
			arrived = false
		case said.Status != metav1.ConditionTrue && !moves:
			return &discovery.Outcome{Reason: reasonOf(said.Reason), Message: said.Message}
		}
	}
	switch {
	case arrived:
		return &discovery.Outcome{}
	case m.silent:
		return &discovery.Outcome{
			Reason:  networkingv1alpha1.ReasonClusterUnreachable,
			Message: "its agent does not answer; what stands there stays, and is brought up to date when it is back",
		}
	}
	return nil
}

// reasonOf returns an agent's reason, if it is one that is told.
func reasonOf(said string) string {
	switch said {
	case networkingv1alpha1.ReasonNamespaceNotFound, networkingv1alpha1.ReasonAPIIncompatible, networkingv1alpha1.ReasonClusterUnreachable:
		return said
	}
	return networkingv1alpha1.ReasonWriteFailed
}

// applied returns what the agent says of a delivery as it is now, nil when it has
// not said anything yet.
func applied(work *workv1alpha1.Work) *metav1.Condition {
	said := meta.FindStatusCondition(work.Status.Conditions, workv1alpha1.ConditionApplied)
	if said == nil || said.ObservedGeneration != work.Generation {
		return nil
	}
	return said
}

// stands says that the agent has said of a slice that it stands in the member.
func stands(m *memberState, slice string) bool {
	for _, d := range m.deliveries {
		for _, s := range d.slices {
			if s.Name == slice {
				said := applied(d.work)
				return said != nil && said.Status == metav1.ConditionTrue
			}
		}
	}
	return false
}

// encode returns a slice as a manifest.
func encode(slice *discoveryv1.EndpointSlice) (workv1alpha1.Manifest, error) {
	out := slice.DeepCopy()
	out.TypeMeta = metav1.TypeMeta{APIVersion: discoveryv1.SchemeGroupVersion.String(), Kind: "EndpointSlice"}
	encoded, err := manifest.Encode(out)
	if err != nil {
		return encoded, fmt.Errorf("delivering slice %s: %w", slice.Name, err)
	}
	return encoded, nil
}

// sizeOf returns how many bytes a slice takes.
func sizeOf(slice *discoveryv1.EndpointSlice) (int, error) {
	encoded, err := encode(slice)
	return len(encoded.Raw), err
}

// labels of an order or a delivery.
func labels(st *state, role string) map[string]string {
	out := map[string]string{
		networkingv1alpha1.PullLabel: role,
		networkingv1alpha1.NameKey:   st.service.Name, networkingv1alpha1.NamespaceKey: st.service.Namespace,
	}
	if st.permanentID != "" {
		out[networkingv1alpha1.PermanentIDLabel] = st.permanentID
	}
	return out
}

// orderName is the name of the order for a service.
func orderName(service types.NamespacedName) string {
	return manifest.WorkName(manifest.Identity{Kind: "EndpointSliceOrder", Namespace: service.Namespace, Name: service.Name})
}

// freeName is the name of the next delivery of a service.
func (m *memberState) freeName(service types.NamespacedName, made []string) string {
	base := manifest.WorkName(manifest.Identity{Kind: "EndpointSliceDelivery", Namespace: service.Namespace, Name: service.Name})
	for n := 0; ; n++ {
		name := fmt.Sprintf("%s-%d", base, n)
		taken := slices.Contains(m.going, name) || slices.Contains(made, name) ||
			slices.ContainsFunc(m.deliveries, func(d delivery) bool { return d.work.Name == name })
		if !taken {
			return name
		}
	}
}
