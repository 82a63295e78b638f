package execution

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	workv1alpha1 "github.com/namesake-io/namesake/api/work/v1alpha1"
)

// report writes the condition Applied when it has changed.
func (c *Controller) report(ctx context.Context, work *workv1alpha1.Work, r result) error {
	was := meta.FindStatusCondition(work.Status.Conditions, workv1alpha1.ConditionApplied)
	is := appliedCondition(was, work.Generation, r, time.Now())
	if was != nil && equality.Semantic.DeepEqual(*was, is) {
		return nil
	}
	var transition bool
	if was == nil {
		transition = is.Status == metav1.ConditionFalse
	} else {
		transition = was.Status != is.Status
	}
	conditions := append([]metav1.Condition(nil), work.Status.Conditions...)
	meta.SetStatusCondition(&conditions, is)
	written := work.DeepCopy()
	if err := c.writer.StatusPatch(ctx, written, map[string]any{"conditions": conditions}); err != nil {
		return err
	}
	c.wrote.Wrote(written)
	if transition {
		tell(c.recorder, work, is)
	}
	return nil
}

// appliedCondition is the condition of a result.
func appliedCondition(was *metav1.Condition, generation int64, r result, now time.Time) metav1.Condition {
	out := metav1.Condition{
		Type: workv1alpha1.ConditionApplied, Status: metav1.ConditionFalse,
		Reason: r.reason, Message: r.message, ObservedGeneration: generation,
		LastTransitionTime: metav1.Time{Time: now.Truncate(time.Second)},
	}
	if r.applied {
		out.Status = metav1.ConditionTrue
	}
	if was != nil && was.Status == out.Status {
		out.LastTransitionTime = was.LastTransitionTime
	}
	return out
}
