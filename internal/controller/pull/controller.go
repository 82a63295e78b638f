package pull

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/namesake-io/namesake/internal/apply"
	"github.com/namesake-io/namesake/internal/discovery"
	"github.com/namesake-io/namesake/internal/snapshot"
)

const (
	// name of the queue.
	name = "pull"
	// workers on services. All write to the hub, so no member can be slow.
	workers = 8
	// parallel bounds how many members of a service are written at once.
	parallel = 16
	// firstRetry and lastRetry bound how soon a failed service is tried again.
	firstRetry = 50 * time.Millisecond
	lastRetry  = 30 * time.Second
)

// everything is the key that stands for all services.
var everything = types.NamespacedName{}

// Dispatcher makes the plans and is told how consumers were brought to them.
type Dispatcher interface {
	Plan(ctx context.Context, service types.NamespacedName) (*discovery.Plan, error)
	Record(ctx context.Context, plan *discovery.Plan, consumer discovery.ClusterName, outcome discovery.Outcome) error
}

// Controller keeps the orders and deliveries of all pull members. It implements
// the manager's Runnable.
type Controller struct {
	source     snapshot.Source
	dispatcher Dispatcher
	writer     apply.Writer
	wrote      *apply.Memory
	queue      workqueue.TypedRateLimitingInterface[types.NamespacedName]
}

// New returns the controller. Its Enqueue functions are to be called when plans or
// Works change.
func New(source snapshot.Source, dispatcher Dispatcher, hub client.Client) *Controller {
	return &Controller{
		source: source, dispatcher: dispatcher, writer: apply.NewWriter(hub, "namesake-pull"), wrote: apply.NewMemory(),
		queue: workqueue.NewTypedRateLimitingQueueWithConfig(
			workqueue.NewTypedItemExponentialFailureRateLimiter[types.NamespacedName](firstRetry, lastRetry),
			workqueue.TypedRateLimitingQueueConfig[types.NamespacedName]{Name: name}),
	}
}

// EnqueueService has a service looked at in every pull member.
func (c *Controller) EnqueueService(service types.NamespacedName) { c.queue.Add(service) }

// EnqueueAll has every service looked at.
func (c *Controller) EnqueueAll() { c.queue.Add(everything) }

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (c *Controller) NeedLeaderElection() bool { return true }

// Start implements manager.Runnable.
func (c *Controller) Start(ctx context.Context) error {
	c.EnqueueAll()
	var running sync.WaitGroup
	for range workers {
		running.Go(func() {
			for c.work(ctx) {
			}
		})
	}
	<-ctx.Done()
	c.queue.ShutDown()
	running.Wait()
	return nil
}

// work takes one key. It returns false when the queue has ended.
func (c *Controller) work(ctx context.Context) bool {
	key, shutdown := c.queue.Get()
	if shutdown {
		return false
	}
	defer c.queue.Done(key)
	again, err := c.reconcile(ctx, key)
	switch {
	case err == nil:
		c.queue.Forget(key)
		if again > 0 {
			c.queue.AddAfter(key, again)
		}
	case ctx.Err() == nil:
		klog.FromContext(ctx).Error(err, "Cannot bring a service to agents, trying again", "service", key)
		c.queue.AddRateLimited(key)
	}
	return true
}

// reconcile makes one service right for all pull members.
func (c *Controller) reconcile(ctx context.Context, service types.NamespacedName) (time.Duration, error) {
	if service == everything {
		return 0, c.enqueueEach(ctx)
	}
	st, found, err := c.observe(ctx, service)
	if err != nil || !found {
		return 0, err
	}
	if wait := c.behind(st); wait > 0 {
		return wait, nil
	}
	again := st.plan.RecheckAfter
	var mu sync.Mutex
	var errs []error
	var running sync.WaitGroup
	slots := make(chan struct{}, parallel)
	for _, m := range st.members {
		slots <- struct{}{}
		running.Go(func() {
			defer func() { <-slots }()
			wait, err := c.bring(ctx, st, m)
			mu.Lock()
			defer mu.Unlock()
			errs = append(errs, err)
			if wait > 0 && (again == 0 || wait < again) {
				again = wait
			}
		})
	}
	running.Wait()
	if err := errors.Join(errs...); err != nil {
		return 0, fmt.Errorf("bringing %s to agents: %w", service, err)
	}
	return again, nil
}

// bring makes one service right for one member.
func (c *Controller) bring(ctx context.Context, st *state, m *memberState) (time.Duration, error) {
	p, err := plan(st, m)
	if err != nil {
		return 0, err
	}
	again, err := c.apply(ctx, p)
	if err != nil || p.Outcome == nil {
		return again, err
	}
	return again, c.dispatcher.Record(ctx, st.plan, m.name, *p.Outcome)
}

// enqueueEach adds every service that is wished for, and every one of which
// something stands.
func (c *Controller) enqueueEach(ctx context.Context) error {
	standing, err := c.standing(ctx)
	if err != nil {
		return err
	}
	for _, service := range append(c.source.Interest.Services(), standing...) {
		c.queue.Add(service)
	}
	return nil
}
