package cluster

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	clusterv1alpha1 "github.com/namesake-io/namesake/api/cluster/v1alpha1"
	workv1alpha1 "github.com/namesake-io/namesake/api/work/v1alpha1"
	"github.com/namesake-io/namesake/internal/apply"
	"github.com/namesake-io/namesake/internal/member"
)

// Name of the controller, as users pass it to --controllers.
const Name = "cluster"

// Options of the controller.
type Options struct {
	// FailureThreshold is how long a member must be silent before it is not Ready.
	FailureThreshold time.Duration
	// SuccessThreshold is how long it must answer before it is Ready again.
	SuccessThreshold time.Duration
	// EnablementInterval is how often it is asked what it serves.
	EnablementInterval time.Duration
	// NodeSummary has its nodes counted as often, if it lets them be listed.
	NodeSummary bool
	// MonitorGracePeriod is how long an agent's lease may be overdue.
	MonitorGracePeriod time.Duration
}

// Self is how an agent knows its own cluster.
type Self struct {
	// Name of its Cluster.
	Name string
	// Connect says how to reach it, once it is known to be this Cluster.
	Connect func(context.Context, *clusterv1alpha1.Cluster) (member.Config, error)
	// Reported is called with the condition Ready that the hub has been told.
	Reported func(metav1.Condition)
}

// Controller reconciles Clusters.
type Controller struct {
	opts     Options
	reader   client.Reader
	secrets  client.Reader
	writer   apply.Writer
	wrote    *apply.Memory
	members  *member.Registry
	recorder events.EventRecorder
	served   *served
	beats    *beats

	// self is the agent's own cluster. None on the hub, which has them all.
	self Self

	mu sync.Mutex
	// abandoned are the members that were last given up under a name.
	abandoned map[string]types.UID
}

// Add makes the hub's controller and adds it to a manager.
func Add(mgr ctrl.Manager, members *member.Registry, opts Options) error {
	c := newController(mgr, members, opts)
	c.secrets, c.recorder = mgr.GetAPIReader(), mgr.GetEventRecorder("namesake-"+Name)
	if err := addConnector(mgr, c); err != nil {
		return err
	}
	return c.complete(ctrl.NewControllerManagedBy(mgr).Named(Name).
		For(&clusterv1alpha1.Cluster{}).
		Watches(&corev1.Secret{}, handler.EnqueueRequestsFromMapFunc(c.clustersOfSecret)).
		Watches(&coordinationv1.Lease{}, handler.EnqueueRequestsFromMapFunc(clusterOfLease)).
		Watches(&workv1alpha1.Work{}, handler.EnqueueRequestsFromMapFunc(c.leavingClusterOfWork)).
		// A call to a member takes its time when it is slow; none waits for another.
		WithOptions(controller.Options{MaxConcurrentReconciles: 64}))
}

// AddSelf makes an agent's controller, which connects the agent's own cluster and
// tells the hub how it is, and adds it to a manager whose cache has no other Cluster.
func AddSelf(mgr ctrl.Manager, members *member.Registry, opts Options, self Self) error {
	c := newController(mgr, members, opts)
	c.self = self
	return c.complete(ctrl.NewControllerManagedBy(mgr).Named(Name).For(&clusterv1alpha1.Cluster{}))
}

// newController returns what hub and agent have in common.
func newController(mgr ctrl.Manager, members *member.Registry, opts Options) *Controller {
	return &Controller{
		opts: opts, reader: mgr.GetClient(), members: members,
		writer: apply.NewWriter(mgr.GetClient(), "namesake-cluster"), wrote: apply.NewMemory(),
		served: newServed(opts), beats: &beats{last: map[string]beat{}}, abandoned: map[string]types.UID{},
	}
}

// complete has the controller look at a member whose health changes, too.
func (c *Controller) complete(b *builder.Builder) error {
	// Buffered, since handlers of member events must not block; what does not fit
	// is found by the regular look.
	health := make(chan event.TypedGenericEvent[types.NamespacedName], 1024)
	c.members.Subscribe(func(e member.Event) {
		if e.Kind == member.EventSlice || e.Kind == member.EventObject {
			return
		}
		select {
		case health <- event.TypedGenericEvent[types.NamespacedName]{Object: types.NamespacedName{Name: string(e.Member.Name())}}:
		default:
		}
	})
	byName := handler.TypedEnqueueRequestsFromMapFunc(func(_ context.Context, key types.NamespacedName) []reconcile.Request {
		return []reconcile.Request{{NamespacedName: key}}
	})
	if err := b.WatchesRawSource(source.TypedChannel(health, byName)).Complete(c); err != nil {
		return fmt.Errorf("adding controller %s: %w", Name, err)
	}
	return nil
}

// connector keeps members connected in every replica, so that one that takes over
// has seen what is in them. It tells nothing: what hinders a connection is found,
// and told, by the leader.
type connector struct{ *Controller }

// addConnector adds the connector to a manager.
func addConnector(mgr ctrl.Manager, c *Controller) error {
	onlyLeader := false
	err := ctrl.NewControllerManagedBy(mgr).Named(Name+"-connection").
		For(&clusterv1alpha1.Cluster{}).
		Watches(&corev1.Secret{}, handler.EnqueueRequestsFromMapFunc(c.clustersOfSecret)).
		WithOptions(controller.Options{NeedLeaderElection: &onlyLeader}).
		Complete(connector{c})
	if err != nil {
		return fmt.Errorf("adding the connector of controller %s: %w", Name, err)
	}
	return nil
}

// Reconcile implements reconcile.Reconciler: one Cluster. One that leaves is left
// to the leader.
func (c connector) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	cluster := &clusterv1alpha1.Cluster{}
	switch err := c.reader.Get(ctx, req.NamespacedName, cluster); {
	case apierrors.IsNotFound(err):
		c.members.Leave(nameOf(req.Name))
		return reconcile.Result{}, nil
	case err != nil:
		return reconcile.Result{}, fmt.Errorf("reading cluster %s: %w", req.Name, err)
	}
	if cluster.DeletionTimestamp == nil && cluster.Spec.SyncMode == clusterv1alpha1.Push {
		secret, secretErr := c.readSecret(ctx, cluster)
		if err := c.connect(ctx, cluster, secret, secretErr); err != nil {
			klog.FromContext(ctx).V(4).Info("Cannot connect", "cluster", req.Name, "cause", err)
		}
	}
	return reconcile.Result{}, nil
}

// clusterOfLease returns the cluster whose agent renews a lease.
func clusterOfLease(_ context.Context, obj client.Object) []reconcile.Request {
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: obj.GetName()}}}
}

// clustersOfSecret returns the clusters whose credential a Secret is.
func (c *Controller) clustersOfSecret(ctx context.Context, obj client.Object) []reconcile.Request {
	list := &clusterv1alpha1.ClusterList{}
	if err := c.reader.List(ctx, list, client.UnsafeDisableDeepCopy,
		client.MatchingFields{SecretIndex: client.ObjectKeyFromObject(obj).String()}); err != nil {
		return nil
	}
	out := make([]reconcile.Request, 0, len(list.Items))
	for i := range list.Items {
		out = append(out, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
	}
	return out
}

// leavingClusterOfWork returns the cluster of a Work, if it waits for its Works to go.
func (c *Controller) leavingClusterOfWork(ctx context.Context, obj client.Object) []reconcile.Request {
	name, found := clusterv1alpha1.ClusterOf(obj.GetNamespace())
	cluster := &clusterv1alpha1.Cluster{}
	if !found || c.reader.Get(ctx, types.NamespacedName{Name: name}, cluster, client.UnsafeDisableDeepCopy) != nil ||
		cluster.DeletionTimestamp == nil {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: name}}}
}

// Reconcile implements reconcile.Reconciler: one Cluster.
func (c *Controller) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	if c.self.Name != "" {
		return c.reconcileSelf(ctx)
	}
	st, found, err := c.observe(ctx, req.Name)
	if err != nil {
		return reconcile.Result{}, err
	}
	if !found {
		c.forget(req.Name)
		return reconcile.Result{}, nil
	}
	if wait := c.wrote.Behind(req.NamespacedName, st.cluster); wait > 0 {
		return reconcile.Result{RequeueAfter: wait}, nil
	}
	if st.cluster.DeletionTimestamp != nil {
		again, err := c.leave(ctx, st)
		return reconcile.Result{RequeueAfter: again}, err
	}
	if err := c.prepare(ctx, st); err != nil {
		return reconcile.Result{}, fmt.Errorf("preparing cluster %s: %w", req.Name, err)
	}
	connectErr := c.connect(ctx, st.cluster, st.secret, st.secretErr)
	p := plan(st, connectErr, c.opts)
	if err := c.apply(ctx, st, p); err != nil {
		return reconcile.Result{}, errors.Join(fmt.Errorf("reporting on cluster %s: %w", req.Name, err), connectErr)
	}
	return reconcile.Result{RequeueAfter: p.Again}, nil
}

// reconcileSelf is an agent's look at its own cluster. One that is leaving is
// worked on until it has gone: what stands in it has to be taken away.
func (c *Controller) reconcileSelf(ctx context.Context) (reconcile.Result, error) {
	st, found, err := c.observeSelf(ctx)
	if err != nil {
		return reconcile.Result{}, err
	}
	if !found {
		c.forget(c.self.Name)
		return reconcile.Result{}, nil
	}
	if wait := c.wrote.Behind(client.ObjectKeyFromObject(st.cluster), st.cluster); wait > 0 {
		return reconcile.Result{RequeueAfter: wait}, nil
	}
	cfg, err := c.self.Connect(ctx, st.cluster)
	if err != nil {
		return reconcile.Result{}, err
	}
	if err := c.members.Ensure(ctx, cfg); err != nil {
		return reconcile.Result{}, err
	}
	p := plan(st, nil, c.opts)
	if err := c.report(ctx, st, st.cluster.DeepCopy(), p); err != nil {
		return reconcile.Result{}, fmt.Errorf("reporting on cluster %s: %w", c.self.Name, err)
	}
	if ready := meta.FindStatusCondition(p.Conditions, clusterv1alpha1.ConditionReady); ready != nil {
		c.self.Reported(*ready)
	}
	return reconcile.Result{RequeueAfter: p.Again}, nil
}

// forget ends the connection to a member that has left, and drops what is known of it.
func (c *Controller) forget(name string) {
	c.members.Leave(nameOf(name))
	c.served.forget(name)
	c.beats.forget(name)
}
