package endpointslicedispatch

import (
	"context"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/namesake-io/namesake/internal/discovery"
	"github.com/namesake-io/namesake/internal/member"
	"github.com/namesake-io/namesake/internal/snapshot"
)

// wishes are the plans that MultiClusterServices ask for.
type wishes struct{ snapshot.Source }

// Services implements Plans. The interest has them: nothing is listed, since they are
// asked for once for each member.
func (w wishes) Services(context.Context) ([]types.NamespacedName, error) {
	return w.Interest.Services(), nil
}

// Plan implements Plans.
func (w wishes) Plan(ctx context.Context, service types.NamespacedName) (*discovery.Plan, error) {
	s, err := w.Service(ctx, service)
	if err != nil {
		return nil, err
	}
	return discovery.NewPlan(s), nil
}

// planner makes one plan a service and keeps it until something that it was made
// of has changed. All consumers of a service share it.
type planner struct {
	maker Plans

	mu    sync.Mutex
	plans map[types.NamespacedName]*cachedPlan
}

// cachedPlan is the plan of one service.
type cachedPlan struct {
	mu   sync.Mutex
	plan *discovery.Plan
	// seen is when the first change was seen that the plan takes in.
	seen time.Time
	// until is when time alone makes the plan another one. Zero: never.
	until time.Time
	// What follows is guarded by the planner's lock, so that invalidating never
	// waits for a plan that is being made. stale says that endpoints, or who takes
	// part, are others by now, and since when.
	stale      bool
	staleSince time.Time
	// selections counts how often who takes part may have changed. selection is that
	// of a plan that takes in all of that; unless selected, it is not known.
	selections int
	selected   bool
	selection  discovery.Selection
}

// newPlanner returns a planner without plans.
func newPlanner(maker Plans) *planner {
	return &planner{maker: maker, plans: map[types.NamespacedName]*cachedPlan{}}
}

// invalidate makes the next plan of a service a new one, with others who take part.
func (p *planner) invalidate(service types.NamespacedName) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if c := p.plans[service]; c != nil {
		c.reselect()
	}
}

// invalidateAll does so for every service.
func (p *planner) invalidateAll() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.plans {
		c.reselect()
	}
}

// affected is a service of which a plan is out of date, and who consumes it. known is
// false when that cannot be said.
type affected struct {
	service   types.NamespacedName
	consumers []discovery.ClusterName
	known     bool
}

// invalidateProviders makes the next plan of every service a new one that some
// members provide, or may provide, for the same consumers.
func (p *planner) invalidateProviders(members map[discovery.ClusterName]bool) []affected {
	p.mu.Lock()
	defer p.mu.Unlock()
	var out []affected
	for service, c := range p.plans {
		provides := func(m discovery.ClusterName) bool { return members[m] }
		if c.selected && !slices.ContainsFunc(c.selection.Providers, provides) {
			continue
		}
		c.spoil()
		out = append(out, affected{service, c.selection.Consumers, c.selected})
	}
	return out
}

// concerning returns those of some services that a member consumes, as far as it is
// known who consumes them.
func (p *planner) concerning(member discovery.ClusterName, services []types.NamespacedName) []types.NamespacedName {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.DeleteFunc(services, func(service types.NamespacedName) bool {
		c := p.plans[service]
		return c != nil && c.selected && !c.selection.Consumes(member)
	})
}

// invalidateEndpoints makes the next plan of a service a new one, for the same
// consumers.
func (p *planner) invalidateEndpoints(service types.NamespacedName) affected {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := p.plans[service]
	if c == nil {
		return affected{service: service}
	}
	c.spoil()
	return affected{service, c.selection.Consumers, c.selected}
}

// reselect makes the plan stale, and its selection unknown. The planner's lock is held.
func (c *cachedPlan) reselect() {
	c.spoil()
	c.selections++
	c.selected, c.selection = false, discovery.Selection{}
}

// spoil makes the plan stale. The planner's lock is held.
func (c *cachedPlan) spoil() {
	if !c.stale {
		c.stale, c.staleSince = true, time.Now()
	}
}

// seenAt returns when the first change was seen that a plan takes in. Not known
// for a plan that is not the current one any more.
func (p *planner) seenAt(plan *discovery.Plan) (time.Time, bool) {
	p.mu.Lock()
	c := p.plans[plan.Service]
	p.mu.Unlock()
	if c == nil {
		return time.Time{}, false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.seen, c.plan == plan
}

// forget drops the plan of a service that nobody wants.
func (p *planner) forget(service types.NamespacedName) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.plans, service)
}

// plan returns the plan of a service as of now.
func (p *planner) plan(ctx context.Context, service types.NamespacedName) (*discovery.Plan, error) {
	p.mu.Lock()
	c := p.plans[service]
	if c == nil {
		c = &cachedPlan{stale: true, staleSince: time.Now()}
		p.plans[service] = c
	}
	p.mu.Unlock()

	c.mu.Lock()
	defer c.mu.Unlock()
	p.mu.Lock()
	stale, since, selections := c.stale, c.staleSince, c.selections
	// Before the snapshot is taken: what changes from here on makes it stale again.
	c.stale = false
	p.mu.Unlock()
	if !stale && c.plan != nil && (c.until.IsZero() || time.Now().Before(c.until)) {
		return c.plan, nil
	}
	made := time.Now()
	plan, err := p.maker.Plan(ctx, service)
	if err != nil {
		p.invalidate(service)
		return nil, err
	}
	p.mu.Lock()
	if c.selections == selections {
		c.selected, c.selection = true, plan.Selection
	}
	p.mu.Unlock()
	c.plan, c.seen, c.until = plan, since, time.Time{}
	if plan.RecheckAfter > 0 {
		c.until = made.Add(plan.RecheckAfter)
	}
	return plan, nil
}

// standing returns what a consumer holds of a planned service.
func standing(m *member.Member, plan *discovery.Plan) discovery.Standing {
	return discovery.Standing{
		Dispatched: m.Slices().Dispatched(plan.Service, names(plan, m.Name())),
		Native: func(name discovery.SliceName) bool {
			return m.Slices().IsNative(types.NamespacedName{Namespace: plan.Service.Namespace, Name: string(name)})
		},
	}
}

// names returns the names that slices of the plan have in a consumer, unless one
// of its own has that name.
func names(plan *discovery.Plan, consumer discovery.ClusterName) []discovery.SliceName {
	out := make([]discovery.SliceName, 0, len(plan.Slices))
	for _, d := range plan.Slices {
		if d.Provider != consumer {
			out = append(out, discovery.SliceName(d.Slice.Name))
		}
	}
	return out
}
