package fleet

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/namesake-io/namesake/sandbox/internal/plan"
	"github.com/namesake-io/namesake/sandbox/internal/process"
	"github.com/namesake-io/namesake/sandbox/internal/state"
)

// grace is how long the components of a tier have to end by themselves. Clients
// may have a lease to give back; what servers and storage hold is removed next,
// so there is nothing for them to save.
var grace = map[int]time.Duration{
	plan.TierClient:  5 * time.Second,
	plan.TierServer:  0,
	plan.TierStorage: 0,
}

// maxSweeps bounds the search for processes that were started while others were
// being ended.
const maxSweeps = 10

// Down takes the fleet down. It is no error if there is none.
func (f *Fleet) Down(ctx context.Context) error {
	if _, err := os.Stat(f.dir); errors.Is(err, os.ErrNotExist) {
		f.progress.Say("nothing to do: %s does not exist", f.dir)
		return errors.Join(f.sweep(ctx), f.removeNetwork())
	}
	unlock, err := f.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	if err := f.tearDown(ctx); err != nil {
		return err
	}
	f.progress.Say("no fleet is left in %s", f.dir)
	return nil
}

// tearDown ends every process of the fleet and removes its files, whatever
// state it is in. The caller holds the lock.
func (f *Fleet) tearDown(ctx context.Context) error {
	st, err := state.Load(f.dir)
	ours := !errors.Is(err, state.ErrNone)
	if err != nil {
		// Without a record that can be read, the marks still tell what to end.
		if ours {
			f.progress.Say("the record can't be read, going by the processes' marks (%v)", err)
		}
		st = &state.Fleet{}
	}
	var errs []error
	for tier := plan.TierClient; tier >= plan.TierStorage; tier-- {
		errs = append(errs, endTier(ctx, st, tier))
	}
	errs = append(errs, f.sweep(ctx))
	errs = append(errs, f.removeNetwork())
	if err := errors.Join(errs...); err != nil {
		return err // the record stays, so that down can be run again
	}
	if !ours {
		return nil
	}
	return f.removeFiles()
}

// endTier ends all components of a tier at the same time.
func endTier(ctx context.Context, st *state.Fleet, tier int) error {
	var (
		wg   sync.WaitGroup
		errs = make([]error, len(st.Components))
	)
	for i, c := range st.Components {
		if c.Tier != tier || c.State() == process.Dead {
			continue
		}
		wg.Go(func() {
			if err := c.End(ctx, grace[tier]); err != nil {
				errs[i] = fmt.Errorf("ending %s: %w", c.Name, err)
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// sweep kills every process that carries the fleet's mark.
func (f *Fleet) sweep(ctx context.Context) error {
	for range maxSweeps {
		strays, err := process.Marked(f.dir)
		if err != nil {
			return err
		}
		if len(strays) == 0 {
			return nil
		}
		for _, id := range strays {
			f.progress.Say("ending process %d, which no record names", id.PID)
			if err := id.End(ctx, 0); err != nil {
				return err
			}
		}
	}
	return fmt.Errorf("processes of %s appear faster than they can be ended", f.dir)
}
