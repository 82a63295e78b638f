package endpointslicecollect

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/namesake-io/namesake/api/cluster/v1alpha1"
	networkingv1alpha1 "github.com/namesake-io/namesake/api/networking/v1alpha1"
	workv1alpha1 "github.com/namesake-io/namesake/api/work/v1alpha1"
	"github.com/namesake-io/namesake/internal/manifest"
)

// owner is who wants the slices, in the Works' label of interested owners.
const owner = networkingv1alpha1.ClaimedByMultiClusterService

// changes make the hub remember what the provider has.
type changes struct {
	Create, Update, Delete []*workv1alpha1.Work
}

// plan decides: one Work per slice, and none for a slice that is gone or that
// nobody wants any more.
func plan(st *state) (changes, error) {
	var out changes
	if st.want.Hold {
		return out, nil
	}
	held, spare, err := bySlice(st.works)
	if err != nil {
		return out, err
	}
	sorted := slices.SortedFunc(slices.Values(st.slices), func(a, b *discoveryv1.EndpointSlice) int {
		return cmp.Compare(a.Name, b.Name)
	})
	for _, slice := range sorted {
		want, err := newWork(st, slice)
		if err != nil {
			return out, err
		}
		have, found := held[identityOf(slice)]
		delete(held, identityOf(slice))
		switch {
		case !found:
			out.Create = append(out.Create, want)
		case have.work.DeletionTimestamp != nil:
			// It comes back once it has gone; nothing but Karmada's finalizer keeps it.
			if slices.Contains(have.work.Finalizers, workv1alpha1.DispatchFinalizer) {
				out.Delete = append(out.Delete, have.work)
			}
		case !remembers(have, slice, want):
			updated := have.work.DeepCopy()
			updated.Spec = want.Spec
			updated.Labels = mergeLabels(have.work.Labels, want.Labels)
			out.Update = append(out.Update, updated)
		}
	}
	for _, h := range held {
		spare = append(spare, h.work)
	}
	for _, work := range spare {
		release(&out, work)
	}
	slices.SortFunc(out.Update, byName)
	slices.SortFunc(out.Delete, byName)
	return out, nil
}

// heldSlice is a slice as a Work remembers it.
type heldSlice struct {
	work  *workv1alpha1.Work
	slice *discoveryv1.EndpointSlice
}

// bySlice sorts Works by the slice that they hold. spare are second Works for one
// slice, and those that hold none or more than one. Works that hold anything else
// were suspended by somebody for another reason, and are nobody's memory.
func bySlice(works []*workv1alpha1.Work) (held map[manifest.Identity]heldSlice, spare []*workv1alpha1.Work, err error) {
	held = map[manifest.Identity]heldSlice{}
	for _, work := range slices.SortedFunc(slices.Values(works), byName) {
		collected, err := manifest.Collected(work)
		if err != nil {
			return nil, nil, err
		}
		if len(collected) != len(work.Spec.Workload.Manifests) {
			continue
		}
		if len(collected) != 1 {
			spare = append(spare, work)
			continue
		}
		id := identityOf(collected[0])
		if _, second := held[id]; second {
			spare = append(spare, work)
			continue
		}
		held[id] = heldSlice{work: work, slice: collected[0]}
	}
	return held, spare, nil
}

// release takes our interest off a Work, and removes it when nobody else has any.
func release(out *changes, work *workv1alpha1.Work) {
	all := strings.Split(work.Labels[networkingv1alpha1.CollectedByLabel], ".")
	owners := without(all, owner)
	switch {
	case len(owners) == 0:
		out.Delete = append(out.Delete, work)
		return
	case !slices.Contains(all, owner):
		return // others want it, and we are not among them
	}
	updated := work.DeepCopy()
	updated.Labels[networkingv1alpha1.CollectedByLabel] = strings.Join(owners, ".")
	out.Update = append(out.Update, updated)
}

// newWork returns the Work that remembers a slice.
func newWork(st *state, slice *discoveryv1.EndpointSlice) (*workv1alpha1.Work, error) {
	remembered, err := manifest.Encode(&discoveryv1.EndpointSlice{
		TypeMeta: metav1.TypeMeta{APIVersion: discoveryv1.SchemeGroupVersion.String(), Kind: "EndpointSlice"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: slice.Namespace, Name: slice.Name, UID: slice.UID,
			ResourceVersion: slice.ResourceVersion, Generation: slice.Generation,
			Labels: slice.Labels, Annotations: slice.Annotations,
		},
		AddressType: slice.AddressType, Endpoints: slice.Endpoints, Ports: slice.Ports,
	})
	if err != nil {
		return nil, fmt.Errorf("remembering slice %s: %w", slice.Name, err)
	}
	suspended := true
	labels := map[string]string{
		networkingv1alpha1.CollectedByLabel: owner,
		networkingv1alpha1.NameKey:          st.service.Name,
		networkingv1alpha1.NamespaceKey:     st.service.Namespace,
	}
	if id := st.want.PermanentID; id != "" {
		labels[networkingv1alpha1.PermanentIDLabel] = id
	}
	return &workv1alpha1.Work{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: clusterv1alpha1.ExecutionNamespace(string(st.provider)),
			Name:      manifest.WorkName(identityOf(slice)),
			Labels:    labels,
		},
		Spec: workv1alpha1.WorkSpec{
			Workload:           workv1alpha1.WorkloadTemplate{Manifests: []workv1alpha1.Manifest{remembered}},
			SuspendDispatching: &suspended,
		},
	}, nil
}

// remembers says that a Work holds a slice as it is now, for those who want it.
func remembers(have heldSlice, slice *discoveryv1.EndpointSlice, want *workv1alpha1.Work) bool {
	if !maps.Equal(have.work.Labels, mergeLabels(have.work.Labels, want.Labels)) {
		return false
	}
	old := have.slice
	if old.UID == slice.UID && old.ResourceVersion == slice.ResourceVersion {
		return true
	}
	return old.UID == slice.UID && old.Generation == slice.Generation && old.AddressType == slice.AddressType &&
		equality.Semantic.DeepEqual(old.Labels, slice.Labels) &&
		equality.Semantic.DeepEqual(old.Annotations, slice.Annotations) &&
		equality.Semantic.DeepEqual(old.Endpoints, slice.Endpoints) &&
		equality.Semantic.DeepEqual(old.Ports, slice.Ports)
}

// mergeLabels returns labels with the wanted ones set, and us among the owners.
func mergeLabels(have, want map[string]string) map[string]string {
	out := maps.Clone(have)
	if out == nil {
		out = map[string]string{}
	}
	maps.Copy(out, want)
	owners := append(without(strings.Split(have[networkingv1alpha1.CollectedByLabel], "."), owner), owner)
	slices.Sort(owners)
	out[networkingv1alpha1.CollectedByLabel] = strings.Join(owners, ".")
	return out
}

// without returns the non-empty items that are not the given one.
func without(items []string, item string) []string {
	return slices.DeleteFunc(slices.Clone(items), func(s string) bool { return s == "" || s == item })
}

// identityOf returns which object a slice is.
func identityOf(slice *discoveryv1.EndpointSlice) manifest.Identity {
	return manifest.Identity{Group: discoveryv1.GroupName, Kind: "EndpointSlice", Namespace: slice.Namespace, Name: slice.Name}
}

// byName orders Works, those that stay first.
func byName(a, b *workv1alpha1.Work) int {
	return cmp.Or(cmp.Compare(goes(a), goes(b)), cmp.Compare(a.Name, b.Name))
}

// goes is 1 for a Work that is being deleted.
func goes(work *workv1alpha1.Work) int {
	if work.DeletionTimestamp != nil {
		return 1
	}
	return 0
}
