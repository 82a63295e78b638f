package namespace

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/namesake-io/namesake/api/cluster/v1alpha1"
	workv1alpha1 "github.com/namesake-io/namesake/api/work/v1alpha1"
	"github.com/namesake-io/namesake/internal/manifest"
	"github.com/namesake-io/namesake/internal/snapshot"
)

// state is all that a plan is made of.
type state struct {
	name string
	// namespace on the hub, nil when there is none.
	namespace *corev1.Namespace
	// clusters that have joined and are not leaving, of a namespace that is to be in
	// them.
	clusters []string
	// works make the namespace in members now. Not to be changed.
	works []*workv1alpha1.Work
}

// observe reads everything.
func (c *Controller) observe(ctx context.Context, name string) (*state, error) {
	st := &state{name: name}
	namespace := &corev1.Namespace{}
	switch err := c.reader.Get(ctx, types.NamespacedName{Name: name}, namespace); {
	case apierrors.IsNotFound(err):
	case err != nil:
		return nil, fmt.Errorf("reading namespace %s: %w", name, err)
	default:
		st.namespace = namespace
	}
	if propagates(st.namespace) {
		var err error
		if st.clusters, err = c.observeClusters(ctx); err != nil {
			return nil, err
		}
	}
	works := &workv1alpha1.WorkList{}
	if err := c.reader.List(ctx, works, client.UnsafeDisableDeepCopy,
		client.MatchingFields{snapshot.ManifestIndex: identityOf(name).String()}); err != nil {
		return nil, fmt.Errorf("listing Works of namespace %s: %w", name, err)
	}
	for i := range works.Items {
		st.works = append(st.works, &works.Items[i])
	}
	return st, nil
}

// observeClusters reads which clusters have joined and are not leaving.
func (c *Controller) observeClusters(ctx context.Context) (names []string, err error) {
	clusters := &clusterv1alpha1.ClusterList{}
	if err := c.reader.List(ctx, clusters, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing clusters: %w", err)
	}
	for i := range clusters.Items {
		if clusters.Items[i].DeletionTimestamp == nil {
			names = append(names, clusters.Items[i].Name)
		}
	}
	return names, nil
}

// behind returns how long to wait at most for the hub's cache to show our last
// writes. Zero: it shows them.
func (c *Controller) behind(st *state) time.Duration {
	cached := map[types.NamespacedName]client.Object{}
	for _, cluster := range st.clusters {
		cached[types.NamespacedName{
			Namespace: clusterv1alpha1.ExecutionNamespace(cluster), Name: manifest.WorkName(identityOf(st.name)),
		}] = nil
	}
	for _, work := range st.works {
		cached[client.ObjectKeyFromObject(work)] = work
	}
	return c.wrote.BehindAny(cached)
}

// identityOf returns which object a namespace is.
func identityOf(name string) manifest.Identity {
	return manifest.Identity{Kind: "Namespace", Name: name}
}
