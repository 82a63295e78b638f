package pull

import (
	"context"
	"errors"
	"time"

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
		write(work, func(ctx context.Context, w *workv1alpha1.Work) error { return c.wroteOr(w, c.writer.Update(ctx, w)) })
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

// wroteOr remembers a write that succeeded.
func (c *Controller) wroteOr(work *workv1alpha1.Work, err error) error {
	if err == nil {
		c.wrote.Wrote(work)
	}
	return err
}
