package endpointslicedispatch

import (
	"context"
	"errors"
	"sync"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/namesake-io/namesake/api/cluster/v1alpha1"
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

const (
	// listWait is how long the next of the members that are being listed is waited
	// for. One that never answers costs the others this once.
	listWait = 500 * time.Millisecond
	// listsWait is how long they are waited for together.
	listsWait = 3 * time.Second
	// lookCost is about what it takes to look at one service.
	lookCost = time.Millisecond
)

// Board is told how consumers are. It must not block, but for Record.
type Board interface {
	// Record takes in how the attempt ended to bring a consumer to a plan.
	Record(ctx context.Context, plan *discovery.Plan, consumer discovery.ClusterName, outcome discovery.Outcome) error
	// Add has a service reported on soon, and AddAll every one.
	Add(service types.NamespacedName)
	AddAll()
	// WaitingForNamespace returns the services that a consumer has no namespace for.
	WaitingForNamespace(consumer discovery.ClusterName) []types.NamespacedName
}

// Plans say what consumers should hold.
type Plans interface {
	// Services are those of which consumers may have to hold something.
	Services(ctx context.Context) ([]types.NamespacedName, error)
	// Plan makes the plan of a service as of now. From when on time alone makes it
	// another one, the plan says.
	Plan(ctx context.Context, service types.NamespacedName) (*discovery.Plan, error)
}

// Controller dispatches slices to all consumers.
type Controller struct {
	source  snapshot.Source
	plans   Plans
	planner *planner
	queues  *member.Queues[types.NamespacedName]
	board   Board
	// followers are told of every service that is to be looked at everywhere.
	followers []Follower
	started   time.Time

	mu sync.Mutex
	// placed is which service each dispatched slice belongs to, by consumer, so
	// that a slice whose labels were edited away is still somebody's.
	placed map[member.ID]map[types.NamespacedName]types.NamespacedName
	// listed are the members that have been listed and whose word waits to count,
	// the first since listedSince, all until listedTimer ends. Nil: none does.
	listed      map[discovery.ClusterName]bool
	listedSince time.Time
	listedTimer *time.Timer
	// pauseUntil is when the last look at such members is over, more or less.
	pauseUntil time.Time
}

// Follower is somebody else who brings the plans to consumers.
type Follower interface {
	EnqueueService(service types.NamespacedName)
	EnqueueAll()
}

// New returns the hub's controller and what writes the status of
// MultiClusterServices. Both, and the controller's Queues, are to be run, and its
// Enqueue functions to be called for what it watches.
func New(source snapshot.Source, hub client.Client, recorder events.EventRecorder) (*Controller, *Reporter) {
	c := NewWith(source, wishes{source}, nil)
	reporter := newReporter(source, c.planner, apply.NewWriter(hub, "namesake-dispatch-status"), recorder)
	c.board = reporter
	return c, reporter
}

// NewWith returns a controller that takes its plans from elsewhere, and tells a
// board how it went.
func NewWith(source snapshot.Source, plans Plans, board Board) *Controller {
	c := &Controller{
		source: source, plans: plans, planner: newPlanner(plans), board: board, started: time.Now(),
		placed: map[member.ID]map[types.NamespacedName]types.NamespacedName{},
	}
	c.queues = member.NewQueues(Name, workers, source.Members, c)
	source.Members.Subscribe(c.memberChanged)
	return c
}

// Queues returns what has to run.
func (c *Controller) Queues() *member.Queues[types.NamespacedName] { return c.queues }

// Follow has a follower told from now on. Before anything runs.
func (c *Controller) Follow(f Follower) { c.followers = append(c.followers, f) }

// Plan returns the plan of a service as of now, one for all who ask.
func (c *Controller) Plan(ctx context.Context, service types.NamespacedName) (*discovery.Plan, error) {
	return c.planner.plan(ctx, service)
}

// Record takes in how a follower has brought a consumer to a plan.
func (c *Controller) Record(ctx context.Context, plan *discovery.Plan, consumer discovery.ClusterName, outcome discovery.Outcome) error {
	return c.board.Record(ctx, plan, consumer, outcome)
}

// EnqueueService has a service planned and looked at anew in every member: who
// takes part may have changed.
func (c *Controller) EnqueueService(service types.NamespacedName) {
	c.planner.invalidate(service)
	c.queues.AddAll(service)
	c.tellOf(service)
}

// enqueueEndpoints has a service planned and looked at anew in every consumer, after
// the endpoints of a provider have changed.
func (c *Controller) enqueueEndpoints(service types.NamespacedName) {
	c.enqueueAffected(c.planner.invalidateEndpoints(service))
}

// enqueueAffected has a service looked at in every consumer.
func (c *Controller) enqueueAffected(a affected) {
	if !a.known {
		c.queues.AddAll(a.service)
	}
	for _, consumer := range a.consumers {
		c.queues.Add(consumer, a.service)
	}
	c.tellOf(a.service)
}

// tellOf has others look at a service too.
func (c *Controller) tellOf(service types.NamespacedName) {
	for _, f := range c.followers {
		f.EnqueueService(service)
	}
	c.board.Add(service)
}

// EnqueueReport has the status of a service looked at: what others say there, for
// example that the Service is applied, is part of what is reported.
func (c *Controller) EnqueueReport(service types.NamespacedName) { c.board.Add(service) }

// EnqueueAll has everything planned and looked at, after the set of clusters has
// changed.
func (c *Controller) EnqueueAll() {
	c.planner.invalidateAll()
	c.queues.Reseed()
	for _, f := range c.followers {
		f.EnqueueAll()
	}
	c.board.AddAll()
}

// EnqueueWork has a service looked at whose collected Work has changed, if that is
// the best that is known of the provider. What a cluster says on the Work of the
// Service is reported.
func (c *Controller) EnqueueWork(work *workv1alpha1.Work) {
	provider, found := clusterv1alpha1.ClusterOf(work.Namespace)
	service := manifest.ServiceOf(work)
	switch {
	case !found || service.Name == "":
		return
	case manifest.IsCollected(work), manifest.IsOrder(work):
		if !c.source.Interest.Has(service) {
			return // whatever a member writes there, nobody asked for it
		}
	case manifest.IsDelivery(work):
		for _, f := range c.followers {
			f.EnqueueService(service)
		}
		return
	default:
		c.board.Add(service)
		return
	}
	if m, connected := c.source.Members.Get(discovery.ClusterName(provider)); connected && m.Slices().Synced() {
		return
	}
	c.enqueueEndpoints(service)
}

// memberChanged enqueues what an event of a member may have an effect on.
func (c *Controller) memberChanged(e member.Event) {
	switch e.Kind {
	case member.EventSlice:
		for _, slice := range []*discoveryv1.EndpointSlice{e.Old, e.New} {
			c.sliceChanged(e.Member, slice)
		}
	case member.EventSynced:
		c.memberListed(e.Member.Name())
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

// memberListed has what a member provides looked at: its word counts now, and what
// is gone there goes everywhere. While others are being listed, as after a start, it
// waits for them for as long as they come, so that a service is looked at once and
// not once for each of them.
func (c *Controller) memberListed(name discovery.ClusterName) {
	listing := c.source.Members.Listing()
	c.mu.Lock()
	defer c.mu.Unlock()
	pause := time.Until(c.pauseUntil)
	if c.listed == nil {
		c.listed, c.listedSince = map[discovery.ClusterName]bool{name: true}, time.Now()
		c.listedTimer = time.AfterFunc(listDelay(listing, 0, pause), c.lookAtListed)
		return
	}
	c.listed[name] = true
	c.listedTimer.Reset(listDelay(listing, time.Since(c.listedSince), pause))
}

// lookAtListed looks at what the members provide that have been listed.
func (c *Controller) lookAtListed() {
	c.mu.Lock()
	listed := c.listed
	c.listed = nil
	c.mu.Unlock()
	if listed == nil {
		return // the timer had ended already when it was to wait for one more
	}
	services := c.planner.invalidateProviders(listed)
	for _, a := range services {
		c.enqueueAffected(a)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pauseUntil = time.Now().Add(min(listWait, time.Duration(len(services))*lookCost))
}

// listDelay returns how long to wait for more members to be listed: for those that
// are being listed, if some are, after having waited for so long, and until a pause
// after the last look has passed.
func listDelay(listing bool, waited, pause time.Duration) time.Duration {
	if !listing {
		return max(0, pause)
	}
	return max(0, pause, min(listWait, listsWait-waited))
}

// healthChanged enqueues the services whose policy makes the health of a provider
// matter: what returns is restored at once.
func (c *Controller) healthChanged() {
	c.board.AddAll()
	for service := range c.source.Interest.Sensitive() {
		c.enqueueEndpoints(service)
	}
}

// sliceChanged enqueues the service of a slice: in every consumer when the slice is
// the member's own, there alone when it was dispatched.
func (c *Controller) sliceChanged(m *member.Member, slice *discoveryv1.EndpointSlice) {
	if slice == nil {
		return
	}
	service := types.NamespacedName{Namespace: slice.Namespace, Name: slice.Labels[discoveryv1.LabelServiceName]}
	if !discovery.Dispatched(slice) {
		if c.source.Interest.Has(service) {
			c.enqueueEndpoints(service)
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
	for _, service := range c.board.WaitingForNamespace(m.Name()) {
		if service.Namespace == namespace {
			c.queues.Add(m.Name(), service)
		}
	}
}

// Seed implements member.Reconciler: every wanted service that the member consumes,
// and every service of which something stands in it.
func (c *Controller) Seed(ctx context.Context, m *member.Member, add func(types.NamespacedName)) error {
	wanted, err := c.plans.Services(ctx)
	if err != nil {
		return err
	}
	for _, service := range c.planner.concerning(m.Name(), wanted) {
		add(service)
	}
	for _, service := range m.Slices().DispatchedServices() {
		add(service)
	}
	return nil
}

// Reconcile implements member.Reconciler: one service in one consumer.
func (c *Controller) Reconcile(ctx context.Context, m *member.Member, service types.NamespacedName) (time.Duration, error) {
	known := m.Slices().Synced()
	if !known && m.Reachable() {
		// What stands there is not known. It is looked at once it is known.
		return 0, nil
	}
	plan, err := c.planner.plan(ctx, service)
	if err != nil {
		return 0, err
	}
	if !known {
		return 0, c.board.Record(ctx, plan, m.Name(), outcomeOf(member.ErrUnreachable))
	}
	have := standing(m, plan)
	if !plan.Selection.Consumes(m.Name()) && len(have.Dispatched) == 0 {
		return 0, nil // most members, in a large fleet
	}
	changes := plan.For(m.Name(), have)
	c.place(m, plan)
	err = c.apply(ctx, m, changes)
	if recordErr := c.board.Record(ctx, plan, m.Name(), outcomeOf(err)); recordErr != nil {
		return 0, errors.Join(err, recordErr)
	}
	if err != nil {
		return retryable(err)
	}
	if len(changes.Delete) > 0 {
		// What was deleted to be made anew, with another address type, is made now:
		// of our own deletions no event is told.
		c.queues.Add(m.Name(), service)
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
