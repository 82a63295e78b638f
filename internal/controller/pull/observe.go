package pull

import (
	"context"
	"fmt"
	"slices"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/namesake-io/namesake/api/cluster/v1alpha1"
	networkingv1alpha1 "github.com/namesake-io/namesake/api/networking/v1alpha1"
	workv1alpha1 "github.com/namesake-io/namesake/api/work/v1alpha1"
	"github.com/namesake-io/namesake/internal/discovery"
	"github.com/namesake-io/namesake/internal/manifest"
	"github.com/namesake-io/namesake/internal/snapshot"
)

// state is all that plans for the agents are made of.
type state struct {
	service types.NamespacedName
	plan    *discovery.Plan
	// permanentID of the MultiClusterService, if there is one.
	permanentID string
	// members that have an agent and are not leaving, and those that have not and
	// hold Works all the same. Sorted.
	members []*memberState
}

// memberState is what stands for one member.
type memberState struct {
	name discovery.ClusterName
	// agent is false for a member that the hub calls itself: nothing is for it here.
	agent bool
	// silent: the agent, or the API server for it, does not answer.
	silent bool
	// order to collect the service, nil when there is none. Not to be changed.
	order *workv1alpha1.Work
	// deliveries of the service, sorted by name. Not to be changed.
	deliveries []delivery
	// going are names that Works have which are being deleted.
	going []string
}

// delivery is a Work and the slices in it.
type delivery struct {
	work   *workv1alpha1.Work
	slices []*discoveryv1.EndpointSlice
}

// observe reads everything. found is false when there is nothing to do for any agent.
func (c *Controller) observe(ctx context.Context, service types.NamespacedName) (_ *state, found bool, err error) {
	st := &state{service: service}
	works, err := c.source.Pull(ctx, "", service)
	if err != nil {
		return nil, false, err
	}
	clusters := &clusterv1alpha1.ClusterList{}
	if err := c.source.Reader.List(ctx, clusters, client.UnsafeDisableDeepCopy); err != nil {
		return nil, false, fmt.Errorf("listing clusters: %w", err)
	}
	for i := range clusters.Items {
		if m := observeMember(&clusters.Items[i], works); m != nil {
			st.members = append(st.members, m)
		}
	}
	if len(st.members) == 0 {
		return nil, false, nil
	}
	if st.plan, err = c.dispatcher.Plan(ctx, service); err != nil {
		return nil, false, err
	}
	mcs, err := c.source.Wish(ctx, service)
	if err != nil {
		return nil, false, err
	}
	if mcs != nil {
		st.permanentID = mcs.Labels[networkingv1alpha1.PermanentIDLabel]
	}
	return st, true, nil
}

// observeMember sorts out what stands for a member. Nil: nothing is to be done for
// it here. One that is leaving is emptied by its own controller.
func observeMember(cluster *clusterv1alpha1.Cluster, works []*workv1alpha1.Work) *memberState {
	if cluster.DeletionTimestamp != nil {
		return nil
	}
	m := &memberState{name: discovery.ClusterName(cluster.Name), agent: cluster.Spec.SyncMode == clusterv1alpha1.Pull}
	namespace := clusterv1alpha1.ExecutionNamespace(cluster.Name)
	for _, work := range works {
		switch {
		case work.Namespace != namespace:
		case work.DeletionTimestamp != nil:
			m.going = append(m.going, work.Name)
		case manifest.IsOrder(work):
			m.order = work
		default:
			// What cannot be read is written anew.
			held, _ := manifest.Collected(work)
			m.deliveries = append(m.deliveries, delivery{work: work, slices: held})
		}
	}
	if !m.agent && m.order == nil && len(m.deliveries) == 0 {
		return nil // most members
	}
	ready := meta.FindStatusCondition(cluster.Status.Conditions, clusterv1alpha1.ConditionReady)
	m.silent = ready == nil || ready.Reason == clusterv1alpha1.ReasonConnecting || !snapshot.FromCluster(cluster).UnreachableSince.IsZero()
	return m
}

// standing returns the services of which orders or deliveries stand.
func (c *Controller) standing(ctx context.Context) ([]types.NamespacedName, error) {
	var out []types.NamespacedName
	for _, role := range []string{networkingv1alpha1.PullOrder, networkingv1alpha1.PullDelivery} {
		works := &workv1alpha1.WorkList{}
		if err := c.source.Reader.List(ctx, works, client.UnsafeDisableDeepCopy,
			client.MatchingLabels{networkingv1alpha1.PullLabel: role}); err != nil {
			return nil, fmt.Errorf("listing orders and deliveries: %w", err)
		}
		for i := range works.Items {
			if service := manifest.ServiceOf(&works.Items[i]); service.Name != "" && !slices.Contains(out, service) {
				out = append(out, service)
			}
		}
	}
	return out, nil
}

// behind returns how long to wait at most for the hub's cache to show our last
// writes. Zero: it shows them.
func (c *Controller) behind(st *state) time.Duration {
	cached := map[types.NamespacedName]client.Object{}
	for _, m := range st.members {
		namespace := clusterv1alpha1.ExecutionNamespace(string(m.name))
		cached[types.NamespacedName{Namespace: namespace, Name: orderName(st.service)}] = nil
		cached[types.NamespacedName{Namespace: namespace, Name: m.freeName(st.service, nil)}] = nil
		if m.order != nil {
			cached[client.ObjectKeyFromObject(m.order)] = m.order
		}
		for _, d := range m.deliveries {
			cached[client.ObjectKeyFromObject(d.work)] = d.work
		}
	}
	return c.wrote.BehindAny(cached)
}
