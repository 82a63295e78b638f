// Package snapshot gathers what the pure core decides on: the wish, the template,
// the clusters, and the slices of each provider, from the hub's cache and from
// the members. It only reads.
package snapshot

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/namesake-io/namesake/api/cluster/v1alpha1"
	networkingv1alpha1 "github.com/namesake-io/namesake/api/networking/v1alpha1"
	workv1alpha1 "github.com/namesake-io/namesake/api/work/v1alpha1"
	"github.com/namesake-io/namesake/internal/discovery"
	"github.com/namesake-io/namesake/internal/manifest"
	"github.com/namesake-io/namesake/internal/member"
)

const (
	// CollectedServiceIndex finds collected Works by the service that they are
	// labelled with, as "<namespace>/<name>".
	CollectedServiceIndex = "collectedService"
	// PullServiceIndex finds orders and deliveries by their service, likewise.
	PullServiceIndex = "pullService"
	// ManifestIndex finds Works by the identity of their manifests.
	ManifestIndex = "manifest"
)

// ServiceKind is the kind of templates.
var ServiceKind = corev1.SchemeGroupVersion.WithKind("Service")

// Source gathers snapshots.
type Source struct {
	// Reader reads the hub, from its cache.
	Reader client.Reader
	// Members are the connected members.
	Members *member.Registry
	// Interest are the services that somebody wants.
	Interest *Interest
	// Unreachable is what is done with endpoints of providers that cannot be
	// reached, of services that do not say it themselves.
	Unreachable networkingv1alpha1.UnreachableProviders
}

// Clusters returns all Cluster objects as the core sees them, without slices.
func (s Source) Clusters(ctx context.Context) ([]discovery.Cluster, error) {
	list := &clusterv1alpha1.ClusterList{}
	if err := s.Reader.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing clusters: %w", err)
	}
	out := make([]discovery.Cluster, 0, len(list.Items))
	for i := range list.Items {
		c := FromCluster(&list.Items[i])
		if m, connected := s.Members.Get(c.Name); connected && m.Health().Reachable {
			// The condition follows with a delay; what returns is restored at once.
			c.UnreachableSince = time.Time{}
		}
		out = append(out, c)
	}
	return out, nil
}

// FromCluster returns a Cluster object as the core sees it, without slices.
func FromCluster(c *clusterv1alpha1.Cluster) discovery.Cluster {
	out := discovery.Cluster{
		Name: discovery.ClusterName(c.Name), Labels: c.Labels, Leaving: c.DeletionTimestamp != nil,
		LacksSlices: lacksSlices(c),
	}
	if ready := meta.FindStatusCondition(c.Status.Conditions, clusterv1alpha1.ConditionReady); ready != nil &&
		ready.Status != metav1.ConditionTrue && unreachable(ready.Reason) {
		out.UnreachableSince = silentSince(c, ready.LastTransitionTime.Time)
		out.UnreachableWhy = unreachableWhy[ready.Reason]
	}
	return out
}

// silentSince is when a member stopped answering: its condition may have turned
// false earlier, when it still answered but was not ready.
func silentSince(c *clusterv1alpha1.Cluster, notReady time.Time) time.Time {
	for _, t := range c.Spec.Taints {
		if t.Key == clusterv1alpha1.TaintUnreachable && t.TimeAdded != nil && t.TimeAdded.After(notReady) {
			return t.TimeAdded.Time
		}
	}
	return notReady
}

// unreachableWhy says what a reason of the Ready condition means, where it is not
// that the API server does not answer.
var unreachableWhy = map[string]string{
	clusterv1alpha1.ReasonAgentSilent:        "its agent is silent",
	clusterv1alpha1.ReasonCredentialRejected: "the API server refuses the hub's credential",
	clusterv1alpha1.ReasonCredentialInvalid:  "the hub has no valid credential for it",
}

// unreachable says that a reason of the Ready condition means silence.
func unreachable(reason string) bool {
	return reason == clusterv1alpha1.ReasonClusterNotReachable || reason == clusterv1alpha1.ReasonAgentSilent ||
		reason == clusterv1alpha1.ReasonCredentialRejected || reason == clusterv1alpha1.ReasonCredentialInvalid
}

// lacksSlices says that a member is known not to serve discovery.k8s.io/v1.
func lacksSlices(c *clusterv1alpha1.Cluster) bool {
	if !meta.IsStatusConditionTrue(c.Status.Conditions, clusterv1alpha1.ConditionCompleteAPIEnablements) {
		return false
	}
	return !slices.ContainsFunc(c.Status.APIEnablements, func(e clusterv1alpha1.APIEnablement) bool {
		return e.GroupVersion == discoveryv1.SchemeGroupVersion.String()
	})
}

// Wish returns the MultiClusterService of a service, nil when there is none. Not
// to be changed.
func (s Source) Wish(ctx context.Context, service types.NamespacedName) (*networkingv1alpha1.MultiClusterService, error) {
	mcs := &networkingv1alpha1.MultiClusterService{}
	switch err := s.Reader.Get(ctx, service, mcs, client.UnsafeDisableDeepCopy); {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("reading MultiClusterService %s: %w", service, err)
	}
	return mcs, nil
}

// Template returns the hub's Service, nil when there is none. It is read as it
// is, from the same cache as by those who hand it on with fields that we do not
// know.
func (s Source) Template(ctx context.Context, service types.NamespacedName) (*corev1.Service, error) {
	raw := &unstructured.Unstructured{}
	raw.SetGroupVersionKind(ServiceKind)
	switch err := s.Reader.Get(ctx, service, raw); {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("reading Service %s: %w", service, err)
	}
	template := &corev1.Service{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(raw.Object, template); err != nil {
		return nil, fmt.Errorf("reading Service %s: %w", service, err)
	}
	return template, nil
}

// Service returns the snapshot of one service.
func (s Source) Service(ctx context.Context, service types.NamespacedName) (discovery.Snapshot, error) {
	out := discovery.Snapshot{Service: service, Now: time.Now(), Unreachable: s.Unreachable}
	var err error
	if out.MCS, err = s.Wish(ctx, service); err != nil {
		return out, err
	}
	if out.Clusters, err = s.Clusters(ctx); err != nil || out.MCS == nil {
		return out, err
	}
	if out.Template, err = s.Template(ctx, service); err != nil {
		return out, err
	}
	selection, err := discovery.Select(&out.MCS.Spec, out.Clusters)
	if err != nil {
		// The plan says so; there is nothing to gather.
		return out, nil // reported by the plan, as a condition
	}
	// Side by side: a member may have to be asked.
	var gathering errgroup.Group
	for i := range out.Clusters {
		c := &out.Clusters[i]
		if selection.Provides(c.Name) {
			gathering.Go(func() (err error) {
				c.Slices, c.Authoritative, err = s.slicesOf(ctx, c, service)
				return err
			})
		}
	}
	return out, gathering.Wait()
}

// slicesOf returns a provider's slices of a service: as its own view has them,
// which is authoritative, else as the hub remembers them. That is authoritative
// too while an agent keeps it, from the moment that it has said to be complete. It
// waits for no provider: all others would wait with it.
func (s Source) slicesOf(ctx context.Context, provider *discovery.Cluster, service types.NamespacedName) ([]*discoveryv1.EndpointSlice, bool, error) {
	if m, connected := s.Members.Get(provider.Name); connected && m.Slices().Synced() {
		if found, whole := m.Slices().NativeSoon(ctx, service); whole {
			return found, true, nil
		}
	}
	// First: what is missing from what is read afterwards was missing when the
	// agent said so, or has been removed since.
	kept, err := s.keptByAgent(ctx, provider, service)
	if err != nil {
		return nil, false, err
	}
	remembered, err := s.Remembered(ctx, provider.Name, service)
	return remembered, kept, err
}

// keptByAgent says that an agent keeps the hub's memory of a service, and that it
// has been complete.
func (s Source) keptByAgent(ctx context.Context, provider *discovery.Cluster, service types.NamespacedName) (bool, error) {
	if !provider.UnreachableSince.IsZero() {
		return false, nil
	}
	works, err := s.Pull(ctx, provider.Name, service)
	if err != nil {
		return false, err
	}
	return slices.ContainsFunc(works, func(w *workv1alpha1.Work) bool {
		said := meta.FindStatusCondition(w.Status.Conditions, workv1alpha1.ConditionCollected)
		return manifest.IsOrder(w) && w.DeletionTimestamp == nil &&
			said != nil && said.Status == metav1.ConditionTrue && said.ObservedGeneration == w.Generation
	}), nil
}

// Pull returns the orders and deliveries of a service, sorted by name: of one
// member, or of all when that is empty. Not to be changed.
func (s Source) Pull(ctx context.Context, of discovery.ClusterName, service types.NamespacedName) ([]*workv1alpha1.Work, error) {
	opts := []client.ListOption{client.UnsafeDisableDeepCopy, client.MatchingFields{PullServiceIndex: service.String()}}
	if of != "" {
		opts = append(opts, client.InNamespace(clusterv1alpha1.ExecutionNamespace(string(of))))
	}
	list := &workv1alpha1.WorkList{}
	if err := s.Reader.List(ctx, list, opts...); err != nil {
		return nil, fmt.Errorf("listing orders and deliveries of %s: %w", service, err)
	}
	out := make([]*workv1alpha1.Work, 0, len(list.Items))
	for i := range list.Items {
		out = append(out, &list.Items[i])
	}
	slices.SortFunc(out, func(a, b *workv1alpha1.Work) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return out, nil
}

// Answers says whether a member answers just now: its API server, or its agent
// and that for it. One that has not joined does not.
func (s Source) Answers(ctx context.Context, name discovery.ClusterName) (bool, error) {
	cluster := &clusterv1alpha1.Cluster{}
	switch err := s.Reader.Get(ctx, types.NamespacedName{Name: string(name)}, cluster, client.UnsafeDisableDeepCopy); {
	case apierrors.IsNotFound(err):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("reading cluster %s: %w", name, err)
	}
	if cluster.Spec.SyncMode == clusterv1alpha1.Pull {
		ready := meta.FindStatusCondition(cluster.Status.Conditions, clusterv1alpha1.ConditionReady)
		return ready != nil && ready.Reason != clusterv1alpha1.ReasonConnecting && FromCluster(cluster).UnreachableSince.IsZero(), nil
	}
	m, connected := s.Members.Get(name)
	return connected && m.Reachable(), nil
}

// Remembered returns a provider's slices of a service as the hub remembers them.
func (s Source) Remembered(ctx context.Context, provider discovery.ClusterName, service types.NamespacedName) ([]*discoveryv1.EndpointSlice, error) {
	works := &workv1alpha1.WorkList{}
	err := s.Reader.List(ctx, works, client.UnsafeDisableDeepCopy,
		client.InNamespace(clusterv1alpha1.ExecutionNamespace(string(provider))),
		client.MatchingFields{CollectedServiceIndex: service.String()})
	if err != nil {
		return nil, fmt.Errorf("listing collected slices of %q: %w", provider, err)
	}
	var out []*discoveryv1.EndpointSlice
	for i := range works.Items {
		if works.Items[i].DeletionTimestamp != nil {
			continue
		}
		found, err := manifest.Collected(&works.Items[i])
		if err != nil {
			return nil, err
		}
		for _, slice := range found {
			if slice.Namespace == service.Namespace && slice.Labels[discoveryv1.LabelServiceName] == service.Name {
				out = append(out, slice)
			}
		}
	}
	return out, nil
}

// Refused returns the clusters that have said that the Service does not stand in
// them as their Work has it, in the words of a MultiClusterService's status.
func (s Source) Refused(ctx context.Context, service types.NamespacedName) (map[discovery.ClusterName]discovery.Outcome, error) {
	id := manifest.Identity{Kind: ServiceKind.Kind, Namespace: service.Namespace, Name: service.Name}
	works := &workv1alpha1.WorkList{}
	if err := s.Reader.List(ctx, works, client.UnsafeDisableDeepCopy, client.MatchingFields{ManifestIndex: id.String()}); err != nil {
		return nil, fmt.Errorf("listing Works of %s: %w", service, err)
	}
	out := map[discovery.ClusterName]discovery.Outcome{}
	for i := range works.Items {
		work := &works.Items[i]
		name, found := clusterv1alpha1.ClusterOf(work.Namespace)
		said := meta.FindStatusCondition(work.Status.Conditions, workv1alpha1.ConditionApplied)
		if !found || said == nil || said.Status == metav1.ConditionTrue || said.ObservedGeneration != work.Generation ||
			work.DeletionTimestamp != nil {
			continue
		}
		reason := networkingv1alpha1.ReasonServiceAppliedFailed
		switch said.Reason {
		case workv1alpha1.ReasonConflict:
			reason = networkingv1alpha1.ReasonServiceConflict
		case workv1alpha1.ReasonNamespaceNotFound:
			reason = networkingv1alpha1.ReasonNamespaceNotFound
		case workv1alpha1.ReasonClusterUnreachable:
			reason = networkingv1alpha1.ReasonClusterUnreachable
		}
		out[discovery.ClusterName(name)] = discovery.Outcome{Reason: reason, Message: said.Message}
	}
	return out, nil
}

// IndexWorks adds the indexes that are used here and by controllers.
func IndexWorks(ctx context.Context, indexer client.FieldIndexer) error {
	err := indexer.IndexField(ctx, &workv1alpha1.Work{}, CollectedServiceIndex, func(obj client.Object) []string {
		work, ok := obj.(*workv1alpha1.Work)
		if !ok || !manifest.IsCollected(work) {
			return nil
		}
		return []string{manifest.ServiceOf(work).String()}
	})
	if err != nil {
		return fmt.Errorf("indexing Works by service: %w", err)
	}
	err = indexer.IndexField(ctx, &workv1alpha1.Work{}, PullServiceIndex, func(obj client.Object) []string {
		work, ok := obj.(*workv1alpha1.Work)
		if !ok || !manifest.IsOrder(work) && !manifest.IsDelivery(work) {
			return nil
		}
		return []string{manifest.ServiceOf(work).String()}
	})
	if err != nil {
		return fmt.Errorf("indexing orders and deliveries: %w", err)
	}
	err = indexer.IndexField(ctx, &workv1alpha1.Work{}, ManifestIndex, func(obj client.Object) []string {
		work, ok := obj.(*workv1alpha1.Work)
		if !ok {
			return nil
		}
		var keys []string
		for _, m := range work.Spec.Workload.Manifests {
			if id, err := manifest.IdentityOf(m); err == nil {
				keys = append(keys, id.String())
			}
		}
		return keys
	})
	if err != nil {
		return fmt.Errorf("indexing Works by manifest: %w", err)
	}
	return nil
}
