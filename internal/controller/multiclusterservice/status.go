package multiclusterservice

import (
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	networkingv1alpha1 "github.com/namesake-io/namesake/api/networking/v1alpha1"
	workv1alpha1 "github.com/namesake-io/namesake/api/work/v1alpha1"
	"github.com/namesake-io/namesake/internal/discovery"
)

// report writes the condition ServiceApplied when it has changed. It returns when
// to look again: clusters that have not said anything yet are waited for.
func (c *Controller) report(ctx context.Context, st *state) (time.Duration, error) {
	now := time.Now()
	is, pending := appliedCondition(st, now)
	if pending {
		if left := c.pending(st.key, now); left > 0 {
			return left, nil
		}
	} else {
		c.settled(st.key)
	}
	was := meta.FindStatusCondition(st.mcs.Status.Conditions, is.Type)
	if was != nil && equality.Semantic.DeepEqual(*was, is) {
		return 0, nil
	}
	if err := c.writeConditions(ctx, st, is); err != nil {
		return 0, err
	}
	tell(c.recorder, st.mcs, was, is)
	return 0, nil
}

// writeConditions applies conditions of the object.
func (c *Controller) writeConditions(ctx context.Context, st *state, conditions ...metav1.Condition) error {
	var encoded []any
	for i := range conditions {
		condition, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&conditions[i])
		if err != nil {
			return fmt.Errorf("encoding a condition: %w", err)
		}
		encoded = append(encoded, condition)
	}
	obj := &unstructured.Unstructured{Object: map[string]any{
		"status": map[string]any{"conditions": encoded},
	}}
	obj.SetGroupVersionKind(networkingv1alpha1.GroupVersion.WithKind("MultiClusterService"))
	obj.SetNamespace(st.key.Namespace)
	obj.SetName(st.key.Name)
	if err := c.status.Status(ctx, obj); err != nil {
		return err
	}
	c.wrote.mcs.Wrote(obj)
	return nil
}

// reportDeletion says what a deletion waits for that does not end at once. From
// then on nobody else tells how the object is.
func (c *Controller) reportDeletion(ctx context.Context, st *state) error {
	conditions := deletingConditions(st, time.Now())
	for _, is := range conditions {
		was := meta.FindStatusCondition(st.mcs.Status.Conditions, is.Type)
		if was == nil || !equality.Semantic.DeepEqual(*was, is) {
			return c.writeConditions(ctx, st, conditions...)
		}
	}
	return nil
}

// deletingConditions are the conditions of an object that is being deleted, none
// while that is not worth to be told.
func deletingConditions(st *state, now time.Time) []metav1.Condition {
	if st.remains == "" || now.Sub(st.mcs.DeletionTimestamp.Time) < deletionWait {
		return nil
	}
	var out []metav1.Condition
	for _, kind := range []string{networkingv1alpha1.ConditionReady, networkingv1alpha1.ConditionServiceApplied} {
		c := metav1.Condition{
			Type: kind, Status: metav1.ConditionFalse, Reason: networkingv1alpha1.ReasonDeleting, ObservedGeneration: st.mcs.Generation,
			Message:            "being deleted, which waits for: " + st.remains + ". Look there for what keeps it, for example a finalizer",
			LastTransitionTime: metav1.Time{Time: now.Truncate(time.Second)},
		}
		if was := meta.FindStatusCondition(st.mcs.Status.Conditions, kind); was != nil && was.Status == c.Status {
			c.LastTransitionTime = was.LastTransitionTime
		}
		out = append(out, c)
	}
	return out
}

// pending returns how long to wait for clusters that are on their way.
func (c *Controller) pending(key types.NamespacedName, now time.Time) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	since, known := c.pendingSince[key]
	if !known {
		since = now
		c.pendingSince[key] = now
	}
	return max(since.Add(pendingWait).Sub(now), 0)
}

// settled ends the wait.
func (c *Controller) settled(key types.NamespacedName) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.pendingSince, key)
}

// appliedCondition says in how many of the selected clusters the Service stands.
// pending is true when nothing is wrong but that some have not said yet.
func appliedCondition(st *state, now time.Time) (_ metav1.Condition, pending bool) {
	c := metav1.Condition{
		Type: networkingv1alpha1.ConditionServiceApplied, Status: metav1.ConditionFalse,
		Reason: networkingv1alpha1.ReasonServiceAppliedFailed, ObservedGeneration: st.mcs.Generation,
	}
	switch {
	case st.selectErr != nil:
		c.Message = st.selectErr.Error() + "; nothing is changed until it is corrected"
	case st.template == nil:
		c.Message = fmt.Sprintf("the hub has no Service %s: create it there, in the same namespace", st.key)
	case st.unsupported():
		c.Message = "a Service of type ExternalName has no endpoints to share: it is a DNS alias, which works in every cluster by itself"
	default:
		pending = tellClusters(&c, st)
	}
	c.LastTransitionTime = metav1.Time{Time: now.Truncate(time.Second)}
	if was := meta.FindStatusCondition(st.mcs.Status.Conditions, c.Type); was != nil && was.Status == c.Status {
		c.LastTransitionTime = was.LastTransitionTime
	}
	return c, pending
}

// tellClusters fills in the condition from what the clusters said.
func tellClusters(c *metav1.Condition, st *state) (pending bool) {
	byCluster := map[string]*workv1alpha1.Work{}
	for _, work := range st.works {
		byCluster[string(memberOf(work))] = work
	}
	members := st.selection.Members()
	var bad []string
	silent := 0
	for _, name := range members {
		applied, message, known := appliedIn(byCluster[string(name)])
		switch {
		case !known:
			silent++
			bad = append(bad, fmt.Sprintf("%s: %s", name, message))
		case !applied:
			bad = append(bad, fmt.Sprintf("%s: %s", name, message))
		}
	}
	c.Message = fmt.Sprintf("the Service stands in %d of %d clusters", len(members)-len(bad), len(members))
	if len(bad) == 0 {
		c.Status, c.Reason = metav1.ConditionTrue, networkingv1alpha1.ReasonServiceAppliedSucceed
		return false
	}
	c.Message += "; " + bounded(bad)
	return silent == len(bad)
}

// bounded joins the first few items, sorted, and counts the rest.
func bounded(items []string) string {
	slices.Sort(items)
	return discovery.Bounded(items, "; ")
}

// appliedIn says whether a member holds the Service. known is false when it has
// not said anything on the Work as it is now.
func appliedIn(work *workv1alpha1.Work) (applied bool, message string, known bool) {
	const waiting = "waiting for the cluster"
	if work == nil {
		return false, waiting, false
	}
	said := meta.FindStatusCondition(work.Status.Conditions, workv1alpha1.ConditionApplied)
	if said == nil || said.ObservedGeneration != work.Generation {
		return false, waiting, false
	}
	return said.Status == metav1.ConditionTrue, said.Message, true
}
