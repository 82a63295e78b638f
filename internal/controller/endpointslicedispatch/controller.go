package endpointslicedispatch

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	clusterv1alpha1 "github.com/namesake-io/namesake/api/cluster/v1alpha1"
	networkingv1alpha1 "github.com/namesake-io/namesake/api/networking/v1alpha1"
	workv1alpha1 "github.com/namesake-io/namesake/api/work/v1alpha1"
	"github.com/namesake-io/namesake/internal/apply"
	"github.com/namesake-io/namesake/internal/discovery"
	"github.com/namesake-io/namesake/internal/manifest"
	"github.com/namesake-io/namesake/internal/member"
	"github.com/namesake-io/namesake/internal/snapshot"
)

// Name of the controller, as users pass it to --controllers.
const Name = "endpointsliceDispatch"

// workers per member.
const workers = 4

// Controller dispatches slices to all consumers.
type Controller struct {
	source   snapshot.Source
	planner  *planner
	queues   *member.Queues[types.NamespacedName]
	reporter *reporter
	started  time.Time

	mu sync.Mutex
	// placed is which service each dispatched slice belongs to, by consumer, so
	// that a slice whose labels were edited away is still somebody's.
	placed map[member.ID]map[types.NamespacedName]types.NamespacedName
}

// New returns the controller. Its Runnables are to be added to the manager, and
// its Enqueue functions to be called for what it watches.
func New(source snapshot.Source, hub client.Client, recorder events.EventRecorder) *Controller {
	c := &Controller{
		source: source, planner: newPlanner(source), started: time.Now(),
		placed: map[member.ID]map[types.NamespacedName]types.NamespacedName{},
	}
	c.reporter = newReporter(source, c.planner, apply.NewWriter(hub, "namesake-dispatch-status"), recorder)
	c.queues = member.NewQueues(Name, workers, source.Members, c)
	source.Members.Subscribe(c.memberChanged)
	return c
}

// Queues and Reporter return what has to run.
func (c *Controller) Queues() *member.Queues[types.NamespacedName] { return c.queues }

// Reporter returns what writes the status.
func (c *Controller) Reporter() manager.Runnable { return c.reporter }

// Services returns the metric of how services are.
func (c *Controller) Services() prometheus.Collector { return c.reporter }

// EnqueueService has a service planned and looked at anew in every consumer.
func (c *Controller) EnqueueService(service types.NamespacedName) {
	c.planner.invalidate(service)
	c.queues.AddAll(service)
	c.reporter.add(service)
}

// EnqueueReport has the status of a service looked at: what others say there, for
// example that the Service is applied, is part of what is reported.
func (c *Controller) EnqueueReport(service types.NamespacedName) { c.reporter.add(service) }

// EnqueueAll has everything planned and looked at, after the set of clusters has
// changed.
func (c *Controller) EnqueueAll() {
	c.planner.invalidateAll()
	c.queues.Reseed()
	c.reporter.addAll()
}

// EnqueueWork has a service looked at whose collected Work has changed, if that is
// the best that is known of the provider. What a cluster says on the Work of the
// Service is reported.
func (c *Controller) EnqueueWork(work *workv1alpha1.Work) {
	provider, found := clusterv1alpha1.ClusterOf(work.Namespace)
	service := types.NamespacedName{
		Namespace: work.Labels[networkingv1alpha1.NamespaceKey], Name: work.Labels[networkingv1alpha1.NameKey],
	}
	if !found || service.Name == "" {
		return
	}
	if !manifest.IsCollected(work) {
		c.reporter.add(service)
		return
	}
	if m, connected := c.source.Members.Get(discovery.ClusterName(provider)); connected && m.Slices().Synced() {
		return
	}
	c.EnqueueService(service)
}

// memberChanged enqueues what an event of a member may have an effect on.
func (c *Controller) memberChanged(e member.Event) {
	switch e.Kind {
	case member.EventSlice:
		for _, slice := range []*discoveryv1.EndpointSlice{e.Old, e.New} {
			c.sliceChanged(e.Member, slice)
		}
	case member.EventSynced:
		// Now its word counts: what is gone there goes everywhere.
		c.EnqueueAll()
	case member.EventHealth:
		c.healthChanged()
	case member.EventLeft:
		c.mu.Lock()
		delete(c.placed, e.Member.ID())
		c.mu.Unlock()
		c.EnqueueAll()
	case member.EventObject:
		if e.GVK == member.NamespaceKind {
			c.namespaceChanged(e.Member, e.Key.Name)
		}
	}
}

// healthChanged enqueues the services whose policy makes the health of a provider
// matter: what returns is restored at once.
func (c *Controller) healthChanged() {
	c.reporter.addAll()
	for service := range c.source.Interest.Sensitive() {
		c.EnqueueService(service)
	}
}

// sliceChanged enqueues the service of a slice: everywhere when the slice is the
// member's own, there alone when it was dispatched.
func (c *Controller) sliceChanged(m *member.Member, slice *discoveryv1.EndpointSlice) {
	if slice == nil {
		return
	}
	service := types.NamespacedName{Namespace: slice.Namespace, Name: slice.Labels[discoveryv1.LabelServiceName]}
	if !discovery.Dispatched(slice) {
		if c.source.Interest.Has(service) {
			c.EnqueueService(service)
		}
		return
	}
	if service.Name != "" {
		c.queues.Add(m.Name(), service)
	}
	c.mu.Lock()
	owner, found := c.placed[m.ID()][client.ObjectKeyFromObject(slice)]
	c.mu.Unlock()
	if found && owner != service {
		c.queues.Add(m.Name(), owner)
	}
}

// namespaceChanged enqueues the services of a namespace that a consumer may have
// been missing.
func (c *Controller) namespaceChanged(m *member.Member, namespace string) {
	for _, service := range c.reporter.waitingForNamespace(m.Name()) {
		if service.Namespace == namespace {
			c.queues.Add(m.Name(), service)
		}
	}
}

// Seed implements member.Reconciler: every wanted service, and every service of
// which something stands in the member.
func (c *Controller) Seed(ctx context.Context, m *member.Member, add func(types.NamespacedName)) error {
	list := &networkingv1alpha1.MultiClusterServiceList{}
	if err := c.source.Reader.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("listing MultiClusterServices: %w", err)
	}
	for i := range list.Items {
		add(client.ObjectKeyFromObject(&list.Items[i]))
	}
	for _, service := range m.Slices().DispatchedServices() {
		add(service)
	}
	return nil
}

// Reconcile implements member.Reconciler: one service in one consumer.
func (c *Controller) Reconcile(ctx context.Context, m *member.Member, service types.NamespacedName) (time.Duration, error) {
	plan, err := c.planner.plan(ctx, service)
	if err != nil {
		return 0, err
	}
	if !m.Slices().Synced() {
		// What stands there is not known. It is looked at once it is known.
		if !m.Reachable() {
			c.reporter.record(plan, m.Name(), outcomeOf(member.ErrUnreachable))
		}
		return 0, nil
	}
	changes := plan.For(m.Name(), standing(m, plan))
	c.place(m, plan)
	err = c.apply(ctx, m, changes)
	c.reporter.record(plan, m.Name(), outcomeOf(err))
	if err != nil {
		return retryable(err)
	}
	return plan.RecheckAfter, nil
}

// place remembers which service a consumer's slices belong to.
func (c *Controller) place(m *member.Member, plan *discovery.Plan) {
	c.mu.Lock()
	defer c.mu.Unlock()
	owners := c.placed[m.ID()]
	if owners == nil {
		owners = map[types.NamespacedName]types.NamespacedName{}
		c.placed[m.ID()] = owners
	}
	for _, name := range names(plan, m.Name()) {
		owners[types.NamespacedName{Namespace: plan.Service.Namespace, Name: string(name)}] = plan.Service
	}
}
