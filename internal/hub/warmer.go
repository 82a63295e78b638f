package hub

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"

	"github.com/namesake-io/namesake/internal/snapshot"
)

// warmer keeps the views of a replica that waits as those of the leader are: with
// the endpoints of services that somebody has come to want since, and without
// those that nobody wants any more.
type warmer struct {
	source  snapshot.Source
	elected <-chan struct{}
	queue   workqueue.TypedInterface[types.NamespacedName]
}

// addWarmer adds the warmer to a manager.
func addWarmer(p parts) error {
	w := &warmer{
		source: p.source, elected: p.mgr.Elected(),
		queue: workqueue.NewTyped[types.NamespacedName](),
	}
	p.hooks.wish = append(p.hooks.wish, w.queue.Add)
	if err := p.mgr.Add(w); err != nil {
		return fmt.Errorf("adding the warmer: %w", err)
	}
	return nil
}

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (w *warmer) NeedLeaderElection() bool { return false }

// Start implements manager.Runnable: it works until the leader's controllers do.
func (w *warmer) Start(ctx context.Context) error {
	go func() {
		select {
		case <-w.elected:
		case <-ctx.Done():
		}
		w.queue.ShutDown()
	}()
	for {
		service, ended := w.queue.Get()
		if ended {
			return nil
		}
		w.warm(ctx, service)
		w.queue.Done(service)
	}
}

// warm has the slices of a service read in all members, or forgets them. A member
// that does not answer reads them when it does.
func (w *warmer) warm(ctx context.Context, service types.NamespacedName) {
	for _, m := range w.source.Members.List() {
		if w.source.Interest.Has(service) {
			m.Slices().NativeSoon(ctx, service)
		} else {
			m.Slices().Forget(service)
		}
	}
}
