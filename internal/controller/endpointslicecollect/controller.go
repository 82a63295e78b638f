package endpointslicecollect

import (
	"context"
	"fmt"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"
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
const Name = "endpointsliceCollect"

// workers per member.
const workers = 2

// Demand says which slices are wanted.
type Demand interface {
	// Services are those of which a provider's slices may be wanted.
	Services(ctx context.Context, provider discovery.ClusterName) ([]types.NamespacedName, error)
	// Of says whether a provider's slices of a service are wanted.
	Of(ctx context.Context, provider discovery.ClusterName, service types.NamespacedName) (Want, error)
	// Collected is told when all of them are remembered, each time that it was
	// looked at.
	Collected(ctx context.Context, provider discovery.ClusterName, service types.NamespacedName) error
}

// Want is what is wanted of one provider and service.
type Want struct {
	// Wanted: its slices are to be remembered. Hold: that cannot be told.
	Wanted, Hold bool
	// PermanentID is that of the MultiClusterService, if it has one.
	PermanentID string
}

// Controller collects the slices of all members.
type Controller struct {
	source snapshot.Source
	demand Demand
	writer apply.Writer
	wrote  *apply.Memory
	queues *member.Queues[types.NamespacedName]
}

// New returns the controller. Its Queues are to be added to the manager, and its
// Enqueue functions to be called for what it watches.
func New(source snapshot.Source, demand Demand, hub client.Client) *Controller {
	c := &Controller{source: source, demand: demand, writer: apply.NewWriter(hub, "namesake-collect"), wrote: apply.NewMemory()}
	c.queues = member.NewQueues(Name, workers, source.Members, c)
	source.Members.Subscribe(c.memberChanged)
	return c
}

// Queues returns what has to run.
func (c *Controller) Queues() *member.Queues[types.NamespacedName] { return c.queues }

// memberChanged enqueues the services of an own slice of a member.
func (c *Controller) memberChanged(e member.Event) {
	if e.Kind != member.EventSlice {
		return
	}
	for _, slice := range []*discoveryv1.EndpointSlice{e.Old, e.New} {
		if slice == nil || discovery.Dispatched(slice) {
			continue
		}
		service := types.NamespacedName{Namespace: slice.Namespace, Name: slice.Labels[discoveryv1.LabelServiceName]}
		if c.source.Interest.Has(service) {
			c.queues.Add(e.Member.Name(), service)
		}
	}
}

// EnqueueService has a service looked at in every member.
func (c *Controller) EnqueueService(service types.NamespacedName) { c.queues.AddAll(service) }

// EnqueueAll has everything looked at, after the set of clusters has changed.
func (c *Controller) EnqueueAll() { c.queues.Reseed() }

// EnqueueWork has the service of a collected Work looked at in its member.
func (c *Controller) EnqueueWork(work *workv1alpha1.Work) {
	name, found := clusterv1alpha1.ClusterOf(work.Namespace)
	if service := manifest.ServiceOf(work); found && manifest.IsCollected(work) && service.Name != "" {
		c.queues.Add(discovery.ClusterName(name), service)
	}
}

// Seed implements member.Reconciler: every service that is wanted of the member, and
// every one of which something is remembered.
func (c *Controller) Seed(ctx context.Context, m *member.Member, add func(types.NamespacedName)) error {
	wanted, err := c.demand.Services(ctx, m.Name())
	if err != nil {
		return err
	}
	for _, service := range wanted {
		add(service)
	}
	works := &workv1alpha1.WorkList{}
	if err := c.source.Reader.List(ctx, works, client.UnsafeDisableDeepCopy,
		client.InNamespace(clusterv1alpha1.ExecutionNamespace(string(m.Name())))); err != nil {
		return fmt.Errorf("listing Works: %w", err)
	}
	for i := range works.Items {
		if manifest.IsCollected(&works.Items[i]) {
			add(manifest.ServiceOf(&works.Items[i]))
		}
	}
	return nil
}

// Reconcile implements member.Reconciler: one service of one provider.
func (c *Controller) Reconcile(ctx context.Context, m *member.Member, service types.NamespacedName) (time.Duration, error) {
	st, err := c.observe(ctx, m, service)
	if err != nil {
		return 0, err
	}
	if st.unknown {
		// What is not known is not gone. It is looked at once it is known.
		return 0, nil
	}
	if wait := c.behind(st); wait > 0 {
		return wait, nil
	}
	p, err := plan(st)
	if err != nil {
		return 0, fmt.Errorf("planning collected slices of %s: %w", service, err)
	}
	again, err := c.apply(ctx, p)
	if err != nil || again > 0 || !st.want.Wanted {
		return again, err
	}
	return 0, c.demand.Collected(ctx, m.Name(), service)
}
