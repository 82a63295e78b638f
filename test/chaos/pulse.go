package chaos

import (
	"context"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/utils/ptr"

	"github.com/namesake-io/namesake/test/chaos/model"
)

const (
	// pulseInterval is how often it is measured how fast the machine is.
	pulseInterval = 250 * time.Millisecond
	// pulseAtRest is how long a write takes at most on a machine that has time, and
	// slowest the least pace that is believed.
	pulseAtRest = 50 * time.Millisecond
	slowest     = 0.1
)

// pulse measures how fast the machine is until the context ends, by writes of the
// test's own to the hub: what takes them longer takes a hub longer. They are writes
// of a lease, which are not counted at rest.
func (r *round) pulse(ctx context.Context) {
	lease := &coordinationv1.Lease{ObjectMeta: r.meta("pulse")}
	tick := time.NewTicker(pulseInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		began := time.Now()
		if err := r.beat(ctx, lease); err != nil {
			continue // an outage of the hub, of which the model knows
		}
		ended := time.Now()
		if took := ended.Sub(began); took > pulseAtRest {
			pace := max(slowest, float64(pulseAtRest)/float64(took))
			r.views.tell(func(w *model.World) { w.Outage(model.Hub, pace, began.Add(-pulseInterval))(ended) })
		}
	}
}

// beat writes once.
func (r *round) beat(ctx context.Context, lease *coordinationv1.Lease) error {
	ctx, cancel := context.WithTimeout(ctx, soon)
	defer cancel()
	if lease.ResourceVersion == "" {
		if err := existing(r.f.hub.Create(ctx, lease)); err != nil || lease.ResourceVersion != "" {
			return err
		}
		return r.f.hub.Get(ctx, r.key(lease.Name), lease)
	}
	lease.Spec.LeaseTransitions = ptr.To(ptr.Deref(lease.Spec.LeaseTransitions, 0) + 1)
	err := r.f.hub.Update(ctx, lease)
	if err != nil {
		lease.ResourceVersion = "" // it may have been written all the same
	}
	return err
}
