package pull

import (
	"context"
	"errors"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	workv1alpha1 "github.com/namesake-io/namesake/api/work/v1alpha1"
	"github.com/namesake-io/namesake/internal/apply"
)

// namespaceWait is how long to wait for an execution namespace that the cluster
// controller has yet to make.
const namespaceWait = 100 * time.Millisecond

// apply writes the changes of one member. What one of them meets does not stop
// the others, but that slices move to a delivery before they leave another.
func (c *Controller) apply(ctx context.Context, p changes) (time.Duration, error) {
	var again time.Duration
	var errs []error
	write := func(work *workv1alpha1.Work, do func(context.Context, *workv1alpha1.Work) error) {
		err := do(ctx, work)
		switch {
		case err == nil:
		case apply.NoNamespace(err):
			again = namespaceWait
		default:
			errs = append(errs, err)
		}
	}
	for _, work := range p.Create {
		write(work, func(ctx context.Context, w *workv1alpha1.Work) error { return c.wroteOr(w, c.writer.Create(ctx, w)) })
	}
	for _, work := range p.Update {
		if len(errs) > 0 {
			break
		}
		write(work, c.update)
	}
	for _, work := range p.Delete {
		if len(errs) > 0 {
			break
		}
		err := c.writer.Delete(ctx, work)
		if err == nil {
			c.wrote.Deleted(work)
		}
		errs = append(errs, err)
	}
	return again, errors.Join(errs...)
}

// update writes what is the hub's of a Work, which is all but its status. It is
// not bound to a resourceVersion: what the agent says changes that as often as
// slices change, and is no reason to look again.
func (c *Controller) update(ctx context.Context, work *workv1alpha1.Work) error {
	bare := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: work.Namespace, Name: work.Name}}
	return c.wroteOr(bare, c.writer.Patch(ctx, bare, map[string]any{
		"metadata": map[string]any{"uid": work.UID, "labels": work.Labels},
		"spec":     work.Spec,
	}))
}

// wroteOr remembers a write that succeeded.
func (c *Controller) wroteOr(work *workv1alpha1.Work, err error) error {
	if err == nil {
		c.wrote.Wrote(work)
	}
	return err
}
