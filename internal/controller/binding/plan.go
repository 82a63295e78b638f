package binding

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	clusterv1alpha1 "github.com/namesake-io/namesake/api/cluster/v1alpha1"
	networkingv1alpha1 "github.com/namesake-io/namesake/api/networking/v1alpha1"
	workv1alpha1 "github.com/namesake-io/namesake/api/work/v1alpha1"
	workv1alpha2 "github.com/namesake-io/namesake/api/work/v1alpha2"
	"github.com/namesake-io/namesake/internal/discovery"
	"github.com/namesake-io/namesake/internal/manifest"
)

// releaseInterval is how often a binding that waits for its Works is looked at:
// that a cluster stops answering is no event of theirs.
const releaseInterval = time.Second

// markInterval is how soon to look again whether the cache shows a Service as its
// binding was made for it. Its event comes sooner.
const markInterval = 100 * time.Millisecond

// changes make the members' Works what the binding says.
type changes struct {
	Create, Update, Delete []*workv1alpha1.Work
	// Prepare adds the finalizer: a binding takes its Works with it, whoever made it.
	Prepare bool
	// Release says that the binding is going and has no Works left, but for those in
	// clusters that do not answer: they go when these are back, and must not keep
	// others waiting who bind the resource anew.
	Release bool
	// Again is when to look again though nothing happens.
	Again time.Duration
}

// targets are the clusters that any claimant names, sorted.
func targets(rb *workv1alpha2.ResourceBinding) []string {
	var out []string
	for _, t := range rb.Spec.Clusters {
		out = append(out, t.Name)
	}
	for _, claim := range rb.Spec.RequiredBy {
		for _, t := range claim.Clusters {
			out = append(out, t.Name)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// plan decides: one Work in each target that has joined, none elsewhere.
func plan(st *state) (changes, error) {
	var out changes
	if st.hold && st.binding.DeletionTimestamp == nil {
		return out, nil
	}
	if len(st.works) == 0 && markPending(st) {
		out.Again = markInterval
		return out, nil
	}
	byNamespace := map[string][]*workv1alpha1.Work{}
	for _, work := range slices.SortedFunc(slices.Values(st.works), compareWorks) {
		byNamespace[work.Namespace] = append(byNamespace[work.Namespace], work)
	}

	if st.binding.DeletionTimestamp == nil && st.resource != nil {
		out.Prepare = !slices.Contains(st.binding.Finalizers, workv1alpha2.Finalizer)
		made := forms{}
		for _, cluster := range targets(st.binding) {
			namespace := clusterv1alpha1.ExecutionNamespace(cluster)
			if !st.joined[cluster] {
				continue
			}
			want, err := made.of(st, cluster)
			if err != nil {
				return out, err
			}
			have := byNamespace[namespace]
			if len(have) == 0 {
				out.Create = append(out.Create, newWork(st, namespace, want))
				continue
			}
			byNamespace[namespace] = have[1:]
			if updated, differs := bring(have[0], st, want); differs {
				out.Update = append(out.Update, updated)
			}
		}
	}
	for _, spare := range byNamespace {
		for _, work := range spare {
			if work.DeletionTimestamp == nil {
				out.Delete = append(out.Delete, work)
			}
		}
	}
	slices.SortFunc(out.Delete, compareWorks)
	if st.binding.DeletionTimestamp != nil {
		out.Release = !slices.ContainsFunc(st.works, func(w *workv1alpha1.Work) bool {
			cluster, _ := clusterv1alpha1.ClusterOf(w.Namespace)
			return w.DeletionTimestamp == nil || !st.silent[cluster]
		})
		if !out.Release {
			out.Again = releaseInterval
		}
	}
	return out, nil
}

// markPending says that the Service lacks the mark that it was given before the
// binding was made: the cache is about to show it. Works made of what it shows now
// would be written again at once, in every member.
func markPending(st *state) bool {
	return st.binding.DeletionTimestamp == nil && st.resource != nil &&
		st.binding.Labels[workv1alpha2.ManagedByLabel] == networkingv1alpha1.ClaimedByMultiClusterService &&
		st.binding.Labels[networkingv1alpha1.PermanentIDLabel] != st.resource.GetLabels()[networkingv1alpha1.PermanentIDLabel]
}

// newWork returns the Work that puts the resource into a member.
func newWork(st *state, namespace string, want *form) *workv1alpha1.Work {
	return &workv1alpha1.Work{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: manifest.WorkName(st.id), Labels: workLabels(st),
			// From the start: what a Work puts into a member must not outlive it.
			Finalizers: []string{workv1alpha1.ExecutionFinalizer},
		},
		Spec: workv1alpha1.WorkSpec{Workload: workv1alpha1.WorkloadTemplate{Manifests: want.manifests()}},
	}
}

// bring returns an existing Work with the wanted content, and whether that
// differs from what it has.
func bring(have *workv1alpha1.Work, st *state, want *form) (*workv1alpha1.Work, bool) {
	if have.DeletionTimestamp != nil {
		return nil, false // it is made again when it is gone
	}
	labels := maps.Clone(have.Labels)
	if labels == nil {
		labels = map[string]string{}
	}
	for _, key := range []string{networkingv1alpha1.NameKey, networkingv1alpha1.NamespaceKey, networkingv1alpha1.PermanentIDLabel} {
		delete(labels, key)
	}
	maps.Copy(labels, workLabels(st))
	if maps.Equal(labels, have.Labels) && len(have.Spec.Workload.Manifests) == 1 && want.is(have.Spec.Workload.Manifests[0]) {
		return nil, false
	}
	out := have.DeepCopy()
	out.Labels = labels
	out.Spec.Workload.Manifests = want.manifests()
	return out, true
}

// workLabels say which MultiClusterService a Work is for, where there is one.
func workLabels(st *state) map[string]string {
	if st.wish == nil {
		return nil
	}
	// The binding's first: a fresh id may be in it before the cache shows it on
	// the object itself.
	id := st.binding.Labels[networkingv1alpha1.PermanentIDLabel]
	if id == "" {
		id = st.wish.Labels[networkingv1alpha1.PermanentIDLabel]
	}
	out := map[string]string{networkingv1alpha1.NameKey: st.wish.Name, networkingv1alpha1.NamespaceKey: st.wish.Namespace}
	if id != "" {
		out[networkingv1alpha1.PermanentIDLabel] = id
	}
	return out
}

// form is the resource as some members shall have it.
type form struct {
	object  *unstructured.Unstructured
	encoded workv1alpha1.Manifest
}

// forms are those that were made for one plan: with every port, and with the
// exposed ones only.
type forms map[bool]*form

// of returns the form for a cluster, made once for all that get the same.
func (f forms) of(st *state, cluster string) (*form, error) {
	exposed := false
	if st.wish != nil && len(st.wish.Spec.Ports) > 0 {
		_, exposed = slices.BinarySearch(st.consumers, discovery.ClusterName(cluster))
	}
	if have := f[exposed]; have != nil {
		return have, nil
	}
	made, err := newForm(st, exposed)
	f[exposed] = made
	return made, err
}

// manifests are those of a Work, which may be written into.
func (f *form) manifests() []workv1alpha1.Manifest {
	return []workv1alpha1.Manifest{*f.encoded.DeepCopy()}
}

// is says whether a manifest says the same.
func (f *form) is(have workv1alpha1.Manifest) bool {
	if bytes.Equal(have.Raw, f.encoded.Raw) {
		return true
	}
	standing, err := manifest.Decode(have)
	return err == nil && equality.Semantic.DeepEqual(standing.Object, f.object.Object)
}

// newForm returns the resource without what belongs to the hub alone, or to
// whatever cluster the object stands in, and if so with the exposed ports only.
func newForm(st *state, exposed bool) (*form, error) {
	obj := &unstructured.Unstructured{Object: map[string]any{}}
	for key, value := range st.resource.DeepCopy().Object {
		if key != "metadata" && key != "status" {
			obj.Object[key] = value
		}
	}
	obj.SetNamespace(st.resource.GetNamespace())
	obj.SetName(st.resource.GetName())
	obj.SetLabels(withoutKeys(st.resource.GetLabels()))

	annotations := withoutKeys(st.resource.GetAnnotations(), corev1.LastAppliedConfigAnnotation)
	annotations[workv1alpha1.TemplateUIDAnnotation] = string(st.resource.GetUID())
	annotations[workv1alpha1.TemplateGenerationAnnotation] = fmt.Sprint(st.resource.GetGeneration())
	if policy := st.binding.Spec.ConflictResolution; policy != "" {
		annotations[workv1alpha1.ConflictResolutionAnnotation] = strings.ToLower(string(policy))
	}
	obj.SetAnnotations(annotations)

	if st.id.Group == "" && st.id.Kind == "Service" {
		if err := stripService(obj); err != nil {
			return nil, err
		}
		if exposed {
			hidePorts(obj, st.wish.Spec.Ports)
		}
	}
	// The same numbers and empties as a manifest that was stored and read again.
	m, err := manifest.Encode(obj)
	if err != nil {
		return nil, err
	}
	stored, err := manifest.Decode(m)
	return &form{object: stored, encoded: m}, err
}

// stripService takes off what each cluster assigns to a Service itself.
func stripService(obj *unstructured.Unstructured) error {
	spec, found, err := unstructured.NestedMap(obj.Object, "spec")
	if err != nil || !found {
		return err
	}
	headless := spec["clusterIP"] == corev1.ClusterIPNone
	for _, field := range []string{"clusterIP", "clusterIPs", "healthCheckNodePort", "ipFamilies"} {
		delete(spec, field)
	}
	if headless {
		spec["clusterIP"] = corev1.ClusterIPNone
	}
	// A hub's single stack says nothing about members; a wish for two does.
	if spec["ipFamilyPolicy"] == string(corev1.IPFamilyPolicySingleStack) {
		delete(spec, "ipFamilyPolicy")
	}
	ports, _ := spec["ports"].([]any)
	for _, item := range ports {
		if port, ok := item.(map[string]any); ok {
			delete(port, "nodePort")
		}
	}
	obj.Object["spec"] = spec
	return nil
}

// hidePorts takes the ports off a Service that are not exposed. A Service that
// would be left without any keeps all: it could not exist, and nothing is
// dispatched for it.
func hidePorts(obj *unstructured.Unstructured, exposed []networkingv1alpha1.ExposurePort) {
	spec, _ := obj.Object["spec"].(map[string]any)
	ports, _ := spec["ports"].([]any)
	if len(exposed) == 0 || len(ports) == 0 {
		return
	}
	var left []any
	for _, item := range ports {
		have := corev1.ServicePort{}
		port, ok := item.(map[string]any)
		if !ok || runtime.DefaultUnstructuredConverter.FromUnstructured(port, &have) != nil {
			continue
		}
		if slices.ContainsFunc(exposed, func(want networkingv1alpha1.ExposurePort) bool {
			return discovery.ExposurePortMatches(want, have)
		}) {
			left = append(left, item)
		}
	}
	if len(left) > 0 {
		spec["ports"] = left
	}
}

// withoutKeys returns a copy of a map without some keys, never nil.
func withoutKeys(in map[string]string, keys ...string) map[string]string {
	out := map[string]string{}
	for key, value := range in {
		if !slices.Contains(keys, key) {
			out[key] = value
		}
	}
	return out
}

// compareWorks orders Works: in each namespace those that stay come first.
func compareWorks(a, b *workv1alpha1.Work) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(goes(a), goes(b)), cmp.Compare(a.Name, b.Name))
}

// goes is 1 for a Work that is being deleted.
func goes(work *workv1alpha1.Work) int {
	if work.DeletionTimestamp != nil {
		return 1
	}
	return 0
}
