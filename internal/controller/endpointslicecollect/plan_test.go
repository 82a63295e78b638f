package endpointslicecollect

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	networkingv1alpha1 "github.com/namesake-io/namesake/api/networking/v1alpha1"
	workv1alpha1 "github.com/namesake-io/namesake/api/work/v1alpha1"
	"github.com/namesake-io/namesake/internal/manifest"
)

// The service of all tests is shop/foo in member a.
var shopFoo = types.NamespacedName{Namespace: "shop", Name: "foo"}

// slice is an own slice of the member with one endpoint.
func slice(name string, edits ...func(*discoveryv1.EndpointSlice)) *discoveryv1.EndpointSlice {
	s := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: name, UID: types.UID("uid-" + name), ResourceVersion: "7", Generation: 1,
			Labels: map[string]string{discoveryv1.LabelServiceName: "foo"},
		},
		AddressType: discoveryv1.AddressTypeIPv4,
		Endpoints:   []discoveryv1.Endpoint{{Addresses: []string{"10.0.0.1"}}},
	}
	for _, edit := range edits {
		edit(s)
	}
	return s
}

// wanted is what is observed when a MultiClusterService wants these slices.
func wanted(slices ...*discoveryv1.EndpointSlice) *state {
	return &state{
		provider: "a", service: shopFoo, slices: slices,
		want: Want{Wanted: true, PermanentID: "id-1"},
	}
}

// remembering is the Work that the plan makes for a slice, changed by edits.
func remembering(t *testing.T, s *discoveryv1.EndpointSlice, edits ...func(*workv1alpha1.Work)) *workv1alpha1.Work {
	t.Helper()
	work, err := newWork(wanted(), s)
	if err != nil {
		t.Fatal(err)
	}
	for _, edit := range edits {
		edit(work)
	}
	return work
}

func owners(list string) func(*workv1alpha1.Work) {
	return func(w *workv1alpha1.Work) { w.Labels[networkingv1alpha1.CollectedByLabel] = list }
}

func called(name string) func(*workv1alpha1.Work) {
	return func(w *workv1alpha1.Work) { w.Name = name }
}

func going(finalizers ...string) func(*workv1alpha1.Work) {
	return func(w *workv1alpha1.Work) {
		w.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
		w.Finalizers = finalizers
	}
}

// holding makes a Work hold something else than the slice.
func holding(raw ...string) func(*workv1alpha1.Work) {
	return func(w *workv1alpha1.Work) {
		w.Spec.Workload.Manifests = nil
		for _, r := range raw {
			m := workv1alpha1.Manifest{}
			m.Raw = []byte(r)
			w.Spec.Workload.Manifests = append(w.Spec.Workload.Manifests, m)
		}
	}
}

// verbs says what a plan does, as a person would.
func verbs(p changes) []string {
	var out []string
	for verb, works := range map[string][]*workv1alpha1.Work{"create": p.Create, "update": p.Update, "delete": p.Delete} {
		for _, w := range works {
			line := verb + " " + w.Name
			if verb != "delete" {
				line += " for " + w.Labels[networkingv1alpha1.CollectedByLabel]
			}
			out = append(out, line)
		}
	}
	slices.Sort(out)
	return out
}

func TestPlan(t *testing.T) {
	name := func(slice string) string {
		return manifest.WorkName(manifest.Identity{Group: "discovery.k8s.io", Kind: "EndpointSlice", Namespace: "shop", Name: slice})
	}
	changed := func(s *discoveryv1.EndpointSlice) {
		s.ResourceVersion, s.Generation = "8", 2
		s.Endpoints = append(s.Endpoints, discoveryv1.Endpoint{Addresses: []string{"10.0.0.2"}})
	}
	const other = `{"apiVersion":"v1","kind":"Service","metadata":{"namespace":"shop","name":"foo"}}`

	for title, tc := range map[string]struct {
		state *state
		works []*workv1alpha1.Work
		want  []string
	}{
		"a new slice is remembered": {
			state: wanted(slice("s1")),
			want:  []string{"create " + name("s1") + " for MultiClusterService"},
		},
		"what is remembered as it is, is left alone": {
			state: wanted(slice("s1")),
			works: []*workv1alpha1.Work{remembering(t, slice("s1"))},
		},
		"a new resourceVersion alone is no change": {
			state: wanted(slice("s1", func(s *discoveryv1.EndpointSlice) { s.ResourceVersion = "99" })),
			works: []*workv1alpha1.Work{remembering(t, slice("s1"))},
		},
		"a changed slice is remembered anew": {
			state: wanted(slice("s1", changed)),
			works: []*workv1alpha1.Work{remembering(t, slice("s1"))},
			want:  []string{"update " + name("s1") + " for MultiClusterService"},
		},
		"only conditions have changed (C4)": {
			state: wanted(slice("s1", func(s *discoveryv1.EndpointSlice) {
				s.ResourceVersion = "8"
				s.Endpoints[0].Conditions.Ready = new(bool)
			})),
			works: []*workv1alpha1.Work{remembering(t, slice("s1"))},
			want:  []string{"update " + name("s1") + " for MultiClusterService"},
		},
		"a slice made anew under its name is another one": {
			state: wanted(slice("s1", func(s *discoveryv1.EndpointSlice) { s.UID = "uid-new" })),
			works: []*workv1alpha1.Work{remembering(t, slice("s1"))},
			want:  []string{"update " + name("s1") + " for MultiClusterService"},
		},
		"a vanished slice is forgotten, others are not (C6)": {
			state: wanted(slice("s2")),
			works: []*workv1alpha1.Work{remembering(t, slice("s1")), remembering(t, slice("s2"))},
			want:  []string{"delete " + name("s1")},
		},
		"nobody wants the service any more (C33)": {
			state: &state{provider: "a", service: shopFoo},
			works: []*workv1alpha1.Work{remembering(t, slice("s1")), remembering(t, slice("s2"))},
			want:  []string{"delete " + name("s1"), "delete " + name("s2")},
		},
		"a wish that cannot be read changes nothing": {
			state: &state{provider: "a", service: shopFoo, want: Want{Hold: true}},
			works: []*workv1alpha1.Work{remembering(t, slice("s1"))},
		},
		"a slice that comes from another service is taken over, Work and all (C15)": {
			state: wanted(slice("s1")),
			works: []*workv1alpha1.Work{remembering(t, slice("s1"), func(w *workv1alpha1.Work) {
				w.Labels[networkingv1alpha1.NameKey] = "bar"
			})},
			want: []string{"update " + name("s1") + " for MultiClusterService"},
		},

		"somebody else collects it already: one Work, two owners, sorted": {
			state: wanted(slice("s1")),
			works: []*workv1alpha1.Work{remembering(t, slice("s1"), owners("ServiceExport"))},
			want:  []string{"update " + name("s1") + " for MultiClusterService.ServiceExport"},
		},
		"both want it: nothing to do": {
			state: wanted(slice("s1")),
			works: []*workv1alpha1.Work{remembering(t, slice("s1"), owners("MultiClusterService.ServiceExport"))},
		},
		"we want it no more, somebody else does": {
			state: &state{provider: "a", service: shopFoo},
			works: []*workv1alpha1.Work{remembering(t, slice("s1"), owners("MultiClusterService.ServiceExport"))},
			want:  []string{"update " + name("s1") + " for ServiceExport"},
		},
		"only somebody else ever wanted it: no write": {
			state: &state{provider: "a", service: shopFoo},
			works: []*workv1alpha1.Work{remembering(t, slice("s1"), owners("ServiceExport"))},
		},

		"Karmada's Work under another name is adopted": {
			state: wanted(slice("s1")),
			works: []*workv1alpha1.Work{remembering(t, slice("s1"), called("s1-5b8f7d"))},
		},
		"Karmada's Work is brought up to date where it stands": {
			state: wanted(slice("s1", changed)),
			works: []*workv1alpha1.Work{remembering(t, slice("s1"), called("s1-5b8f7d"))},
			want:  []string{"update s1-5b8f7d for MultiClusterService"},
		},
		"of two Works for one slice the second goes": {
			state: wanted(slice("s1")),
			works: []*workv1alpha1.Work{remembering(t, slice("s1"), called("z")), remembering(t, slice("s1"), called("b"))},
			want:  []string{"delete z"},
		},
		"of two Works for one slice the one that stays is kept": {
			state: wanted(slice("s1")),
			works: []*workv1alpha1.Work{remembering(t, slice("s1"), called("b"), going()), remembering(t, slice("s1"), called("z"))},
			want:  []string{"delete b"},
		},
		"a Work that is going is waited for": {
			state: wanted(slice("s1")),
			works: []*workv1alpha1.Work{remembering(t, slice("s1"), going("example.com/other"))},
		},
		"a Work that is going, kept by Karmada's finalizer, is let go": {
			state: wanted(slice("s1")),
			works: []*workv1alpha1.Work{remembering(t, slice("s1"), going(workv1alpha1.DispatchFinalizer))},
			want:  []string{"delete " + name("s1")},
		},
		"an empty Work of ours goes": {
			state: wanted(),
			works: []*workv1alpha1.Work{remembering(t, slice("s1"), holding())},
			want:  []string{"delete " + name("s1")},
		},
		"a Work of something else, suspended by a person, is not ours": {
			state: wanted(slice("s1")),
			works: []*workv1alpha1.Work{remembering(t, slice("s1"), called("foo-1"), holding(other))},
			want:  []string{"create " + name("s1") + " for MultiClusterService"},
		},
	} {
		t.Run(title, func(t *testing.T) {
			tc.state.works = tc.works
			before := cloneState(tc.state)
			first, err := plan(tc.state)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, verbs(first)); diff != "" {
				t.Errorf("changes (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(before, cloneState(tc.state)); diff != "" {
				t.Errorf("the plan changed what it reads:\n%s", diff)
			}
			slices.Reverse(tc.state.works)
			slices.Reverse(tc.state.slices)
			second, err := plan(tc.state)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(first, second); diff != "" {
				t.Errorf("planned from the same in another order (-first +second):\n%s", diff)
			}
		})
	}
}

// cloned is a copy of what a plan reads.
type cloned struct {
	Slices []*discoveryv1.EndpointSlice
	Works  []*workv1alpha1.Work
}

func cloneState(st *state) (out cloned) {
	for _, s := range st.slices {
		out.Slices = append(out.Slices, s.DeepCopy())
	}
	for _, w := range st.works {
		out.Works = append(out.Works, w.DeepCopy())
	}
	return out
}

// A collected Work is suspended, labelled and findable, and gives the slice back
// as it was.
func TestRememberedSlice(t *testing.T) {
	in := slice("s1", func(s *discoveryv1.EndpointSlice) {
		s.Annotations = map[string]string{"example.com/note": "kept"}
		s.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "not remembered"}}
	})
	p, err := plan(wanted(in))
	if err != nil {
		t.Fatal(err)
	}
	work := p.Create[0]
	if work.Namespace != "karmada-es-a" || !manifest.IsCollected(work) {
		t.Errorf("Work in %s, collected %v: want karmada-es-a and suspended", work.Namespace, manifest.IsCollected(work))
	}
	wantLabels := map[string]string{
		networkingv1alpha1.CollectedByLabel: "MultiClusterService", networkingv1alpha1.NameKey: "foo",
		networkingv1alpha1.NamespaceKey: "shop", networkingv1alpha1.PermanentIDLabel: "id-1",
	}
	if diff := cmp.Diff(wantLabels, work.Labels); diff != "" {
		t.Errorf("labels (-want +got):\n%s", diff)
	}
	out, err := manifest.Collected(work)
	if err != nil {
		t.Fatal(err)
	}
	want := in.DeepCopy()
	want.ManagedFields = nil
	want.TypeMeta = metav1.TypeMeta{APIVersion: "discovery.k8s.io/v1", Kind: "EndpointSlice"}
	if diff := cmp.Diff([]*discoveryv1.EndpointSlice{want}, out); diff != "" {
		t.Errorf("remembered (-want +got):\n%s", diff)
	}
}

// A manifest that cannot be read stops the plan: what it holds is not known.
func TestUnreadableWork(t *testing.T) {
	st := wanted(slice("s1"))
	st.works = []*workv1alpha1.Work{remembering(t, slice("s1"), holding(`{"kind":`))}
	if _, err := plan(st); err == nil || !strings.Contains(err.Error(), "reading manifest 0") {
		t.Errorf("error %v, want one on manifest 0", err)
	}
}
