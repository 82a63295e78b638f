package target

import (
	"context"
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
)

// ErrTimeout is returned by Await when the time is over and no attempt failed.
var ErrTimeout = errors.New("timed out")

// pollInterval of Await. Whatever is waited for takes milliseconds when all is
// well, and a person looks on.
const pollInterval = 100 * time.Millisecond

// Await repeats attempt until it is done or patience is over. A failure ends it
// when it is an answer that will not change; any other is only returned when it
// was the last, since an attempt that fails may be followed by one that does not.
func Await(ctx context.Context, patience time.Duration, attempt func(context.Context) (done bool, err error)) error {
	var last error
	err := wait.PollUntilContextTimeout(ctx, pollInterval, patience, true, func(attemptCtx context.Context) (bool, error) {
		done, err := attempt(attemptCtx)
		// An attempt that our own time-out cut off says nothing.
		if err == nil || attemptCtx.Err() == nil {
			last = err
		}
		if isFinal(err) {
			return false, err
		}
		return done && err == nil, nil
	})
	switch {
	case err == nil, isFinal(err):
		return err
	case ctx.Err() != nil:
		return ctx.Err()
	case last != nil:
		return last
	default:
		return ErrTimeout
	}
}

func isFinal(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) || apierrors.IsNotFound(err) || isMissingKind(err)
}
