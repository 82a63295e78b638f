package binding

import (
	"context"
	"errors"
	"sync"
	"time"

	workv1alpha1 "github.com/namesake-io/namesake/api/work/v1alpha1"
	"github.com/namesake-io/namesake/internal/apply"
)

const (
	// parallel bounds the writes of one binding that are under way at once.
	parallel = 16
	// namespaceWait is how long to wait for an execution namespace that the
	// cluster controller has yet to make.
	namespaceWait = 100 * time.Millisecond
)

// apply writes the changes, side by side. It returns when to look again.
func (c *Controller) apply(ctx context.Context, p changes) (time.Duration, error) {
	var again time.Duration
	var mu sync.Mutex
	var errs []error
	slots := make(chan struct{}, parallel)
	var running sync.WaitGroup
	do := func(works []*workv1alpha1.Work, write func(*workv1alpha1.Work) error) {
		for _, work := range works {
			slots <- struct{}{}
			running.Go(func() {
				defer func() { <-slots }()
				err := write(work)
				mu.Lock()
				defer mu.Unlock()
				if errors.Is(err, errNoNamespace) {
					again = namespaceWait
					return
				}
				errs = append(errs, err)
			})
		}
	}
	do(p.Create, func(work *workv1alpha1.Work) error {
		err := c.writer.Create(ctx, work)
		if apply.NoNamespace(err) {
			return errNoNamespace
		}
		if err == nil {
			c.wrote.Wrote(work)
		}
		return err
	})
	do(p.Update, func(work *workv1alpha1.Work) error {
		err := c.writer.Update(ctx, work)
		if err == nil {
			c.wrote.Wrote(work)
		}
		return err
	})
	do(p.Delete, func(work *workv1alpha1.Work) error {
		err := c.writer.Delete(ctx, work)
		if err == nil {
			c.wrote.Deleted(work)
		}
		return err
	})
	running.Wait()
	return again, errors.Join(errs...)
}

// errNoNamespace says that a member's execution namespace is not there yet, or
// not any more.
var errNoNamespace = errors.New("the execution namespace is missing")
