package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	clientdiscovery "k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/namesake-io/namesake/api/cluster/v1alpha1"
	workv1alpha1 "github.com/namesake-io/namesake/api/work/v1alpha1"
	"github.com/namesake-io/namesake/internal/discovery"
	"github.com/namesake-io/namesake/internal/member"
)

// SecretIndex finds clusters by the Secret that holds their credential.
const SecretIndex = "secretRef"

// state is all that a plan is made of.
type state struct {
	cluster *clusterv1alpha1.Cluster
	// namespace is the execution namespace, nil when there is none.
	namespace *corev1.Namespace
	// secret with the credential, nil when there is none. secretErr: why not.
	secret    *corev1.Secret
	secretErr error
	// asked: whoever plans asks the member itself, and does not leave it to an agent.
	asked bool
	// beat is when the agent was last seen to have renewed its lease, by this
	// clock. Only when not asked.
	beat time.Time
	// health of the connection. known is false when there is no connection.
	health member.Health
	known  bool
	// watch is how the watch of its slices is.
	watch member.WatchState
	// served is what the member serves, nil when it has not been asked.
	served *enablements
	// works of the execution namespace. Only when leaving. Not to be changed.
	works []*workv1alpha1.Work
	now   time.Time
}

// observe reads everything.
func (c *Controller) observe(ctx context.Context, name string) (_ *state, found bool, err error) {
	st := &state{cluster: &clusterv1alpha1.Cluster{}, now: time.Now()}
	switch err := c.reader.Get(ctx, types.NamespacedName{Name: name}, st.cluster); {
	case apierrors.IsNotFound(err):
		return nil, false, nil
	case err != nil:
		return nil, false, fmt.Errorf("reading cluster %s: %w", name, err)
	}
	namespace := &corev1.Namespace{}
	switch err := c.reader.Get(ctx, types.NamespacedName{Name: clusterv1alpha1.ExecutionNamespace(name)}, namespace); {
	case err == nil:
		st.namespace = namespace
	case !apierrors.IsNotFound(err):
		return nil, false, fmt.Errorf("reading the execution namespace of cluster %s: %w", name, err)
	}
	if st.cluster.DeletionTimestamp != nil {
		works := &workv1alpha1.WorkList{}
		if err := c.reader.List(ctx, works, client.UnsafeDisableDeepCopy,
			client.InNamespace(clusterv1alpha1.ExecutionNamespace(name))); err != nil {
			return nil, false, fmt.Errorf("listing Works of cluster %s: %w", name, err)
		}
		for i := range works.Items {
			st.works = append(st.works, &works.Items[i])
		}
	}
	if st.cluster.Spec.SyncMode != clusterv1alpha1.Push {
		st.beat, err = c.observeBeat(ctx, st)
		return st, true, err
	}
	st.secret, st.secretErr = c.readSecret(ctx, st.cluster)
	c.observeHealth(ctx, st)
	return st, true, nil
}

// observeHealth asks the member itself.
func (c *Controller) observeHealth(ctx context.Context, st *state) {
	st.asked = true
	st.health, st.known = c.members.Health(nameOf(st.cluster.Name))
	m, connected := c.members.Get(nameOf(st.cluster.Name))
	if connected {
		st.watch = m.Watch()
	}
	if connected && st.health.Reachable {
		// Whether it is ready or not: what it lacks may be why it is not.
		st.served = c.served.of(ctx, m, st.now)
	}
}

// observeSelf is what an agent sees of its own cluster. found is false when it has
// not joined, or not any more.
func (c *Controller) observeSelf(ctx context.Context) (_ *state, found bool, err error) {
	st := &state{cluster: &clusterv1alpha1.Cluster{}, now: time.Now()}
	switch err := c.reader.Get(ctx, types.NamespacedName{Name: c.self.Name}, st.cluster); {
	case apierrors.IsNotFound(err):
		return nil, false, nil
	case err != nil:
		return nil, false, fmt.Errorf("reading cluster %s: %w", c.self.Name, err)
	}
	c.observeHealth(ctx, st)
	return st, true, nil
}

// observeBeat returns when the agent was last seen to have renewed its lease.
func (c *Controller) observeBeat(ctx context.Context, st *state) (time.Time, error) {
	lease := &coordinationv1.Lease{}
	key := types.NamespacedName{Namespace: clusterv1alpha1.SystemNamespace, Name: st.cluster.Name}
	if err := c.reader.Get(ctx, key, lease); err != nil && !apierrors.IsNotFound(err) {
		return time.Time{}, fmt.Errorf("reading the lease of cluster %s: %w", st.cluster.Name, err)
	}
	return c.beats.seen(st.cluster.Name, lease.ResourceVersion, st.now), nil
}

// beats remembers when leases were seen to change. By our own clock: that of an
// agent may be wrong.
type beats struct {
	mu   sync.Mutex
	last map[string]beat
}

// beat is a lease as it was first seen.
type beat struct {
	version string
	at      time.Time
}

// seen takes in a lease as it is now and returns when it became that.
func (b *beats) seen(name, version string, now time.Time) time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	have, found := b.last[name]
	if !found || have.version != version {
		have = beat{version: version, at: now}
		b.last[name] = have
	}
	return have.at
}

// forget drops what is known of a member.
func (b *beats) forget(name string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.last, name)
}

// errNoSecret says that a Cluster names no Secret.
var errNoSecret = errors.New("spec.secretRef is empty")

// readSecret reads the credential of a cluster: from the cache where that holds
// it, which is the namespace that join puts Secrets into.
func (c *Controller) readSecret(ctx context.Context, cluster *clusterv1alpha1.Cluster) (*corev1.Secret, error) {
	ref := cluster.Spec.SecretRef
	if ref == nil {
		return nil, errNoSecret
	}
	reader := c.secrets
	if ref.Namespace == clusterv1alpha1.SystemNamespace {
		reader = c.reader
	}
	secret := &corev1.Secret{}
	if err := reader.Get(ctx, types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}, secret); err != nil {
		return nil, fmt.Errorf("reading the Secret of spec.secretRef: %w", err)
	}
	if len(secret.Data[clusterv1alpha1.SecretTokenKey]) == 0 {
		return nil, fmt.Errorf("the Secret %s/%s has no key %q", ref.Namespace, ref.Name, clusterv1alpha1.SecretTokenKey)
	}
	return secret, nil
}

// Index adds the index of clusters by Secret.
func Index(ctx context.Context, indexer client.FieldIndexer) error {
	err := indexer.IndexField(ctx, &clusterv1alpha1.Cluster{}, SecretIndex, func(obj client.Object) []string {
		cluster, ok := obj.(*clusterv1alpha1.Cluster)
		if !ok || cluster.Spec.SecretRef == nil {
			return nil
		}
		return []string{cluster.Spec.SecretRef.Namespace + "/" + cluster.Spec.SecretRef.Name}
	})
	if err != nil {
		return fmt.Errorf("indexing clusters by Secret: %w", err)
	}
	return nil
}

// nameOf is a Cluster's name as members are keyed.
func nameOf(name string) discovery.ClusterName { return discovery.ClusterName(name) }

// enablements is what a member serves.
type enablements struct {
	version  string
	groups   []clusterv1alpha1.APIEnablement
	complete bool
	message  string
	// nodes is nil when they are not counted.
	nodes *clusterv1alpha1.NodeSummary
}

// served remembers what members serve, so that they are asked now and then only.
type served struct {
	interval time.Duration
	nodes    bool
	mu       sync.Mutex
	answers  map[string]answer
}

// answer is what a member said, and when it is to be asked again.
type answer struct {
	from  member.ID
	until time.Time
	found *enablements
}

// retryServed is how soon a member is asked again that did not say all.
const retryServed = 30 * time.Second

// newServed returns a memory that knows nothing.
func newServed(opts Options) *served {
	return &served{interval: opts.EnablementInterval, nodes: opts.NodeSummary, answers: map[string]answer{}}
}

// of returns what a member serves, asking it when that is not known or is old.
func (s *served) of(ctx context.Context, m *member.Member, now time.Time) *enablements {
	name := string(m.Name())
	s.mu.Lock()
	known := s.answers[name]
	s.mu.Unlock()
	if known.from == m.ID() && now.Before(known.until) {
		return known.found
	}
	found, err := ask(m)
	if err == nil && s.nodes {
		found.nodes, err = countNodes(ctx, m)
	}
	fresh := answer{from: m.ID(), until: now.Add(s.interval), found: found}
	if err != nil {
		fresh.until = now.Add(min(s.interval, retryServed))
		if known.from == m.ID() {
			fresh.found = known.found
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answers[name] = fresh
	return fresh.found
}

// forget drops what is known of a member.
func (s *served) forget(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.answers, name)
}

// ask asks a member what it serves. Groups that cannot be listed make the answer
// incomplete, not wrong.
func ask(m *member.Member) (*enablements, error) {
	version, err := m.Discovery().ServerVersion()
	if err != nil {
		return nil, fmt.Errorf("asking member %q for its version: %w", m.Name(), err)
	}
	out := &enablements{version: version.GitVersion, complete: true, message: "every group of the API could be listed"}
	_, lists, err := m.Discovery().ServerGroupsAndResources()
	if err != nil {
		if !clientdiscovery.IsGroupDiscoveryFailedError(err) {
			return nil, fmt.Errorf("asking member %q for its API: %w", m.Name(), err)
		}
		out.complete, out.message = false, err.Error()
	}
	for _, list := range lists {
		group := clusterv1alpha1.APIEnablement{GroupVersion: list.GroupVersion}
		for i := range list.APIResources {
			r := &list.APIResources[i]
			if !strings.Contains(r.Name, "/") {
				group.Resources = append(group.Resources, clusterv1alpha1.APIResource{Name: r.Name, Kind: r.Kind})
			}
		}
		slices.SortFunc(group.Resources, func(a, b clusterv1alpha1.APIResource) int { return cmp.Compare(a.Name, b.Name) })
		out.groups = append(out.groups, group)
	}
	slices.SortFunc(out.groups, func(a, b clusterv1alpha1.APIEnablement) int { return cmp.Compare(a.GroupVersion, b.GroupVersion) })
	return out, nil
}

// nodePage is how many nodes are read at once: they are large.
const nodePage = 200

// countNodes counts a member's nodes. Nil: it does not let them be listed.
func countNodes(ctx context.Context, m *member.Member) (*clusterv1alpha1.NodeSummary, error) {
	out := &clusterv1alpha1.NodeSummary{}
	list := &corev1.NodeList{}
	for more := true; more; more = list.Continue != "" {
		err := m.Client().List(ctx, list, client.Limit(nodePage), client.Continue(list.Continue))
		if apierrors.IsForbidden(err) {
			return nil, nil // joined without --node-summary
		}
		if err != nil {
			return nil, fmt.Errorf("listing the nodes of member %q: %w", m.Name(), err)
		}
		for i := range list.Items {
			out.TotalNum++
			if slices.ContainsFunc(list.Items[i].Status.Conditions, isReady) {
				out.ReadyNum++
			}
		}
	}
	return out, nil
}

// isReady says whether a condition is that of a node that is ready.
func isReady(c corev1.NodeCondition) bool {
	return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
}
