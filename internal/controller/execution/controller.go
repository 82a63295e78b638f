package execution

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/namesake-io/namesake/api/cluster/v1alpha1"
	workv1alpha1 "github.com/namesake-io/namesake/api/work/v1alpha1"
	"github.com/namesake-io/namesake/internal/apply"
	"github.com/namesake-io/namesake/internal/discovery"
	"github.com/namesake-io/namesake/internal/manifest"
	"github.com/namesake-io/namesake/internal/member"
)

// Name of the controller, as users pass it to --controllers.
const Name = "execution"

// workers per member.
const workers = 4

// Controller carries out the Works of all members.
type Controller struct {
	reader   client.Reader
	writer   apply.Writer
	wrote    *apply.Memory
	recorder events.EventRecorder
	queues   *member.Queues[types.NamespacedName]
}

// New returns the controller. Its Queues are to be added to the manager.
func New(hub client.Client, members *member.Registry, recorder events.EventRecorder) *Controller {
	c := &Controller{reader: hub, writer: apply.NewWriter(hub, "namesake-execution"), wrote: apply.NewMemory(), recorder: recorder}
	c.queues = member.NewQueues(Name, workers, members, c)
	members.Subscribe(c.memberChanged)
	return c
}

// Queues returns what has to run.
func (c *Controller) Queues() *member.Queues[types.NamespacedName] { return c.queues }

// EnqueueWork has a Work looked at.
func (c *Controller) EnqueueWork(work *workv1alpha1.Work) {
	if name, found := strings.CutPrefix(work.Namespace, clusterv1alpha1.ExecutionNamespacePrefix); found && !manifest.IsCollected(work) {
		c.queues.Add(discovery.ClusterName(name), client.ObjectKeyFromObject(work))
	}
}

// memberChanged enqueues the Work of an object, and when a namespace comes, the
// Works that have something to put there.
func (c *Controller) memberChanged(e member.Event) {
	if e.Kind != member.EventObject {
		return
	}
	if e.Work.Name != "" && e.Work.Namespace == clusterv1alpha1.ExecutionNamespace(string(e.Member.Name())) {
		c.queues.Add(e.Member.Name(), e.Work)
	}
	if e.GVK == member.NamespaceKind {
		c.queues.Gather(e.Member, func(ctx context.Context, m *member.Member, add func(types.NamespacedName)) error {
			return c.worksInNamespace(ctx, m, e.Key.Name, add)
		})
	}
}

// worksInNamespace adds the Works whose objects are in a namespace.
func (c *Controller) worksInNamespace(ctx context.Context, m *member.Member, namespace string, add func(types.NamespacedName)) error {
	works := &workv1alpha1.WorkList{}
	if err := c.reader.List(ctx, works, client.UnsafeDisableDeepCopy,
		client.InNamespace(clusterv1alpha1.ExecutionNamespace(string(m.Name())))); err != nil {
		return fmt.Errorf("listing Works: %w", err)
	}
	for i := range works.Items {
		work := &works.Items[i]
		if manifest.IsCollected(work) {
			continue
		}
		if slices.ContainsFunc(work.Spec.Workload.Manifests, func(raw workv1alpha1.Manifest) bool {
			id, err := manifest.IdentityOf(raw)
			return err == nil && id.Namespace == namespace
		}) {
			add(client.ObjectKeyFromObject(work))
		}
	}
	return nil
}

// Seed implements member.Reconciler: every Work of the member.
func (c *Controller) Seed(ctx context.Context, m *member.Member, add func(types.NamespacedName)) error {
	works := &workv1alpha1.WorkList{}
	if err := c.reader.List(ctx, works, client.UnsafeDisableDeepCopy,
		client.InNamespace(clusterv1alpha1.ExecutionNamespace(string(m.Name())))); err != nil {
		return fmt.Errorf("listing Works: %w", err)
	}
	for i := range works.Items {
		if !manifest.IsCollected(&works.Items[i]) {
			add(client.ObjectKeyFromObject(&works.Items[i]))
		}
	}
	return nil
}

// Reconcile implements member.Reconciler: one Work.
func (c *Controller) Reconcile(ctx context.Context, m *member.Member, key types.NamespacedName) (time.Duration, error) {
	work := &workv1alpha1.Work{}
	switch err := c.reader.Get(ctx, key, work); {
	case apierrors.IsNotFound(err):
		return 0, nil
	case err != nil:
		return 0, fmt.Errorf("reading Work %s: %w", key, err)
	case manifest.IsCollected(work):
		return 0, nil
	}
	if wait := c.wrote.Behind(key, work); wait > 0 {
		return wait, nil
	}
	if work.DeletionTimestamp != nil {
		return 0, c.cleanUp(ctx, m, work)
	}
	preserve := work.Spec.PreserveResourcesOnDeletion != nil && *work.Spec.PreserveResourcesOnDeletion
	if !preserve {
		if err := c.writer.AddFinalizer(ctx, work, workv1alpha1.ExecutionFinalizer); err != nil {
			return 0, err
		}
	}

	objects, err := c.observe(ctx, m, work)
	if errors.Is(err, member.ErrUnreachable) {
		return 0, err
	}
	result := c.apply(ctx, m, objects, err)
	if errors.Is(result.err, member.ErrUnreachable) {
		return 0, result.err
	}
	return result.again, errors.Join(c.report(ctx, work, result), result.err)
}
