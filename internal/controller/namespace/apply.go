package namespace

import (
	"context"
	"errors"
	"time"

	"github.com/namesake-io/namesake/internal/apply"
)

// namespaceWait is how long to wait for an execution namespace that the cluster
// controller has yet to make.
const namespaceWait = 100 * time.Millisecond

// apply writes the changes. It returns when to look again.
func (c *Controller) apply(ctx context.Context, p changes) (time.Duration, error) {
	var again time.Duration
	var errs []error
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
	for _, work := range p.Delete {
		err := c.writer.Delete(ctx, work)
		if err == nil {
			c.wrote.Deleted(work)
		}
		errs = append(errs, err)
	}
	return again, errors.Join(errs...)
}
