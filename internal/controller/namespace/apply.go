package namespace

import (
	"context"
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
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
		case apierrors.IsNotFound(err), apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
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
