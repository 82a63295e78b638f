package agent

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/namesake-io/namesake/api/cluster/v1alpha1"
	workv1alpha1 "github.com/namesake-io/namesake/api/work/v1alpha1"
	"github.com/namesake-io/namesake/internal/apply"
	"github.com/namesake-io/namesake/internal/controller/cluster"
	"github.com/namesake-io/namesake/internal/controller/endpointslicecollect"
	"github.com/namesake-io/namesake/internal/controller/endpointslicedispatch"
	"github.com/namesake-io/namesake/internal/controller/execution"
	"github.com/namesake-io/namesake/internal/discovery"
	"github.com/namesake-io/namesake/internal/manifest"
	"github.com/namesake-io/namesake/internal/member"
	"github.com/namesake-io/namesake/internal/snapshot"
)

// parts is what controllers are made of.
type parts struct {
	mgr    ctrl.Manager
	source snapshot.Source
	opts   *Options
	// own is how to reach the agent's own cluster, which is called cluster on the hub.
	own       *rest.Config
	ownClient client.Client
	// ownID identifies it: the UID of its namespace kube-system.
	ownID    string
	cluster  string
	hooks    *hooks
	reported *reported
}

// reported is what the hub has last been told of the cluster.
type reported struct {
	mu    sync.Mutex
	ready metav1.Condition
}

// take takes in what the hub has been told.
func (r *reported) take(ready metav1.Condition) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ready = ready
}

// check implements healthz.Checker: the agent is ready once it has told the hub
// how its cluster is, whatever that was.
func (r *reported) check(*http.Request) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ready.Reason == "" || r.ready.Reason == clusterv1alpha1.ReasonConnecting {
		return errors.New("the hub has not been told yet how the cluster is")
	}
	return nil
}

// hooks are what controllers want to be told of the hub's Works. They only enqueue.
type hooks struct {
	work []func(*workv1alpha1.Work)
	// gone: a Work does not exist any more.
	gone []func(*workv1alpha1.Work)
}

// controllers is the one list of them all.
func controllers() map[string]func(parts) error {
	return map[string]func(parts) error{
		cluster.Name:               addCluster,
		execution.Name:             addExecution,
		endpointslicecollect.Name:  addCollect,
		endpointslicedispatch.Name: addDispatch,
	}
}

// addControllers adds every controller.
func addControllers(p parts) error {
	for name, add := range controllers() {
		if err := add(p); err != nil {
			return fmt.Errorf("adding controller %s: %w", name, err)
		}
	}
	return nil
}

func addCluster(p parts) error {
	return cluster.AddSelf(p.mgr, p.source.Members, cluster.Options{
		FailureThreshold:   p.opts.ClusterFailureThreshold,
		SuccessThreshold:   p.opts.ClusterSuccessThreshold,
		EnablementInterval: p.opts.ClusterEnablementInterval,
		NodeSummary:        p.opts.ClusterNodeSummary,
	}, cluster.Self{Name: p.cluster, Connect: p.connect, Reported: p.reported.take})
}

func addExecution(p parts) error {
	c := execution.New(p.mgr.GetClient(), p.source.Members, p.mgr.GetEventRecorder("namesake-"+execution.Name))
	p.hooks.work = append(p.hooks.work, c.EnqueueWork)
	return p.mgr.Add(c.Queues())
}

func addCollect(p parts) error {
	words := newWords(apply.NewWriter(p.mgr.GetClient(), "namesake-collect-status"))
	c := endpointslicecollect.New(p.source, &orders{source: p.source, self: discovery.ClusterName(p.cluster), words: words}, p.mgr.GetClient())
	p.hooks.work = append(p.hooks.work, func(work *workv1alpha1.Work) {
		if manifest.IsOrder(work) {
			c.EnqueueService(manifest.ServiceOf(work))
		} else {
			c.EnqueueWork(work)
		}
	})
	p.hooks.gone = append(p.hooks.gone, func(work *workv1alpha1.Work) { words.forget(work.UID) })
	return p.mgr.Add(c.Queues())
}

func addDispatch(p parts) error {
	words := newWords(apply.NewWriter(p.mgr.GetClient(), "namesake-dispatch-status"))
	plans := newDeliveries(p.source, discovery.ClusterName(p.cluster), apply.NewWriter(p.mgr.GetClient(), "namesake-dispatch"), words)
	c := endpointslicedispatch.NewWith(p.source, plans, plans)
	p.hooks.work = append(p.hooks.work, func(work *workv1alpha1.Work) {
		if manifest.IsDelivery(work) {
			c.EnqueueService(manifest.ServiceOf(work))
		}
	})
	p.hooks.gone = append(p.hooks.gone, func(work *workv1alpha1.Work) { words.forget(work.UID) })
	return p.mgr.Add(c.Queues())
}

// install has the hooks called from the cache, and keeps the interest: in services
// that the hub has ordered.
func (h *hooks) install(ctx context.Context, c cache.Cache, interest *snapshot.Interest) error {
	informer, err := c.GetInformer(ctx, &workv1alpha1.Work{}, cache.BlockUntilSynced(false))
	if err != nil {
		return fmt.Errorf("watching Works on the hub: %w", err)
	}
	tell := func(work *workv1alpha1.Work) {
		for _, call := range h.work {
			call(work)
		}
	}
	_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc: func(obj any) {
			if work, ok := obj.(*workv1alpha1.Work); ok {
				if manifest.IsOrder(work) {
					interest.Want(manifest.ServiceOf(work))
				}
				tell(work)
			}
		},
		UpdateFunc: func(before, after any) {
			old, okOld := before.(*workv1alpha1.Work)
			work, ok := after.(*workv1alpha1.Work)
			if !ok || !okOld {
				return
			}
			if manifest.IsOrder(work) {
				interest.Want(manifest.ServiceOf(work))
			}
			// Both: an edit may have changed what it is, or of which service.
			if manifest.ServiceOf(old) != manifest.ServiceOf(work) || manifest.IsOrder(old) != manifest.IsOrder(work) ||
				manifest.IsDelivery(old) != manifest.IsDelivery(work) {
				tell(old)
			}
			tell(work)
		},
		DeleteFunc: func(obj any) {
			if gone, ok := obj.(toolscache.DeletedFinalStateUnknown); ok {
				obj = gone.Obj
			}
			if work, ok := obj.(*workv1alpha1.Work); ok {
				if manifest.IsOrder(work) {
					interest.Remove(manifest.ServiceOf(work))
				}
				for _, call := range h.gone {
					call(work)
				}
				tell(work)
			}
		},
	})
	if err != nil {
		return fmt.Errorf("watching Works on the hub: %w", err)
	}
	return nil
}

// connect returns how to reach the agent's own cluster, after a look whether that
// is the one which the Cluster means.
func (p parts) connect(_ context.Context, joined *clusterv1alpha1.Cluster) (member.Config, error) {
	if joined.Spec.SyncMode != clusterv1alpha1.Pull {
		return member.Config{}, fmt.Errorf("cluster %s has syncMode %s: the hub works in it, and this agent does not", joined.Name, joined.Spec.SyncMode)
	}
	if joined.Spec.ID != "" && joined.Spec.ID != p.ownID {
		return member.Config{}, fmt.Errorf("cluster %s on the hub is another cluster (id %s) than that of this agent (id %s)", joined.Name, joined.Spec.ID, p.ownID)
	}
	token, err := p.ownToken()
	if err != nil {
		return member.Config{}, err
	}
	ca := p.own.CAData
	if len(ca) == 0 && p.own.CAFile != "" {
		if ca, err = os.ReadFile(p.own.CAFile); err != nil {
			return member.Config{}, fmt.Errorf("reading the authority of the agent's own cluster: %w", err)
		}
	}
	return member.Config{
		ID:       member.ID{Name: discovery.ClusterName(joined.Name), UID: joined.UID},
		Endpoint: strings.TrimRight(p.own.Host, "/"), CABundle: ca, Token: token,
		Reload:                      func(context.Context) (string, error) { return p.ownToken() },
		InsecureSkipTLSVerification: p.own.Insecure,
	}, nil
}

// ownToken reads the token for the agent's own cluster, which its kubelet replaces
// now and then.
func (p parts) ownToken() (string, error) {
	if p.own.BearerTokenFile == "" {
		return p.own.BearerToken, nil
	}
	token, err := os.ReadFile(p.own.BearerTokenFile)
	if err != nil {
		return "", fmt.Errorf("reading the token for the agent's own cluster: %w", err)
	}
	if len(token) == 0 {
		return "", errors.New("the token for the agent's own cluster is empty")
	}
	return strings.TrimSpace(string(token)), nil
}
