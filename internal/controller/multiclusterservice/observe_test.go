package multiclusterservice

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	networkingv1alpha1 "github.com/namesake-io/namesake/api/networking/v1alpha1"
	workv1alpha1 "github.com/namesake-io/namesake/api/work/v1alpha1"
	workv1alpha2 "github.com/namesake-io/namesake/api/work/v1alpha2"
)

// What a deleted object gave is waited for, though its labels are off; what
// others claim is not.
func TestGave(t *testing.T) {
	const ours = networkingv1alpha1.ClaimedByMultiClusterService
	binding := func(managedBy string, clusters []string, requiredBy ...workv1alpha2.BindingSnapshot) *workv1alpha2.ResourceBinding {
		rb := &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{workv1alpha2.ManagedByLabel: managedBy}}}
		for _, name := range clusters {
			rb.Spec.Clusters = append(rb.Spec.Clusters, workv1alpha2.TargetCluster{Name: name})
		}
		rb.Spec.RequiredBy = requiredBy
		return rb
	}
	claim := func(name, cluster string) workv1alpha2.BindingSnapshot {
		return workv1alpha2.BindingSnapshot{Namespace: "shop", Name: name, Clusters: []workv1alpha2.TargetCluster{{Name: cluster}}}
	}
	labelled := map[string]string{networkingv1alpha1.NameKey: "foo", networkingv1alpha1.NamespaceKey: "shop"}
	for name, tc := range map[string]struct {
		binding *workv1alpha2.ResourceBinding
		labels  map[string]string
		want    bool
	}{
		"labelled":                         {labels: labelled, want: true},
		"not labelled, no binding":         {want: false},
		"not labelled, our binding":        {binding: binding(ours, []string{"a"}), want: true},
		"our binding, others want it":      {binding: binding(ours, nil, claim("bar", "a")), want: false},
		"our binding, others elsewhere":    {binding: binding(ours, nil, claim("bar", "b")), want: true},
		"somebody's binding":               {binding: binding("", []string{"a"}), want: false},
		"somebody's binding elsewhere":     {binding: binding("", []string{"b"}), want: true},
		"somebody's binding and our claim": {binding: binding("", []string{"b"}, claim("foo", "a")), want: true},
	} {
		t.Run(name, func(t *testing.T) {
			st := &state{key: types.NamespacedName{Namespace: "shop", Name: "foo"}, binding: tc.binding}
			work := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-es-a", Name: "foo-1", Labels: tc.labels}}
			if got := st.gave(work); got != tc.want {
				t.Errorf("gave: %v, want %v", got, tc.want)
			}
		})
	}
}
