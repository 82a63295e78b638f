package cluster

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
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

	mu sync.Mutex
	// abandoned are the members that were last given up under a name.
	abandoned map[string]types.UID
}

// Add makes the controller and adds it to a manager.
func Add(mgr ctrl.Manager, members *member.Registry, opts Options) error {
	c := &Controller{
		opts: opts, reader: mgr.GetClient(), secrets: mgr.GetAPIReader(), members: members,
		writer: apply.NewWriter(mgr.GetClient(), "namesake-cluster"), wrote: apply.NewMemory(),
		recorder: mgr.GetEventRecorder("namesake-" + Name), served: newServed(opts.EnablementInterval), abandoned: map[string]types.UID{},
	}
	// Buffered, since handlers of member events must not block; what does not fit
	// is found by the regular look.
	health := make(chan event.TypedGenericEvent[types.NamespacedName], 1024)
	members.Subscribe(func(e member.Event) {
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
	if err := addConnector(mgr, c); err != nil {
		return err
	}
	err := ctrl.NewControllerManagedBy(mgr).Named(Name).
		For(&clusterv1alpha1.Cluster{}).
		Watches(&corev1.Secret{}, handler.EnqueueRequestsFromMapFunc(c.clustersOfSecret)).
		Watches(&workv1alpha1.Work{}, handler.EnqueueRequestsFromMapFunc(c.leavingClusterOfWork)).
		WatchesRawSource(source.TypedChannel(health, byName)).
		// A call to a member takes its time when it is slow; none waits for another.
		WithOptions(controller.Options{MaxConcurrentReconciles: 64}).
		Complete(c)
	if err != nil {
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
	st, found, err := c.observe(ctx, req.Name)
	if err != nil {
		return reconcile.Result{}, err
	}
	if !found {
		c.members.Leave(nameOf(req.Name))
		c.served.forget(req.Name)
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
