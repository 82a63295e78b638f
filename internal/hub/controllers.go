package hub

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/namesake-io/namesake/internal/controller/binding"
	"github.com/namesake-io/namesake/internal/controller/cluster"
	"github.com/namesake-io/namesake/internal/controller/endpointslicecollect"
	"github.com/namesake-io/namesake/internal/controller/endpointslicedispatch"
	"github.com/namesake-io/namesake/internal/controller/execution"
	"github.com/namesake-io/namesake/internal/controller/multiclusterservice"
	"github.com/namesake-io/namesake/internal/controller/namespace"
	"github.com/namesake-io/namesake/internal/controller/pull"
	"github.com/namesake-io/namesake/internal/snapshot"
)

// parts is what controllers are made of.
type parts struct {
	mgr    ctrl.Manager
	source snapshot.Source
	opts   *Options
	// hooks are called on changes of hub objects; controllers with a queue for
	// each member add theirs.
	hooks *hooks
}

// entry is one controller of the list.
type entry struct {
	name string
	// gated controllers run only with the feature MultiClusterService.
	gated bool
	add   func(parts) error
}

// controllers is the one list of them all.
func controllers() []entry {
	return []entry{
		{name: cluster.Name, add: addCluster},
		{name: namespace.Name, add: func(p parts) error { return namespace.Add(p.mgr) }},
		{name: multiclusterservice.Name, gated: true, add: func(p parts) error {
			return multiclusterservice.Add(p.mgr, p.source, selectionChanged())
		}},
		{name: binding.Name, add: func(p parts) error { return binding.Add(p.mgr, p.source) }},
		{name: execution.Name, add: addExecution},
		{name: endpointslicecollect.Name, gated: true, add: addCollect},
		{name: endpointslicedispatch.Name, gated: true, add: addDispatch},
	}
}

// Names are the controllers, as users pass them to --controllers.
func Names() []string {
	var out []string
	for _, e := range controllers() {
		out = append(out, e.name)
	}
	return out
}

// addControllers adds every controller that is to run.
func addControllers(ctx context.Context, p parts) error {
	for _, e := range controllers() {
		if !p.opts.runs(e) {
			klog.FromContext(ctx).Info("Controller is off", "controller", e.name)
			continue
		}
		if err := e.add(p); err != nil {
			return fmt.Errorf("adding controller %s: %w", e.name, err)
		}
	}
	return nil
}

func addCluster(p parts) error {
	return cluster.Add(p.mgr, p.source.Members, cluster.Options{
		FailureThreshold:   p.opts.ClusterFailureThreshold,
		SuccessThreshold:   p.opts.ClusterSuccessThreshold,
		EnablementInterval: p.opts.ClusterEnablementInterval,
		NodeSummary:        p.opts.ClusterNodeSummary,
		MonitorGracePeriod: p.opts.ClusterMonitorGracePeriod,
	})
}

func addExecution(p parts) error {
	c := execution.New(p.mgr.GetClient(), p.source.Members, p.mgr.GetEventRecorder("namesake-"+execution.Name))
	p.hooks.work = append(p.hooks.work, c.EnqueueWork)
	return p.mgr.Add(c.Queues())
}

func addCollect(p parts) error {
	wishes := endpointslicecollect.NewWishes(p.source)
	c := endpointslicecollect.New(p.source, wishes, p.mgr.GetClient())
	p.hooks.wish = append(p.hooks.wish, wishes.Forget, c.EnqueueService)
	p.hooks.selection = append(p.hooks.selection, wishes.ForgetAll, c.EnqueueAll)
	p.hooks.work = append(p.hooks.work, c.EnqueueWork)
	return p.mgr.Add(c.Queues())
}

func addDispatch(p parts) error {
	c, reporter := endpointslicedispatch.New(p.source, p.mgr.GetClient(), p.mgr.GetEventRecorder("namesake-"+endpointslicedispatch.Name))
	p.hooks.wish = append(p.hooks.wish, c.EnqueueService)
	p.hooks.status = append(p.hooks.status, c.EnqueueReport)
	p.hooks.service = append(p.hooks.service, c.EnqueueService)
	p.hooks.selection = append(p.hooks.selection, c.EnqueueAll)
	p.hooks.work = append(p.hooks.work, c.EnqueueWork)
	agents := pull.New(p.source, c, p.mgr.GetClient())
	c.Follow(agents)
	unregister, err := register(reporter)
	if err != nil {
		return err
	}
	p.hooks.stop = append(p.hooks.stop, unregister)
	return errors.Join(p.mgr.Add(c.Queues()), p.mgr.Add(agents), p.mgr.Add(reporter))
}
