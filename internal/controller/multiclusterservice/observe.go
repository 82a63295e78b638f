package multiclusterservice

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/namesake-io/namesake/api/cluster/v1alpha1"
	networkingv1alpha1 "github.com/namesake-io/namesake/api/networking/v1alpha1"
	workv1alpha1 "github.com/namesake-io/namesake/api/work/v1alpha1"
	workv1alpha2 "github.com/namesake-io/namesake/api/work/v1alpha2"
	"github.com/namesake-io/namesake/internal/discovery"
	"github.com/namesake-io/namesake/internal/manifest"
	"github.com/namesake-io/namesake/internal/snapshot"
)

// state is all that a plan is made of.
type state struct {
	key types.NamespacedName
	mcs *networkingv1alpha1.MultiClusterService
	// permanentID is the object's id, a new one where it has none yet.
	permanentID string
	// template on the hub, nil when there is none or it is going.
	template *corev1.Service
	// binding of the Service, nil when there is none.
	binding *workv1alpha2.ResourceBinding
	// clusters of the hub, and those that take part. selectErr: it cannot be told.
	clusters  []discovery.Cluster
	selection discovery.Selection
	selectErr error
	// works put the Service into members now.
	works []*workv1alpha1.Work
	// remains says what still stands of a deleted object. Empty: nothing.
	remains string
}

// observe reads everything.
func (c *Controller) observe(ctx context.Context, key types.NamespacedName) (_ *state, found bool, err error) {
	st := &state{key: key}
	if st.mcs, err = c.source.Wish(ctx, key); err != nil || st.mcs == nil {
		c.settled(key)
		return nil, false, err
	}
	st.mcs = st.mcs.DeepCopy() // writes are taken into it
	if st.permanentID = st.mcs.Labels[networkingv1alpha1.PermanentIDLabel]; st.permanentID == "" {
		st.permanentID = string(uuid.NewUUID())
	}
	if st.template, err = c.source.Template(ctx, key); err != nil {
		return nil, false, err
	}
	if st.template != nil && st.template.DeletionTimestamp != nil {
		st.template = nil
	}
	binding := &workv1alpha2.ResourceBinding{}
	name := types.NamespacedName{Namespace: key.Namespace, Name: workv1alpha2.BindingName("service", key.Name)}
	switch err := c.source.Reader.Get(ctx, name, binding); {
	case apierrors.IsNotFound(err):
	case err != nil:
		return nil, false, fmt.Errorf("reading binding %s: %w", name, err)
	default:
		st.binding = binding
	}
	if st.clusters, err = c.source.Clusters(ctx); err != nil {
		return nil, false, err
	}
	st.selection, st.selectErr = discovery.Select(&st.mcs.Spec, st.clusters)
	if st.works, err = c.observeWorks(ctx, key); err != nil {
		return nil, false, err
	}
	if st.mcs.DeletionTimestamp != nil {
		if st.remains, err = c.observeRemains(ctx, st); err != nil {
			return nil, false, err
		}
	}
	return st, true, nil
}

// observeWorks reads the Works that put the Service into members.
func (c *Controller) observeWorks(ctx context.Context, key types.NamespacedName) ([]*workv1alpha1.Work, error) {
	id := manifest.Identity{Kind: "Service", Namespace: key.Namespace, Name: key.Name}
	list := &workv1alpha1.WorkList{}
	if err := c.source.Reader.List(ctx, list, client.UnsafeDisableDeepCopy,
		client.MatchingFields{snapshot.ManifestIndex: id.String()}); err != nil {
		return nil, fmt.Errorf("listing Works of %s: %w", key, err)
	}
	var out []*workv1alpha1.Work
	for i := range list.Items {
		if manifest.IsApplied(&list.Items[i]) {
			out = append(out, &list.Items[i])
		}
	}
	return out, nil
}

// observeRemains looks what still stands of a deleted object: on the hub, and in
// the members that answer. What stands in others is taken away when they are
// back: it bears our mark, and nobody wants it.
func (c *Controller) observeRemains(ctx context.Context, st *state) (string, error) {
	var out []string
	collected := &workv1alpha1.WorkList{}
	if err := c.source.Reader.List(ctx, collected, client.UnsafeDisableDeepCopy,
		client.MatchingFields{snapshot.CollectedServiceIndex: st.key.String()}); err != nil {
		return "", fmt.Errorf("listing collected slices of %s: %w", st.key, err)
	}
	for i := range collected.Items {
		work := &collected.Items[i]
		kept, err := c.keptBySilentAgent(ctx, work)
		if err != nil {
			return "", err
		}
		if wantedByUs(work) && !kept {
			out = append(out, fmt.Sprintf("Work %s/%s, the hub's memory of a slice", work.Namespace, work.Name))
		}
	}
	pull, err := c.source.Pull(ctx, "", st.key)
	if err != nil {
		return "", err
	}
	for _, work := range pull {
		answers, err := c.source.Answers(ctx, memberOf(work))
		if err != nil {
			return "", err
		}
		if answers {
			out = append(out, fmt.Sprintf("Work %s/%s, for the agent of a cluster", work.Namespace, work.Name))
		}
	}
	for _, m := range c.source.Members.List() {
		if m.Reachable() && m.Slices().Synced() && len(m.Slices().Dispatched(st.key, nil)) > 0 {
			out = append(out, fmt.Sprintf("slices in cluster %s", m.Name()))
		}
	}
	for _, work := range st.works {
		answers, err := c.source.Answers(ctx, memberOf(work))
		if err != nil {
			return "", err
		}
		if answers && st.gave(work) {
			out = append(out, fmt.Sprintf("the Service in cluster %s, from Work %s/%s", memberOf(work), work.Namespace, work.Name))
		}
	}
	return bounded(out), nil
}

// keptBySilentAgent says that a collected Work goes when an agent is back.
func (c *Controller) keptBySilentAgent(ctx context.Context, work *workv1alpha1.Work) (bool, error) {
	if _, connected := c.source.Members.Get(memberOf(work)); connected {
		return false, nil
	}
	answers, err := c.source.Answers(ctx, memberOf(work))
	return !answers, err
}

// gave says whether a Work of the Service is there because of the deleted object.
// Its labels alone do not tell: they go as soon as the object is being deleted,
// and the Work only when the member no longer holds the Service.
func (st *state) gave(work *workv1alpha1.Work) bool {
	if work.Labels[networkingv1alpha1.NameKey] == st.key.Name {
		return true
	}
	if st.binding == nil {
		return false // somebody else's
	}
	return !slices.Contains(claimedByOthers(st), string(memberOf(work)))
}

// claimedByOthers are the clusters that somebody else wants the Service in.
func claimedByOthers(st *state) []string {
	var targets []workv1alpha2.TargetCluster
	if st.foreignBinding() {
		targets = append(targets, st.binding.Spec.Clusters...)
	}
	for _, claim := range st.binding.Spec.RequiredBy {
		if claim.Namespace != st.key.Namespace || claim.Name != st.key.Name {
			targets = append(targets, claim.Clusters...)
		}
	}
	var out []string
	for _, t := range targets {
		out = append(out, t.Name)
	}
	return out
}

// wantedByUs says that a collected Work lists us among its interested owners.
func wantedByUs(work *workv1alpha1.Work) bool {
	return slices.Contains(strings.Split(work.Labels[networkingv1alpha1.CollectedByLabel], "."),
		networkingv1alpha1.ClaimedByMultiClusterService)
}

// memberOf returns the member whose execution namespace a Work is in.
func memberOf(work *workv1alpha1.Work) discovery.ClusterName {
	cluster, _ := clusterv1alpha1.ClusterOf(work.Namespace)
	return discovery.ClusterName(cluster)
}
