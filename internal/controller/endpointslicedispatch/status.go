package endpointslicedispatch

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"

	networkingv1alpha1 "github.com/namesake-io/namesake/api/networking/v1alpha1"
	"github.com/namesake-io/namesake/internal/apply"
	"github.com/namesake-io/namesake/internal/discovery"
	"github.com/namesake-io/namesake/internal/snapshot"
)

const (
	// firstReport is how long a report waits for what happens together.
	firstReport = 50 * time.Millisecond
	// reportInterval is the least time between two status writes of one service.
	reportInterval = time.Second
	// settleWait is how long consumers that are on their way are waited for before
	// that is told. What is wrong is told at once. Longer than a restart takes, so
	// that a restart which changes nothing writes nothing.
	settleWait    = 10 * time.Second
	reportWorkers = 4
)

// Reporter writes the status of MultiClusterServices: coalesced, and only when
// it differs. It implements Board and the manager's Runnable.
type Reporter struct {
	source   snapshot.Source
	planner  *planner
	writer   apply.Writer
	recorder events.EventRecorder
	queue    workqueue.TypedRateLimitingInterface[types.NamespacedName]

	mu       sync.Mutex
	services map[types.NamespacedName]*reported
}

// reported is what is known of one service.
type reported struct {
	outcomes map[discovery.ClusterName]discovery.Outcome
	// current is the plan that consumers are being brought to, and holding are
	// those that have held it.
	current *discovery.Plan
	holding map[discovery.ClusterName]bool
	// last is the status as it was last written, and at is when. The hub's cache
	// may not show it yet.
	last *networkingv1alpha1.MultiClusterServiceStatus
	at   time.Time
	// unsettledSince is when consumers were first seen to be on their way.
	unsettledSince time.Time
}

// newReporter returns a reporter that has nothing to tell.
func newReporter(source snapshot.Source, planner *planner, writer apply.Writer, recorder events.EventRecorder) *Reporter {
	return &Reporter{
		source: source, planner: planner, writer: writer, recorder: recorder,
		queue: workqueue.NewTypedRateLimitingQueueWithConfig(
			workqueue.NewTypedItemExponentialFailureRateLimiter[types.NamespacedName](reportInterval, time.Minute),
			workqueue.TypedRateLimitingQueueConfig[types.NamespacedName]{Name: Name + "Status"}),
		services: map[types.NamespacedName]*reported{},
	}
}

// Record implements Board.
func (r *Reporter) Record(_ context.Context, plan *discovery.Plan, consumer discovery.ClusterName, outcome discovery.Outcome) error {
	outcome.Plan = plan
	r.mu.Lock()
	s := r.serviceOf(plan.Service)
	was := s.outcomes[consumer]
	s.outcomes[consumer] = outcome
	everywhere := s.holds(plan, consumer)
	r.mu.Unlock()
	if everywhere {
		if seen, known := r.planner.seenAt(plan); known {
			syncDuration.Observe(time.Since(seen).Seconds())
		}
	}
	if was != outcome {
		r.Add(plan.Service)
	}
	return nil
}

// holds counts a consumer that now holds a plan, and says whether it was the last
// one. The reporter's lock is held.
func (s *reported) holds(plan *discovery.Plan, consumer discovery.ClusterName) bool {
	if s.current != plan {
		s.current, s.holding = plan, map[discovery.ClusterName]bool{}
	}
	is := s.outcomes[consumer]
	if !plan.Selection.Consumes(consumer) || is.Reason != "" || s.holding[consumer] {
		return false
	}
	s.holding[consumer] = true
	return len(s.holding) == len(plan.Selection.Consumers)
}

// serviceOf returns what is known of a service. The lock is held.
func (r *Reporter) serviceOf(service types.NamespacedName) *reported {
	s := r.services[service]
	if s == nil {
		s = &reported{outcomes: map[discovery.ClusterName]discovery.Outcome{}}
		r.services[service] = s
	}
	return s
}

// Add implements Board.
func (r *Reporter) Add(service types.NamespacedName) { r.queue.AddAfter(service, firstReport) }

// AddAll implements Board.
func (r *Reporter) AddAll() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for service := range r.services {
		r.Add(service)
	}
}

// WaitingForNamespace implements Board.
func (r *Reporter) WaitingForNamespace(consumer discovery.ClusterName) []types.NamespacedName {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []types.NamespacedName
	for service, s := range r.services {
		if s.outcomes[consumer].Reason == networkingv1alpha1.ReasonNamespaceNotFound {
			out = append(out, service)
		}
	}
	return out
}

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (r *Reporter) NeedLeaderElection() bool { return true }

// Start implements manager.Runnable.
func (r *Reporter) Start(ctx context.Context) error {
	var workers sync.WaitGroup
	for range reportWorkers {
		workers.Go(func() {
			for r.work(ctx) {
			}
		})
	}
	<-ctx.Done()
	r.queue.ShutDown()
	workers.Wait()
	return nil
}

// work reports on one service. It returns false when the queue has ended.
func (r *Reporter) work(ctx context.Context) bool {
	service, shutdown := r.queue.Get()
	if shutdown {
		return false
	}
	defer r.queue.Done(service)
	wait, err := r.report(ctx, service)
	switch {
	case err == nil:
		r.queue.Forget(service)
		if wait > 0 {
			r.queue.AddAfter(service, wait)
		}
	case ctx.Err() == nil:
		klog.FromContext(ctx).Error(err, "Cannot report status, trying again", "service", service)
		r.queue.AddRateLimited(service)
	}
	return true
}

// report writes the status of one service, or returns when it may.
func (r *Reporter) report(ctx context.Context, service types.NamespacedName) (time.Duration, error) {
	mcs, err := r.source.Wish(ctx, service)
	if err != nil {
		return 0, err
	}
	if mcs == nil || mcs.DeletionTimestamp != nil {
		r.forget(service)
		return 0, nil
	}
	plan, err := r.planner.plan(ctx, service)
	if err != nil {
		return 0, err
	}
	template, err := r.source.Template(ctx, service)
	if err != nil {
		return 0, err
	}

	refused, err := r.source.Refused(ctx, service)
	if err != nil {
		return 0, err
	}

	now := time.Now()
	r.mu.Lock()
	outcomes := maps.Clone(r.serviceOf(service).outcomes)
	r.mu.Unlock()
	// Without the lock: it takes a look at every cluster, and each consumer that
	// is written meanwhile has an outcome to record.
	status, settled := plan.Report(discovery.ReportInput{
		MCS: mcs, Template: template, Outcomes: outcomes, Refused: refused, Now: now,
	})
	r.mu.Lock()
	s := r.serviceOf(service)
	wait := s.wait(now, settled)
	if wait == 0 && (s.shows(&mcs.Status, &status) || s.justWrote(now, &status)) {
		s.last = &status
		r.mu.Unlock()
		return 0, nil
	}
	r.mu.Unlock()
	if wait > 0 {
		return wait, nil
	}

	if err := r.write(ctx, mcs, &status); err != nil {
		return 0, err
	}
	r.mu.Lock()
	s.last, s.at, s.unsettledSince = &status, now, time.Time{}
	r.mu.Unlock()
	tell(r.recorder, mcs, &status, plan)
	return 0, nil
}

// forget drops what is known of a service that nobody wants.
func (r *Reporter) forget(service types.NamespacedName) {
	r.mu.Lock()
	delete(r.services, service)
	r.mu.Unlock()
	r.planner.forget(service)
}

// wait returns how long a write must wait: for the interval, and for consumers
// that are on their way.
func (s *reported) wait(now time.Time, settled bool) time.Duration {
	interval := s.at.Add(reportInterval).Sub(now)
	if settled {
		s.unsettledSince = time.Time{}
		return max(interval, 0)
	}
	if s.unsettledSince.IsZero() {
		s.unsettledSince = now
	}
	return max(interval, s.unsettledSince.Add(settleWait).Sub(now), 0)
}

// justWrote says that this is what was last written, and that the cache may not
// show it yet.
func (s *reported) justWrote(now time.Time, status *networkingv1alpha1.MultiClusterServiceStatus) bool {
	return s.last != nil && now.Sub(s.at) < 5*reportInterval && equality.Semantic.DeepEqual(*s.last, *status)
}

// shows says that the object already has our part of the status.
func (s *reported) shows(have, want *networkingv1alpha1.MultiClusterServiceStatus) bool {
	if have.Providers != want.Providers || have.Consumers != want.Consumers ||
		!equality.Semantic.DeepEqual(have.Clusters, want.Clusters) {
		return false
	}
	for _, c := range want.Conditions {
		if found := meta.FindStatusCondition(have.Conditions, c.Type); found == nil || !equality.Semantic.DeepEqual(*found, c) {
			return false
		}
	}
	return true
}

// write applies our part of the status.
func (r *Reporter) write(ctx context.Context, mcs *networkingv1alpha1.MultiClusterService, status *networkingv1alpha1.MultiClusterServiceStatus) error {
	data, err := json.Marshal(status)
	if err != nil {
		return fmt.Errorf("encoding a status: %w", err)
	}
	fields := map[string]any{}
	if err := json.Unmarshal(data, &fields); err != nil {
		return fmt.Errorf("encoding a status: %w", err)
	}
	delete(fields, "loadBalancer") // not ours
	obj := &unstructured.Unstructured{Object: map[string]any{"status": fields}}
	obj.SetGroupVersionKind(networkingv1alpha1.GroupVersion.WithKind("MultiClusterService"))
	obj.SetNamespace(mcs.Namespace)
	obj.SetName(mcs.Name)
	return r.writer.Status(ctx, obj)
}
