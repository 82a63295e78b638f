package member

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"

	"github.com/namesake-io/namesake/internal/discovery"
)

const (
	firstRetry = 50 * time.Millisecond
	lastRetry  = 30 * time.Second
)

// Reconciler makes one thing right in one member. It returns when to look again
// though nothing happens (zero: not), or an error to be tried again.
type Reconciler[K comparable] interface {
	Reconcile(ctx context.Context, m *Member, key K) (time.Duration, error)
	// Seed calls add for every key that may need work in the member. It is called
	// when the member is first seen, when its slices are known, and when it comes
	// back; whatever was missed meanwhile is found by it. What is known to have
	// changed is looked at before all that.
	Seed(ctx context.Context, m *Member, add func(K)) error
}

// Queues is a work queue with workers of its own for each member, so that one
// that hangs delays none but itself. It runs on the leader only and implements
// the manager's Runnable.
type Queues[K comparable] struct {
	name       string
	workers    int
	registry   *Registry
	reconciler Reconciler[K]

	mu sync.Mutex
	// spawn runs a function in the life of the queues. Nil before Start and after
	// the end.
	spawn   func(func(context.Context))
	queues  map[ID]*queue[K]
	running sync.WaitGroup
}

// queue is that of one member.
type queue[K comparable] struct {
	workqueue.TypedRateLimitingInterface[K]
	lanes   *lanes[K]
	member  *Member
	metrics queueMetrics
	ended   chan struct{}
}

// NewQueues returns queues that are fed by Add and drained once started.
func NewQueues[K comparable](name string, workers int, registry *Registry, reconciler Reconciler[K]) *Queues[K] {
	q := &Queues[K]{name: name, workers: workers, registry: registry, reconciler: reconciler, queues: map[ID]*queue[K]{}}
	registry.Subscribe(q.handle)
	return q
}

// Start implements manager.Runnable: it works until the context ends.
func (q *Queues[K]) Start(ctx context.Context) error {
	q.mu.Lock()
	q.spawn = func(f func(context.Context)) {
		q.running.Go(func() { f(klog.NewContext(ctx, klog.FromContext(ctx).WithValues("controller", q.name))) })
	}
	q.mu.Unlock()
	q.Reseed()
	<-ctx.Done()

	q.mu.Lock()
	q.spawn = nil
	for id := range q.queues {
		q.end(id)
	}
	q.mu.Unlock()
	q.running.Wait()
	return nil
}

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (q *Queues[K]) NeedLeaderElection() bool { return true }

// Add has a key looked at in the named member. Without such a member, or before
// Start, there is nothing to do: seeding will find the key.
func (q *Queues[K]) Add(name discovery.ClusterName, key K) {
	if m, found := q.registry.Get(name); found {
		if mq := q.queueOf(m); mq != nil {
			mq.Add(key)
		}
	}
}

// AddAll has a key looked at in every member.
func (q *Queues[K]) AddAll(key K) {
	for _, m := range q.registry.List() {
		if mq := q.queueOf(m); mq != nil {
			mq.Add(key)
		}
	}
}

// Reseed has everything looked at in every member.
func (q *Queues[K]) Reseed() {
	for _, m := range q.registry.List() {
		q.seed(m)
	}
}

// handle follows the life of members.
func (q *Queues[K]) handle(e Event) {
	switch e.Kind {
	case EventSynced, EventHealth:
		// Also when it stops answering: then what cannot be done is told.
		q.seed(e.Member)
	case EventLeft:
		q.mu.Lock()
		defer q.mu.Unlock()
		if mq := q.queues[e.Member.id]; mq != nil && mq.member == e.Member {
			q.end(e.Member.id)
		}
	case EventWatch, EventSlice, EventObject:
	}
}

// seed has everything looked at in one member. It does not block: the keys are
// gathered on a goroutine of its own.
func (q *Queues[K]) seed(m *Member) {
	mq := q.queueOf(m)
	if mq == nil {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.spawn == nil {
		return
	}
	q.spawn(func(ctx context.Context) {
		if err := q.reconciler.Seed(ctx, m, mq.addLater); err != nil && ctx.Err() == nil {
			klog.FromContext(ctx).Error(err, "Cannot gather work for a member", "member", m.id.Name)
		}
	})
}

// queueOf returns the member's queue, made and drained from the first call on.
// Nil before Start and after the end, and for a connection that is not the one in
// the registry: one that has left, or is still being made. A member that is
// connected anew, under the same ID, gets a new queue.
func (q *Queues[K]) queueOf(m *Member) *queue[K] {
	q.mu.Lock()
	defer q.mu.Unlock()
	if current, found := q.registry.Get(m.id.Name); q.spawn == nil || !found || current != m {
		return nil
	}
	if have := q.queues[m.id]; have != nil {
		if have.member == m {
			return have
		}
		q.end(m.id)
	}
	mq := newQueue[K](q.name, m)
	q.queues[m.id] = mq
	q.spawn(func(ctx context.Context) { q.drain(ctx, mq) })
	return mq
}

// newQueue returns a controller's queue for a member.
func newQueue[K comparable](controller string, m *Member) *queue[K] {
	order, metrics := newLanes[K](), queueMetrics{controller, string(m.id.Name)}
	delaying := workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[K]{
		Name: controller, MetricsProvider: metrics,
		Queue: workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[K]{Name: controller, MetricsProvider: metrics, Queue: order}),
	})
	return &queue[K]{
		TypedRateLimitingInterface: workqueue.NewTypedRateLimitingQueueWithConfig(
			workqueue.TypedRateLimiter[K](jittered[K]{workqueue.NewTypedItemExponentialFailureRateLimiter[K](firstRetry, lastRetry)}),
			workqueue.TypedRateLimitingQueueConfig[K]{Name: controller, MetricsProvider: metrics, DelayingQueue: delaying}),
		lanes:   order,
		member:  m,
		metrics: metrics,
		ended:   make(chan struct{}),
	}
}

// addLater has a key looked at after those that are known to have changed.
func (mq *queue[K]) addLater(key K) {
	mq.lanes.later(key)
	mq.Add(key)
}

// end stops the queue of one member. The lock is held.
func (q *Queues[K]) end(id ID) {
	if mq := q.queues[id]; mq != nil {
		close(mq.ended)
		mq.metrics.forget()
		delete(q.queues, id)
	}
}

// drain runs the workers of one queue until it has ended.
func (q *Queues[K]) drain(ctx context.Context, mq *queue[K]) {
	ctx, cancel := context.WithCancel(klog.NewContext(ctx, klog.FromContext(ctx).WithValues("member", mq.member.id.Name)))
	defer cancel()
	var workers sync.WaitGroup
	for range q.workers {
		workers.Go(func() {
			for q.work(ctx, mq) {
			}
		})
	}
	<-mq.ended
	cancel()
	mq.ShutDown()
	workers.Wait()
}

// work takes one key. It returns false when the queue has ended.
func (q *Queues[K]) work(ctx context.Context, mq *queue[K]) bool {
	key, shutdown := mq.Get()
	if shutdown {
		return false
	}
	defer mq.Done(key)

	again, err := q.reconciler.Reconcile(ctx, mq.member, key)
	switch {
	case err == nil:
		mq.Forget(key)
		if again > 0 {
			mq.AddAfter(key, again)
		}
	case ctx.Err() != nil:
	case errors.Is(err, ErrUnreachable):
		// Nothing to try until it is back; then everything is looked at.
		mq.Forget(key)
	default:
		klog.FromContext(ctx).Error(err, "Reconcile failed, trying again", "key", key)
		mq.AddRateLimited(key)
	}
	return true
}

// jittered spreads the delays of another limiter over their later half, so that
// what failed together does not come back together.
type jittered[K comparable] struct {
	workqueue.TypedRateLimiter[K]
}

// When implements workqueue.TypedRateLimiter.
func (j jittered[K]) When(key K) time.Duration {
	delay := j.TypedRateLimiter.When(key)
	return delay/2 + rand.N(delay/2+1)
}
