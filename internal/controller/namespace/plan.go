package namespace

import (
	"cmp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/namesake-io/namesake/api/cluster/v1alpha1"
	workv1alpha1 "github.com/namesake-io/namesake/api/work/v1alpha1"
	"github.com/namesake-io/namesake/internal/manifest"
)

// SkipLabel, with the value "true", keeps a namespace of the hub out of members.
const SkipLabel = "namespace.karmada.io/skip-auto-propagation"

// changes make the members' Works what the hub's namespace asks for.
type changes struct {
	Create, Delete []*workv1alpha1.Work
}

// plan decides: one Work in each member for a namespace that is to be there. What
// stands is never updated, since a namespace in a member is never changed.
func plan(st *state) (changes, error) {
	var out changes
	standing := map[string]bool{}
	wanted := propagates(st.namespace)
	for _, work := range slices.SortedFunc(slices.Values(st.works), compareWorks) {
		cluster, _ := clusterv1alpha1.ClusterOf(work.Namespace)
		switch {
		case wanted && slices.Contains(st.clusters, cluster) && !standing[cluster]:
			standing[cluster] = true
		case work.DeletionTimestamp == nil && len(work.Spec.Workload.Manifests) == 1:
			// One that holds more than the namespace is somebody else's.
			out.Delete = append(out.Delete, work)
		}
	}
	if wanted {
		for _, cluster := range slices.Sorted(slices.Values(st.clusters)) {
			if standing[cluster] {
				continue
			}
			work, err := newWork(st, cluster)
			if err != nil {
				return out, err
			}
			out.Create = append(out.Create, work)
		}
	}
	return out, nil
}

// compareWorks orders Works.
func compareWorks(a, b *workv1alpha1.Work) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}

// propagates says whether a namespace of the hub is to be in members.
func propagates(namespace *corev1.Namespace) bool {
	return namespace != nil && namespace.DeletionTimestamp == nil &&
		namespace.Name != metav1.NamespaceDefault &&
		!strings.HasPrefix(namespace.Name, "kube-") && !strings.HasPrefix(namespace.Name, "karmada-") &&
		namespace.Labels[SkipLabel] != "true"
}

// newWork returns the Work that makes the namespace in a member.
func newWork(st *state, cluster string) (*workv1alpha1.Work, error) {
	m, err := manifest.Encode(&corev1.Namespace{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"},
		ObjectMeta: metav1.ObjectMeta{Name: st.name, Labels: ownLabels(st.namespace.Labels)},
	})
	if err != nil {
		return nil, err
	}
	preserve := true
	return &workv1alpha1.Work{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: clusterv1alpha1.ExecutionNamespace(cluster), Name: manifest.WorkName(identityOf(st.name)),
		},
		Spec: workv1alpha1.WorkSpec{
			Workload:                    workv1alpha1.WorkloadTemplate{Manifests: []workv1alpha1.Manifest{m}},
			PreserveResourcesOnDeletion: &preserve,
		},
	}, nil
}

// ownLabels are the labels of a namespace but for the one that each API server
// sets itself.
func ownLabels(labels map[string]string) map[string]string {
	out := map[string]string{}
	for key, value := range labels {
		if key != corev1.LabelMetadataName {
			out[key] = value
		}
	}
	return out
}
