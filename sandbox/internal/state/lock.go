package state

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// retryInterval is how often a waiting command tries for the lock.
const retryInterval = 50 * time.Millisecond

// Lock takes the lock of the directory and returns what gives it back. It calls
// waiting once if another command holds it. The lock is on the directory itself
// and goes with the process, so nothing is left behind to clean.
func Lock(ctx context.Context, dir string, waiting func()) (unlock func(), err error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, fmt.Errorf("locking: %w", err)
	}
	tick := time.NewTicker(retryInterval)
	defer tick.Stop()
	for first := true; ; first = false {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			return func() { f.Close() }, nil
		}
		if !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR) {
			return nil, errors.Join(fmt.Errorf("locking %s: %w", dir, err), f.Close())
		}
		if first {
			waiting()
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(fmt.Errorf("waiting for the command that holds %s: %w", dir, ctx.Err()), f.Close())
		case <-tick.C:
		}
	}
}
