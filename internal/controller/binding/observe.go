package binding

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/namesake-io/namesake/api/cluster/v1alpha1"
	networkingv1alpha1 "github.com/namesake-io/namesake/api/networking/v1alpha1"
	workv1alpha1 "github.com/namesake-io/namesake/api/work/v1alpha1"
	workv1alpha2 "github.com/namesake-io/namesake/api/work/v1alpha2"
	"github.com/namesake-io/namesake/internal/discovery"
	"github.com/namesake-io/namesake/internal/manifest"
	"github.com/namesake-io/namesake/internal/snapshot"
)

// ClusterIndex finds bindings by the clusters that they name.
const ClusterIndex = "targetCluster"

// state is all that a plan is made of.
type state struct {
	binding *workv1alpha2.ResourceBinding
	// id of the bound resource, from the binding.
	id manifest.Identity
	// resource as it is on the hub, nil when there is none or it is going.
	resource *unstructured.Unstructured
	// joined are the clusters that can hold something.
	joined map[string]bool
	// silent are the clusters that do not answer.
	silent map[string]bool
	// wish is the MultiClusterService of a bound Service, nil when there is none,
	// and consumers are the clusters that see just the ports that it exposes.
	wish      *networkingv1alpha1.MultiClusterService
	consumers []discovery.ClusterName
	// hold is true when it cannot be told what is wished.
	hold bool
	// works hold the resource now, under whatever name. Not to be changed.
	works []*workv1alpha1.Work
}

// observe reads everything.
func (c *Controller) observe(ctx context.Context, key types.NamespacedName) (_ *state, found bool, err error) {
	st := &state{binding: &workv1alpha2.ResourceBinding{}, joined: map[string]bool{}, silent: map[string]bool{}}
	switch err := c.source.Reader.Get(ctx, key, st.binding); {
	case apierrors.IsNotFound(err):
		return nil, false, nil
	case err != nil:
		return nil, false, fmt.Errorf("reading binding %s: %w", key, err)
	}
	ref := st.binding.Spec.Resource
	gvk := schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind)
	st.id = manifest.Identity{Group: gvk.Group, Kind: ref.Kind, Namespace: key.Namespace, Name: ref.Name}
	if st.resource, err = c.observeResource(ctx, gvk, types.NamespacedName{Namespace: key.Namespace, Name: ref.Name}); err != nil {
		return nil, false, err
	}

	clusters, err := c.source.Clusters(ctx)
	if err != nil {
		return nil, false, err
	}
	for i := range clusters {
		st.joined[string(clusters[i].Name)] = !clusters[i].Leaving
		answers, err := c.source.Answers(ctx, clusters[i].Name)
		if err != nil {
			return nil, false, err
		}
		st.silent[string(clusters[i].Name)] = !answers
	}
	if err := c.observeWish(ctx, st, clusters); err != nil {
		return nil, false, err
	}
	works := &workv1alpha1.WorkList{}
	if err := c.source.Reader.List(ctx, works, client.UnsafeDisableDeepCopy,
		client.MatchingFields{snapshot.ManifestIndex: st.id.String()}); err != nil {
		return nil, false, fmt.Errorf("listing Works of binding %s: %w", key, err)
	}
	for i := range works.Items {
		if manifest.IsApplied(&works.Items[i]) {
			st.works = append(st.works, &works.Items[i])
		}
	}
	return st, true, nil
}

// observeWish reads what the MultiClusterService of a binding says of ports.
func (c *Controller) observeWish(ctx context.Context, st *state, clusters []discovery.Cluster) error {
	if st.id.Group != "" || st.id.Kind != snapshot.ServiceKind.Kind {
		return nil
	}
	mcs, err := c.source.Wish(ctx, types.NamespacedName{Namespace: st.id.Namespace, Name: st.id.Name})
	if err != nil || mcs == nil || mcs.DeletionTimestamp != nil {
		return err
	}
	st.wish = mcs
	selection, err := discovery.Select(&mcs.Spec, clusters)
	// Told by its own controller; until it is corrected, Works stay as they are.
	st.hold = err != nil
	st.consumers = selection.Consumers
	return nil
}

// observeResource reads the bound resource.
func (c *Controller) observeResource(ctx context.Context, gvk schema.GroupVersionKind, key types.NamespacedName) (*unstructured.Unstructured, error) {
	if err := c.watch(gvk); err != nil {
		return nil, err
	}
	obj := &unstructured.Unstructured{}
	obj.SetGroupVersionKind(gvk)
	switch err := c.source.Reader.Get(ctx, key, obj); {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("reading %s %s: %w", gvk.Kind, key, err)
	}
	if obj.GetDeletionTimestamp() != nil {
		return nil, nil
	}
	return obj, nil
}

// behind returns how long to wait at most for the hub's cache to show our last
// writes of the binding's Works. Zero: it shows them.
func (c *Controller) behind(st *state) time.Duration {
	cached := map[types.NamespacedName]client.Object{}
	for name := range st.joined {
		cached[types.NamespacedName{
			Namespace: clusterv1alpha1.ExecutionNamespace(name), Name: manifest.WorkName(st.id),
		}] = nil
	}
	for _, work := range st.works {
		cached[client.ObjectKeyFromObject(work)] = work
	}
	return c.wrote.BehindAny(cached)
}

// Index adds the index of bindings by cluster.
func Index(ctx context.Context, indexer client.FieldIndexer) error {
	err := indexer.IndexField(ctx, &workv1alpha2.ResourceBinding{}, ClusterIndex, func(obj client.Object) []string {
		rb, ok := obj.(*workv1alpha2.ResourceBinding)
		if !ok {
			return nil
		}
		return targets(rb)
	})
	if err != nil {
		return fmt.Errorf("indexing bindings by cluster: %w", err)
	}
	return nil
}
