package multiclusterservice

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	networkingv1alpha1 "github.com/namesake-io/namesake/api/networking/v1alpha1"
	workv1alpha2 "github.com/namesake-io/namesake/api/work/v1alpha2"
	"github.com/namesake-io/namesake/internal/discovery"
)

const permanentID = "id-1"

// stateEdit changes what is observed.
type stateEdit func(*state)

// observed is a prepared object over members a and b, with its marked Service and
// no binding yet, changed by edits.
func observed(edits ...stateEdit) *state {
	st := &state{
		key: types.NamespacedName{Namespace: "shop", Name: "foo"}, permanentID: permanentID,
		mcs: &networkingv1alpha1.MultiClusterService{ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: "foo", Generation: 4,
			Finalizers: []string{networkingv1alpha1.Finalizer},
			Labels:     map[string]string{networkingv1alpha1.PermanentIDLabel: permanentID},
		}},
		template:  &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "foo", UID: "hub-uid"}},
		selection: discovery.Selection{Providers: []discovery.ClusterName{"a"}, Consumers: []discovery.ClusterName{"a", "b"}},
	}
	st.template.Labels, st.template.Annotations = serviceLabels(st), claimAnnotations(st)
	for _, edit := range edits {
		edit(st)
	}
	return st
}

// withBinding is the binding that the plan makes, changed by edits.
func withBinding(edits ...func(*workv1alpha2.ResourceBinding)) stateEdit {
	return func(st *state) {
		st.binding = newBinding(observed())
		for _, edit := range edits {
			edit(st.binding)
		}
	}
}

func clusters(names ...string) (out []workv1alpha2.TargetCluster) {
	for _, name := range names {
		out = append(out, workv1alpha2.TargetCluster{Name: name})
	}
	return out
}

func foreign(rb *workv1alpha2.ResourceBinding) {
	rb.Labels = nil
	rb.Spec.Clusters = clusters("x")
}

func claimedBy(name string, by ...string) func(*workv1alpha2.ResourceBinding) {
	return func(rb *workv1alpha2.ResourceBinding) {
		rb.Spec.RequiredBy = append(rb.Spec.RequiredBy, workv1alpha2.BindingSnapshot{Namespace: "shop", Name: name, Clusters: clusters(by...)})
	}
}

func bindingGoing(rb *workv1alpha2.ResourceBinding) {
	rb.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
}

func withoutTemplate(st *state) { st.template = nil }

func externalName(st *state) { st.template.Spec.Type = corev1.ServiceTypeExternalName }

func unreadable(st *state) {
	st.selectErr = errors.New("reading spec.providerClusters[0].labelSelector: bad")
}

func deleted(st *state) { st.mcs.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)} }

func remains(what string) stateEdit { return func(st *state) { st.remains = what } }

// told is a plan as a person would say it.
type told struct {
	Prepare, Mark, Unmark, Release bool
	Again                          time.Duration
	// The clusters that the binding names: of ours, and those that we claim in
	// somebody else's. Nil: no such write.
	Create, Update, Claim []string
	Delete                bool
}

func tellPlan(p changes) told {
	names := func(list []workv1alpha2.TargetCluster) []string {
		out := []string{}
		for _, c := range list {
			out = append(out, c.Name)
		}
		return out
	}
	out := told{
		Prepare: p.Prepare, Mark: p.MarkService, Unmark: p.UnmarkService, Release: p.Release, Again: p.Again, Delete: p.Delete != nil,
	}
	if p.Create != nil {
		out.Create = names(p.Create.Spec.Clusters)
	}
	if p.Update != nil {
		out.Update = names(p.Update.Spec.Clusters)
	}
	if p.Claim != nil {
		out.Claim = []string{}
		for _, c := range p.Claim.Spec.RequiredBy {
			out.Claim = append(out.Claim, c.Name+":")
			out.Claim = append(out.Claim, names(c.Clusters)...)
		}
	}
	return out
}

func TestPlan(t *testing.T) {
	for title, tc := range map[string]struct {
		state *state
		want  told
	}{
		"a new object is prepared first": {
			state: observed(func(st *state) { st.mcs.Finalizers, st.mcs.Labels = nil, nil }),
			want:  told{Prepare: true, Create: []string{"a", "b"}},
		},
		"its id is missing": {
			state: observed(func(st *state) { st.mcs.Labels = nil }),
			want:  told{Prepare: true, Create: []string{"a", "b"}},
		},
		"a claim on the Service for all members": {state: observed(), want: told{Create: []string{"a", "b"}}},
		"what stands right is left alone":        {state: observed(withBinding())},
		"a cluster has joined or left (C27)":     {state: observed(withBinding(func(rb *workv1alpha2.ResourceBinding) { rb.Spec.Clusters = clusters("a") })), want: told{Update: []string{"a", "b"}}},
		"fields of others in the binding stay":   {state: observed(withBinding(claimedBy("policy", "c"))), want: told{}},
		"the Service lost a mark":                {state: observed(withBinding(), func(st *state) { delete(st.template.Labels, networkingv1alpha1.ClaimedByLabel) }), want: told{Mark: true}},
		"a restored object, another id":          {state: observed(withBinding(), func(st *state) { st.permanentID = "id-2" }), want: told{Mark: true, Update: []string{"a", "b"}}},
		"the Service was made anew (C16)":        {state: observed(withBinding(), func(st *state) { st.template.UID = "new" }), want: told{Update: []string{"a", "b"}}},
		"another conflict resolution":            {state: observed(withBinding(), func(st *state) { st.mcs.Spec.ConflictResolution = networkingv1alpha1.ConflictAbort }), want: told{Update: []string{"a", "b"}}},
		"a binding that is going is waited for":  {state: observed(withBinding(bindingGoing))},
		"no template yet (C22)":                  {state: observed(withoutTemplate)},
		"the template has gone":                  {state: observed(withoutTemplate, withBinding()), want: told{Delete: true}},
		"the template has gone, all said":        {state: observed(withoutTemplate, withBinding(bindingGoing))},
		"ExternalName: no claim (C21)":           {state: observed(externalName)},
		"became ExternalName":                    {state: observed(externalName, withBinding()), want: told{Delete: true}},
		"the template has gone, others claim it": {state: observed(withoutTemplate, withBinding(claimedBy("policy", "c"))), want: told{Update: []string{}}},
		"a wish that cannot be read changes nothing": {
			state: observed(unreadable, withBinding(func(rb *workv1alpha2.ResourceBinding) { rb.Spec.Clusters = clusters("a") })),
		},

		"somebody else's binding: our claim beside theirs": {
			state: observed(withBinding(foreign)), want: told{Claim: []string{"foo:", "a", "b"}},
		},
		"our claim stands": {state: observed(withBinding(foreign, claimedBy("foo", "a", "b")))},
		"our claim changes in its place, whoever came after": {
			state: observed(withBinding(foreign, claimedBy("foo", "a"), claimedBy("bar", "c"))),
			want:  told{Claim: []string{"foo:", "a", "b", "bar:", "c"}},
		},
		"our claim is taken back": {
			state: observed(deleted, withBinding(foreign, claimedBy("foo", "a", "b"), claimedBy("bar", "c"))),
			want:  told{Claim: []string{"bar:", "c"}, Unmark: true, Again: cleanInterval},
		},

		"deleted: the claim goes, and the marks": {
			state: observed(deleted, withBinding()), want: told{Delete: true, Unmark: true, Again: cleanInterval},
		},
		"deleted: what stands in members is waited for": {
			state: observed(deleted, withBinding(bindingGoing), remains("slices in cluster a"), withoutTemplate), want: told{Again: cleanInterval},
		},
		"deleted: the finalizer goes last": {
			state: observed(deleted, withoutTemplate), want: told{Release: true},
		},
		"deleted: a Service of another object keeps its marks": {
			state: observed(deleted, func(st *state) { st.template.Labels[networkingv1alpha1.PermanentIDLabel] = "id-2" }), want: told{Release: true},
		},
		"deleted: others claim the Service through our binding": {
			state: observed(deleted, withBinding(claimedBy("policy", "c"))), want: told{Update: []string{}, Unmark: true, Again: cleanInterval},
		},
		"deleted, and not ours to hold": {
			state: observed(deleted, withoutTemplate, func(st *state) { st.mcs.Finalizers = nil }),
		},
	} {
		t.Run(title, func(t *testing.T) {
			mcs, binding, template := tc.state.mcs.DeepCopy(), tc.state.binding.DeepCopy(), tc.state.template.DeepCopy()
			p := plan(tc.state)
			if diff := cmp.Diff(tc.want, tellPlan(p)); diff != "" {
				t.Errorf("plan (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(p, plan(tc.state)); diff != "" {
				t.Errorf("planned twice (-first +second):\n%s", diff)
			}
			if !cmp.Equal(mcs, tc.state.mcs) || !cmp.Equal(binding, tc.state.binding) || !cmp.Equal(template, tc.state.template) {
				t.Error("the plan changed what it reads")
			}
		})
	}
}

// What is written stands: planning on it plans nothing.
func TestBindingIsStable(t *testing.T) {
	for wish, want := range map[networkingv1alpha1.ConflictResolution]workv1alpha2.ConflictResolution{
		"":                                   workv1alpha2.ConflictAdopt,
		networkingv1alpha1.ConflictAdopt:     workv1alpha2.ConflictAdopt,
		networkingv1alpha1.ConflictAbort:     workv1alpha2.ConflictAbort,
		networkingv1alpha1.ConflictOverwrite: workv1alpha2.ConflictOverwrite,
	} {
		t.Run("conflictResolution "+string(wish), func(t *testing.T) {
			st := observed(func(st *state) { st.mcs.Spec.ConflictResolution = wish })
			st.binding = plan(st).Create
			if got := st.binding.Spec.ConflictResolution; got != want {
				t.Errorf("the binding says %s, want %s", got, want)
			}
			if diff := cmp.Diff(told{}, tellPlan(plan(st))); diff != "" {
				t.Errorf("plan on what was written (-want +got):\n%s", diff)
			}
		})
	}
}
