package multiclusterservice

import (
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	networkingv1alpha1 "github.com/namesake-io/namesake/api/networking/v1alpha1"
	workv1alpha2 "github.com/namesake-io/namesake/api/work/v1alpha2"
)

// changes are what is to be written, in this order.
type changes struct {
	// Prepare adds the finalizer and the permanent id to the object.
	Prepare bool
	// MarkService and UnmarkService put our marks on the Service, and take them off.
	MarkService, UnmarkService bool
	// Create, Update and Delete are the binding's, when it is ours.
	Create, Update, Delete *workv1alpha2.ResourceBinding
	// Claim is a binding of somebody else's, with our claim among others' or, when
	// that has ended, without.
	Claim *workv1alpha2.ResourceBinding
	// Release takes the finalizer off: nothing of the object is left.
	Release bool
	// Again is when to look again though nothing happens.
	Again time.Duration
}

// plan decides: a claim on the Service while the object stands, none afterwards.
func plan(st *state) changes {
	if st.mcs.DeletionTimestamp != nil {
		return planDeletion(st)
	}
	var out changes
	out.Prepare = !slices.Contains(st.mcs.Finalizers, networkingv1alpha1.Finalizer) ||
		st.mcs.Labels[networkingv1alpha1.PermanentIDLabel] == ""
	switch {
	case st.selectErr != nil:
		// What is meant cannot be told.
	case st.template == nil || st.unsupported():
		endClaim(&out, st)
	case st.foreignBinding():
		out.MarkService = !marked(st)
		out.Claim = withClaim(st.binding, st.key, newBinding(st).Spec.Clusters)
	default:
		out.MarkService = !marked(st)
		want := newBinding(st)
		if st.binding == nil {
			out.Create = want
		} else if updated, differs := bring(st.binding, want); differs {
			out.Update = updated
		}
	}
	return out
}

// planDeletion takes away what the object gave, the finalizer last.
func planDeletion(st *state) changes {
	var out changes
	endClaim(&out, st)
	out.UnmarkService = st.template != nil && st.template.Labels[networkingv1alpha1.PermanentIDLabel] != "" &&
		st.template.Labels[networkingv1alpha1.PermanentIDLabel] == st.mcs.Labels[networkingv1alpha1.PermanentIDLabel]
	if !slices.Contains(st.mcs.Finalizers, networkingv1alpha1.Finalizer) {
		return out
	}
	out.Release = out.Delete == nil && out.Claim == nil && out.Update == nil && st.remains == ""
	if !out.Release {
		out.Again = cleanInterval
	}
	return out
}

// endClaim takes our claim back, and with the last one the binding.
func endClaim(out *changes, st *state) {
	switch {
	case st.binding == nil || st.binding.DeletionTimestamp != nil:
	case st.foreignBinding():
		out.Claim = withClaim(st.binding, st.key, nil)
	case len(st.binding.Spec.RequiredBy) == 0:
		out.Delete = st.binding
	case len(st.binding.Spec.Clusters) > 0:
		// Others claim the Service through our binding: it stays, for them.
		out.Update = st.binding.DeepCopy()
		out.Update.Spec.Clusters = nil
	}
}

// withClaim returns somebody else's binding with our claim for these clusters,
// or without it when there are none. Nil: that is what it says already.
func withClaim(rb *workv1alpha2.ResourceBinding, key types.NamespacedName, clusters []workv1alpha2.TargetCluster) *workv1alpha2.ResourceBinding {
	out := rb.DeepCopy()
	isOurs := func(c workv1alpha2.BindingSnapshot) bool { return c.Namespace == key.Namespace && c.Name == key.Name }
	claim := workv1alpha2.BindingSnapshot{Namespace: key.Namespace, Name: key.Name, Clusters: clusters}
	at := slices.IndexFunc(out.Spec.RequiredBy, isOurs)
	switch {
	case len(clusters) == 0:
		out.Spec.RequiredBy = slices.DeleteFunc(out.Spec.RequiredBy, isOurs)
	case at >= 0:
		out.Spec.RequiredBy[at] = claim // in its place, so that the order settles
	default:
		out.Spec.RequiredBy = append(out.Spec.RequiredBy, claim)
	}
	if equality.Semantic.DeepEqual(rb.Spec.RequiredBy, out.Spec.RequiredBy) {
		return nil
	}
	return out
}

// unsupported says that the Service has no endpoints that could be shared.
func (st *state) unsupported() bool { return st.template.Spec.Type == corev1.ServiceTypeExternalName }

// foreignBinding says that the Service's binding was made by somebody else.
func (st *state) foreignBinding() bool {
	return st.binding != nil && st.binding.Labels[workv1alpha2.ManagedByLabel] != networkingv1alpha1.ClaimedByMultiClusterService
}

// marked says that the Service bears our marks.
func marked(st *state) bool {
	for key, value := range serviceLabels(st) {
		if st.template.Labels[key] != value {
			return false
		}
	}
	for key, value := range claimAnnotations(st) {
		if st.template.Annotations[key] != value {
			return false
		}
	}
	return true
}

// serviceLabels are our labels on a claimed Service.
func serviceLabels(st *state) map[string]string {
	return map[string]string{
		networkingv1alpha1.ClaimedByLabel:   networkingv1alpha1.ClaimedByMultiClusterService,
		networkingv1alpha1.PermanentIDLabel: st.permanentID,
	}
}

// claimAnnotations name the object, on the Service and on the binding.
func claimAnnotations(st *state) map[string]string {
	return map[string]string{
		networkingv1alpha1.NameKey: st.key.Name, networkingv1alpha1.NamespaceKey: st.key.Namespace,
	}
}

// newBinding returns the claim: the Service in every cluster that takes part.
func newBinding(st *state) *workv1alpha2.ResourceBinding {
	out := &workv1alpha2.ResourceBinding{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: st.key.Namespace, Name: workv1alpha2.BindingName("service", st.key.Name),
			Labels: map[string]string{
				networkingv1alpha1.PermanentIDLabel: st.permanentID,
				workv1alpha2.ManagedByLabel:         networkingv1alpha1.ClaimedByMultiClusterService,
			},
			Annotations: claimAnnotations(st),
			Finalizers:  []string{workv1alpha2.Finalizer},
		},
		Spec: workv1alpha2.ResourceBindingSpec{
			Resource: workv1alpha2.ObjectReference{
				APIVersion: "v1", Kind: "Service", Namespace: st.key.Namespace, Name: st.key.Name, UID: st.template.UID,
			},
			ConflictResolution: conflictResolution(st.mcs.Spec.ConflictResolution),
		},
	}
	for _, name := range st.selection.Members() {
		out.Spec.Clusters = append(out.Spec.Clusters, workv1alpha2.TargetCluster{Name: string(name)})
	}
	return out
}

// conflictResolution returns the binding's word for the wish. Nothing said means
// Adopt: a Service that stands there keeps serving, and gains remote endpoints.
func conflictResolution(wish networkingv1alpha1.ConflictResolution) workv1alpha2.ConflictResolution {
	switch wish {
	case networkingv1alpha1.ConflictAbort:
		return workv1alpha2.ConflictAbort
	case networkingv1alpha1.ConflictOverwrite:
		return workv1alpha2.ConflictOverwrite
	case networkingv1alpha1.ConflictAdopt:
	}
	return workv1alpha2.ConflictAdopt
}

// bring returns the standing binding with the wanted content, and whether that
// differs. Claims of others stay.
func bring(have, want *workv1alpha2.ResourceBinding) (*workv1alpha2.ResourceBinding, bool) {
	out := have.DeepCopy()
	if have.DeletionTimestamp != nil {
		return out, false // it is made again when it is gone
	}
	out.Labels = maps.Clone(have.Labels)
	maps.Copy(out.Labels, want.Labels)
	if out.Annotations == nil {
		out.Annotations = map[string]string{}
	}
	maps.Copy(out.Annotations, want.Annotations)
	out.Spec.Resource, out.Spec.Clusters = want.Spec.Resource, want.Spec.Clusters
	out.Spec.ConflictResolution = want.Spec.ConflictResolution
	return out, !equality.Semantic.DeepEqual(have, out)
}
