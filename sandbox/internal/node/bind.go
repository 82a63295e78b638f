package node

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"

	"github.com/namesake-io/namesake/sandbox/internal/plan"
)

// bindRetry is how soon pods that could not be bound are tried again.
const bindRetry = 2 * time.Second

// bind gives this node every pod that waits for one, until the context ends. In
// a cluster with one node, that is all that a scheduler does.
func (a *Agent) bind(ctx context.Context) error {
	factory := informers.NewSharedInformerFactoryWithOptions(a.client, bindRetry, informers.WithTweakListOptions(func(o *metav1.ListOptions) {
		o.FieldSelector = fields.OneTermEqualSelector("spec.nodeName", "").String()
	}))
	consider := func(object any) {
		p, ok := object.(*corev1.Pod)
		if !ok || !a.fits(p) {
			return
		}
		if err := a.bindOne(ctx, p); ignoreNotFound(err) != nil && ctx.Err() == nil {
			a.logger.Info("Pod was not bound", "namespace", p.Namespace, "pod", p.Name, "err", err)
		}
	}
	_, err := factory.Core().V1().Pods().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    consider,
		UpdateFunc: func(_, object any) { consider(object) },
	})
	if err != nil {
		return fmt.Errorf("watching pods that wait: %w", err)
	}
	factory.Start(ctx.Done())
	<-ctx.Done()
	factory.Shutdown()
	return nil
}

// fits tells whether the pod may run here: anything but another scheduler's
// pods, gated ones and those that select other nodes.
func (a *Agent) fits(p *corev1.Pod) bool {
	if p.DeletionTimestamp != nil || len(p.Spec.SchedulingGates) > 0 {
		return false
	}
	if s := p.Spec.SchedulerName; s != "" && s != corev1.DefaultSchedulerName {
		return false
	}
	return labels.SelectorFromSet(p.Spec.NodeSelector).Matches(labels.Set(a.object().Labels))
}

func (a *Agent) bindOne(ctx context.Context, p *corev1.Pod) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	return a.client.CoreV1().Pods(p.Namespace).Bind(ctx, &corev1.Binding{
		ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: p.Name, UID: p.UID},
		Target:     corev1.ObjectReference{Kind: "Node", Name: plan.NodeName},
	}, metav1.CreateOptions{})
}
