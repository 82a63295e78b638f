package endpointslicecollect

import (
	"context"
	"errors"
	"fmt"
	"time"

	workv1alpha1 "github.com/namesake-io/namesake/api/work/v1alpha1"
	"github.com/namesake-io/namesake/internal/apply"
)

// namespaceWait is how long to wait for an execution namespace that the cluster
// controller has yet to make.
const namespaceWait = 100 * time.Millisecond

// apply writes the changes. What one of them meets does not stop the others.
func (c *Controller) apply(ctx context.Context, p changes) (time.Duration, error) {
	var errs []error
	var again time.Duration
	for _, work := range p.Create {
		err := c.writer.Create(ctx, work)
		switch {
		case err == nil:
			c.wrote.Wrote(work)
		case apply.NoNamespace(err):
			again = namespaceWait
		default:
			errs = append(errs, err)
		}
	}
	for _, work := range p.Update {
		if err := c.writer.Update(ctx, work); err != nil {
			errs = append(errs, err)
			continue
		}
		c.wrote.Wrote(work)
	}
	for _, work := range p.Delete {
		errs = append(errs, c.remove(ctx, work))
	}
	if err := errors.Join(errs...); err != nil {
		return 0, fmt.Errorf("remembering slices: %w", err)
	}
	return again, nil
}

// remove deletes a Work, with the finalizer that Karmada puts on its own.
func (c *Controller) remove(ctx context.Context, work *workv1alpha1.Work) error {
	if work.DeletionTimestamp == nil {
		if err := c.writer.Delete(ctx, work); err != nil {
			return err
		}
		if len(work.Finalizers) == 0 {
			c.wrote.Deleted(work)
			return nil
		}
	}
	patched := work.DeepCopy()
	patched.ResourceVersion = "" // the deletion has just changed it
	return c.writer.RemoveFinalizer(ctx, patched, workv1alpha1.DispatchFinalizer)
}
