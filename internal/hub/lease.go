package hub

import (
	"context"
	"fmt"
	"os"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	coordinationv1 "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/namesake-io/namesake/internal/apply"
)

// leaseName is the name of the lease that the leader holds.
const leaseName = "namesake-controller-manager"

// lock is the lease, with a fence that is open while it is held for sure. Others
// wait for --leader-elect-lease-duration after the last renewal that they saw,
// which is never before it was sent. The fence closes earlier, at
// --leader-elect-renew-deadline:
//
//	renewal sent        fence closes          another replica may start
//	     ├── renew deadline ──┤── time for what ──┤
//	                              is under way
type lock struct {
	resourcelock.Interface
	fence    *apply.Fence
	validity time.Duration
	// held is true once this replica has been the leader.
	held atomic.Bool
}

// newLock returns the lease that the leader holds.
func newLock(config *rest.Config, opts *Options, fence *apply.Fence) (*lock, error) {
	identity := opts.LeaderElectIdentity
	if identity == "" {
		host, err := os.Hostname()
		if err != nil {
			return nil, fmt.Errorf("making a name for this replica: %w", err)
		}
		identity = host + "_" + string(uuid.NewUUID())
	}
	// A client of its own: a queue of other requests must not cost the lease. And a
	// configuration of its own: its limit would end every watch of the others.
	config = rest.AddUserAgent(rest.CopyConfig(config), "leader-election")
	config.Timeout = opts.RenewDeadline / 2
	client, err := coordinationv1.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making a client for the lease: %w", err)
	}
	return &lock{
		Interface: &resourcelock.LeaseLock{
			LeaseMeta:  metav1.ObjectMeta{Namespace: opts.LeaderElectNamespace, Name: leaseName},
			Client:     client,
			LockConfig: resourcelock.ResourceLockConfig{Identity: identity},
		},
		fence: fence, validity: opts.RenewDeadline,
	}, nil
}

// Create implements resourcelock.Interface.
func (l *lock) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.write(ctx, record, l.Interface.Create)
}

// Update implements resourcelock.Interface.
func (l *lock) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.write(ctx, record, l.Interface.Update)
}

// write moves the fence with the lease. It closes before the lease is given back.
func (l *lock) write(ctx context.Context, record resourcelock.LeaderElectionRecord,
	write func(context.Context, resourcelock.LeaderElectionRecord) error,
) error {
	begun := time.Now()
	ours := record.HolderIdentity == l.Identity()
	if !ours {
		l.fence.Close()
	}
	if err := write(ctx, record); err != nil {
		return err
	}
	if ours {
		l.held.Store(true)
		l.fence.OpenUntil(begun.Add(l.validity))
	}
	return nil
}
