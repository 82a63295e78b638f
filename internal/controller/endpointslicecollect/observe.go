package endpointslicecollect

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/namesake-io/namesake/api/cluster/v1alpha1"
	networkingv1alpha1 "github.com/namesake-io/namesake/api/networking/v1alpha1"
	workv1alpha1 "github.com/namesake-io/namesake/api/work/v1alpha1"
	"github.com/namesake-io/namesake/internal/discovery"
	"github.com/namesake-io/namesake/internal/manifest"
	"github.com/namesake-io/namesake/internal/member"
	"github.com/namesake-io/namesake/internal/snapshot"
)

// Wishes are the demand of MultiClusterServices. Who provides a service is found out
// once for all members, and remembered until Forget or ForgetAll is called: whenever a
// wish, or the set of clusters, has changed.
type Wishes struct {
	source snapshot.Source

	mu sync.Mutex
	// selections counts how often anything was forgotten.
	selections int
	wants      map[types.NamespacedName]asked
}

// asked is what is wanted of a service, and of whom.
type asked struct {
	want      Want
	selection discovery.Selection
}

// NewWishes returns the demand of the MultiClusterServices of a hub.
func NewWishes(source snapshot.Source) *Wishes {
	return &Wishes{source: source, wants: map[types.NamespacedName]asked{}}
}

// Services implements Demand. Of most services most members are known to provide none.
func (w *Wishes) Services(_ context.Context, provider discovery.ClusterName) ([]types.NamespacedName, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.DeleteFunc(w.source.Interest.Services(), func(service types.NamespacedName) bool {
		of, found := w.wants[service]
		return found && !of.want.Hold && !of.selection.Provides(provider)
	}), nil
}

// Of implements Demand.
func (w *Wishes) Of(ctx context.Context, provider discovery.ClusterName, service types.NamespacedName) (Want, error) {
	w.mu.Lock()
	of, found := w.wants[service]
	selections := w.selections
	w.mu.Unlock()
	if !found {
		var err error
		if of, err = w.find(ctx, service); err != nil {
			return Want{}, err
		}
		w.mu.Lock()
		// Of what nobody wishes there is nothing to remember.
		if w.selections == selections && (of.want.Hold || len(of.selection.Providers) > 0) {
			w.wants[service] = of
		}
		w.mu.Unlock()
	}
	want := of.want
	want.Wanted = of.selection.Provides(provider)
	return want, nil
}

// find finds out what is wanted of a service as of now.
func (w *Wishes) find(ctx context.Context, service types.NamespacedName) (asked, error) {
	mcs, err := w.source.Wish(ctx, service)
	if err != nil || mcs == nil || mcs.DeletionTimestamp != nil {
		return asked{}, err
	}
	clusters, err := w.source.Clusters(ctx)
	if err != nil {
		return asked{}, err
	}
	selection, err := discovery.Select(&mcs.Spec, clusters)
	if err != nil {
		return asked{want: Want{Hold: true}}, nil // told by the dispatcher, as a condition
	}
	return asked{
		want:      Want{PermanentID: mcs.Labels[networkingv1alpha1.PermanentIDLabel]},
		selection: selection,
	}, nil
}

// Forget has what is wanted of a service found out anew.
func (w *Wishes) Forget(service types.NamespacedName) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.selections++
	delete(w.wants, service)
}

// ForgetAll has everything found out anew.
func (w *Wishes) ForgetAll() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.selections++
	clear(w.wants)
}

// Collected implements Demand. The members' own views are asked, not the memory.
func (*Wishes) Collected(context.Context, discovery.ClusterName, types.NamespacedName) error {
	return nil
}

// state is all that a plan is made of.
type state struct {
	// provider and service, from the key.
	provider discovery.ClusterName
	service  types.NamespacedName
	// want says whether anybody wants slices of this provider.
	want Want
	// unknown is true while the provider's slices are wanted and have not been seen.
	unknown bool
	// slices of the provider, from its store. Only when wanted.
	slices []*discoveryv1.EndpointSlice
	// works hold slices of the service now, or hold one of slices, under
	// whatever name and label. From the hub's cache, not to be changed.
	works []*workv1alpha1.Work
}

// observe reads everything.
func (c *Controller) observe(ctx context.Context, m *member.Member, service types.NamespacedName) (*state, error) {
	st := &state{provider: m.Name(), service: service}
	var err error
	if st.want, err = c.demand.Of(ctx, m.Name(), service); err != nil || st.want.Hold {
		return st, err
	}
	if st.want.Wanted && !m.Slices().Synced() {
		st.unknown = true
		return st, nil
	}
	if st.want.Wanted {
		if st.slices, err = m.Slices().Native(ctx, service); err != nil {
			return nil, err
		}
	} else {
		m.Slices().Forget(service)
	}
	st.works, err = c.observeWorks(ctx, st)
	return st, err
}

// observeWorks reads the Works of the service, and those that already hold one
// of its slices under another label or name.
func (c *Controller) observeWorks(ctx context.Context, st *state) ([]*workv1alpha1.Work, error) {
	fields := []client.MatchingFields{{snapshot.CollectedServiceIndex: st.service.String()}}
	for _, slice := range st.slices {
		fields = append(fields, client.MatchingFields{snapshot.ManifestIndex: identityOf(slice).String()})
	}
	var found []*workv1alpha1.Work
	seen := map[types.UID]bool{}
	for _, f := range fields {
		list := &workv1alpha1.WorkList{}
		if err := c.source.Reader.List(ctx, list, f, client.UnsafeDisableDeepCopy,
			client.InNamespace(clusterv1alpha1.ExecutionNamespace(string(st.provider)))); err != nil {
			return nil, fmt.Errorf("listing collected slices of %s: %w", st.service, err)
		}
		for i := range list.Items {
			work := &list.Items[i]
			if manifest.IsCollected(work) && !seen[work.UID] {
				seen[work.UID] = true
				found = append(found, work)
			}
		}
	}
	return found, nil
}

// behind returns how long to wait at most for the hub's cache to show our last
// writes of these Works. Zero: it shows them.
func (c *Controller) behind(st *state) time.Duration {
	cached := map[types.NamespacedName]client.Object{}
	for _, work := range st.works {
		cached[client.ObjectKeyFromObject(work)] = work
	}
	for _, slice := range st.slices {
		key := types.NamespacedName{
			Namespace: clusterv1alpha1.ExecutionNamespace(string(st.provider)),
			Name:      manifest.WorkName(identityOf(slice)),
		}
		if _, found := cached[key]; !found {
			cached[key] = nil
		}
	}
	return c.wrote.BehindAny(cached)
}
