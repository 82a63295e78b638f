package namespace

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	workv1alpha1 "github.com/namesake-io/namesake/api/work/v1alpha1"
	"github.com/namesake-io/namesake/internal/manifest"
)

// of is what is observed of a namespace of the hub, in clusters.
func of(name string, labels map[string]string, clusters ...string) *state {
	return &state{
		name: name, clusters: clusters,
		namespace: &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}},
	}
}

// standing is the Work that the plan makes for shop in a cluster.
func standing(t *testing.T, cluster string, edits ...func(*workv1alpha1.Work)) *workv1alpha1.Work {
	t.Helper()
	p, err := plan(of("shop", nil, cluster))
	if err != nil {
		t.Fatal(err)
	}
	for _, edit := range edits {
		edit(p.Create[0])
	}
	return p.Create[0]
}

func called(name string) func(*workv1alpha1.Work) {
	return func(w *workv1alpha1.Work) { w.Name = name }
}

func going(w *workv1alpha1.Work) { w.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)} }

func withMore(w *workv1alpha1.Work) {
	m := workv1alpha1.Manifest{}
	m.Raw = []byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x"}}`)
	w.Spec.Workload.Manifests = append(w.Spec.Workload.Manifests, m)
}

func verbs(p changes) []string {
	var out []string
	for _, w := range p.Create {
		out = append(out, "create "+w.Namespace+"/"+w.Name)
	}
	for _, w := range p.Delete {
		out = append(out, "delete "+w.Namespace+"/"+w.Name)
	}
	return out
}

func TestPlan(t *testing.T) {
	shop := manifest.WorkName(identityOf("shop"))
	gone := func(st *state) *state { st.namespace = nil; return st }
	terminating := func(st *state) *state {
		st.namespace.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
		return st
	}
	for title, tc := range map[string]struct {
		state *state
		works []*workv1alpha1.Work
		want  []string
	}{
		"a Work in each cluster, sorted": {
			state: of("shop", nil, "b", "a"),
			want:  []string{"create karmada-es-a/" + shop, "create karmada-es-b/" + shop},
		},
		"what stands is left alone": {
			state: of("shop", nil, "a"), works: []*workv1alpha1.Work{standing(t, "a")},
		},
		"new labels on the hub change nothing in members": {
			state: of("shop", map[string]string{"team": "blue"}, "a"), works: []*workv1alpha1.Work{standing(t, "a")},
		},
		"a label keeps it out": {
			state: of("shop", map[string]string{SkipLabel: "true"}, "a"),
		},
		"a label takes it out": {
			state: of("shop", map[string]string{SkipLabel: "true"}, "a"), works: []*workv1alpha1.Work{standing(t, "a")},
			want: []string{"delete karmada-es-a/" + shop},
		},
		"the label with another value does not": {
			state: of("shop", map[string]string{SkipLabel: "false"}, "a"), want: []string{"create karmada-es-a/" + shop},
		},
		"default stays at home":     {state: of("default", nil, "a")},
		"kube-system stays at home": {state: of("kube-system", nil, "a")},
		"karmada-cluster too":       {state: of("karmada-cluster", nil, "a")},
		"a name that only begins alike goes": {
			state: of("kubernetes", nil, "a"),
			want:  []string{"create karmada-es-a/" + manifest.WorkName(identityOf("kubernetes"))},
		},
		"deleted on the hub": {
			state: gone(of("shop", nil, "a")), works: []*workv1alpha1.Work{standing(t, "a")},
			want: []string{"delete karmada-es-a/" + shop},
		},
		"being deleted on the hub (C20)": {
			state: terminating(of("shop", nil, "a")), works: []*workv1alpha1.Work{standing(t, "a")},
			want: []string{"delete karmada-es-a/" + shop},
		},
		"being deleted, all said": {
			state: terminating(of("shop", nil, "a")), works: []*workv1alpha1.Work{standing(t, "a", going)},
		},
		"a Work that is going is waited for": {
			state: of("shop", nil, "a"), works: []*workv1alpha1.Work{standing(t, "a", going)},
		},
		"a cluster that has left": {
			state: of("shop", nil, "a"), works: []*workv1alpha1.Work{standing(t, "a"), standing(t, "b")},
			want: []string{"delete karmada-es-b/" + shop},
		},
		"Karmada's Work of it will do": {
			state: of("shop", nil, "a"), works: []*workv1alpha1.Work{standing(t, "a", called("shop-7d9f"))},
		},
		"of two the second goes": {
			state: of("shop", nil, "a"), works: []*workv1alpha1.Work{standing(t, "a", called("z")), standing(t, "a", called("b"))},
			want: []string{"delete karmada-es-a/z"},
		},
		"a Work that holds more than the namespace is somebody's": {
			state: gone(of("shop", nil, "a")), works: []*workv1alpha1.Work{standing(t, "a", withMore)},
		},
	} {
		t.Run(title, func(t *testing.T) {
			tc.state.works = tc.works
			first, err := plan(tc.state)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, verbs(first)); diff != "" {
				t.Errorf("changes (-want +got):\n%s", diff)
			}
			slices.Reverse(tc.state.works)
			slices.Reverse(tc.state.clusters)
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

// The namespace is made with the labels that it has on the hub, and stays when
// its Work goes.
func TestWork(t *testing.T) {
	p, err := plan(of("shop", map[string]string{"team": "blue", corev1.LabelMetadataName: "shop"}, "a"))
	if err != nil {
		t.Fatal(err)
	}
	work := p.Create[0]
	if keep := work.Spec.PreserveResourcesOnDeletion; keep == nil || !*keep {
		t.Error("the namespace would go with its Work")
	}
	obj, err := manifest.Decode(work.Spec.Workload.Manifests[0])
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{"team": "blue"}, obj.GetLabels()); diff != "" {
		t.Errorf("labels (-want +got):\n%s", diff)
	}
}
