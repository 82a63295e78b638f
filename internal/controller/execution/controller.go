package execution

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
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

	mu sync.Mutex
	// waiting are the Works that found no namespace to put their objects into.
	waiting map[place]map[types.NamespacedName]bool
}

// place is a namespace in a member.
type place struct {
	member    member.ID
	namespace string
}

// New returns the controller. Its Queues are to be added to the manager.
func New(hub client.Client, members *member.Registry, recorder events.EventRecorder) *Controller {
	c := &Controller{
		reader: hub, writer: apply.NewWriter(hub, "namesake-execution"), wrote: apply.NewMemory(), recorder: recorder,
		waiting: map[place]map[types.NamespacedName]bool{},
	}
	c.queues = member.NewQueues(Name, workers, members, c)
	members.Subscribe(c.memberChanged)
	return c
}

// Queues returns what has to run.
func (c *Controller) Queues() *member.Queues[types.NamespacedName] { return c.queues }

// EnqueueWork has a Work looked at.
func (c *Controller) EnqueueWork(work *workv1alpha1.Work) {
	if name, found := clusterv1alpha1.ClusterOf(work.Namespace); found && manifest.IsApplied(work) {
		c.queues.Add(discovery.ClusterName(name), client.ObjectKeyFromObject(work))
	}
}

// memberChanged enqueues the Work of an object, and when a namespace comes, the
// Works that have something to put there.
func (c *Controller) memberChanged(e member.Event) {
	if e.Kind == member.EventLeft {
		c.forget(e.Member.ID())
	}
	if e.Kind != member.EventObject {
		return
	}
	if e.Work.Name != "" && e.Work.Namespace == clusterv1alpha1.ExecutionNamespace(string(e.Member.Name())) {
		c.queues.Add(e.Member.Name(), e.Work)
	}
	if e.GVK == member.NamespaceKind {
		c.namespaceChanged(e.Member, e.Key.Name)
	}
}

// awaitNamespace remembers that a Work has nowhere to put its objects.
func (c *Controller) awaitNamespace(id member.ID, namespace string, work types.NamespacedName) {
	c.mu.Lock()
	defer c.mu.Unlock()
	key := place{member: id, namespace: namespace}
	if c.waiting[key] == nil {
		c.waiting[key] = map[types.NamespacedName]bool{}
	}
	c.waiting[key][work] = true
}

// namespaceChanged has the Works looked at that wait for a namespace.
func (c *Controller) namespaceChanged(m *member.Member, namespace string) {
	c.mu.Lock()
	key := place{member: m.ID(), namespace: namespace}
	works := c.waiting[key]
	delete(c.waiting, key)
	c.mu.Unlock()
	for work := range works {
		c.queues.Add(m.Name(), work)
	}
}

// forget drops what is remembered of a member that has left.
func (c *Controller) forget(id member.ID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	maps.DeleteFunc(c.waiting, func(key place, _ map[types.NamespacedName]bool) bool { return key.member == id })
}

// Seed implements member.Reconciler: every Work of the member.
func (c *Controller) Seed(ctx context.Context, m *member.Member, add func(types.NamespacedName)) error {
	works := &workv1alpha1.WorkList{}
	if err := c.reader.List(ctx, works, client.UnsafeDisableDeepCopy,
		client.InNamespace(clusterv1alpha1.ExecutionNamespace(string(m.Name())))); err != nil {
		return fmt.Errorf("listing Works: %w", err)
	}
	for i := range works.Items {
		if manifest.IsApplied(&works.Items[i]) {
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
	case !manifest.IsApplied(work):
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
	for _, namespace := range result.missing {
		c.awaitNamespace(m.ID(), namespace, key)
		// It may have come while nobody waited for it yet.
		if ns, found, _ := m.Object(ctx, member.NamespaceKind, types.NamespacedName{Name: namespace}); found && ns.GetDeletionTimestamp() == nil {
			result.again = time.Second
		}
	}
	if errors.Is(result.err, member.ErrUnreachable) {
		return 0, result.err
	}
	return result.again, errors.Join(c.report(ctx, work, result), result.err)
}
