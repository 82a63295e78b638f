package node

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"time"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/namesake-io/namesake/sandbox/internal/plan"
)

// The methods below are virtual-kubelet's PodLifecycleHandler and PodNotifier.

// NotifyPods takes what is to be called when a pod's status changes.
func (a *Agent) NotifyPods(_ context.Context, report func(*corev1.Pod)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.report = report
}

func (a *Agent) notify(p *corev1.Pod) {
	a.mu.Lock()
	report := a.report
	a.mu.Unlock()
	if report != nil {
		report(p)
	}
}

func key(namespace, name string) string { return namespace + "/" + name }

// CreatePod takes a pod and returns; its status tells how it fares.
func (a *Agent) CreatePod(ctx context.Context, object *corev1.Pod) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	name := key(object.Namespace, object.Name)
	if _, known := a.pods[name]; known {
		return fmt.Errorf("pod %s is here already", name)
	}
	index, addresses, err := a.allocate(object)
	if err != nil {
		return err
	}
	// The pod outlives the call that made it.
	killing, kill := context.WithCancel(context.WithoutCancel(ctx))
	stopping, stop := context.WithCancel(killing)
	p := &pod{
		agent: a, object: object.DeepCopy(), addresses: addresses, index: index,
		namespace: a.network.PodNamespace(a.member.Name, string(object.UID)),
		start:     metav1.Now(), stop: stop, kill: kill,
		dirty: make(chan struct{}, 1), done: make(chan struct{}),
	}
	if object.Spec.HostNetwork {
		p.namespace = a.member.Node
	}
	p.init = p.containers(object.Spec.InitContainers, true)
	p.main = p.containers(object.Spec.Containers, false)
	a.pods[name] = p
	go p.run(stopping, killing)
	return nil
}

func (p *pod) containers(specs []corev1.Container, init bool) []*container {
	var list []*container
	for i := range specs {
		c := &container{pod: p, spec: specs[i].DeepCopy(), policy: p.object.Spec.RestartPolicy}
		if init && c.policy == corev1.RestartPolicyAlways {
			c.policy = corev1.RestartPolicyOnFailure
		}
		if init && sidecar(c.spec) {
			c.policy = corev1.RestartPolicyAlways
		}
		reason := "ContainerCreating"
		if len(p.object.Spec.InitContainers) > 0 {
			reason = "PodInitializing"
		}
		c.state.waiting = &corev1.ContainerStateWaiting{Reason: reason}
		list = append(list, c)
	}
	return list
}

// allocate finds addresses: those that the pod had before the agent was started
// anew, else the next ones, so that none is used again soon.
func (a *Agent) allocate(object *corev1.Pod) (int, plan.Addresses, error) {
	if ip, err := netip.ParseAddr(object.Status.PodIP); err == nil && a.member.Pods4.Contains(ip) {
		for n := 0; ; n++ {
			addresses, ok := a.member.PodAddresses(n)
			if !ok {
				break
			}
			if addresses.V4 == ip && !a.used[n] {
				a.used[n] = true
				return n, addresses, nil
			}
		}
	}
	for tries := 0; ; tries++ {
		a.next++
		addresses, ok := a.member.PodAddresses(a.next)
		if !ok {
			if tries > 0 && a.next == 0 {
				break
			}
			a.next = -1
			continue
		}
		if !a.used[a.next] {
			a.used[a.next] = true
			return a.next, addresses, nil
		}
		if tries > len(a.used)+1 {
			break
		}
	}
	return 0, plan.Addresses{}, fmt.Errorf("the pod range %s is used up", a.member.Pods4)
}

// replaceTimeout bounds the wait for a pod of the same name that was deleted
// without grace.
const replaceTimeout = 10 * time.Second

// UpdatePod takes the new version of a pod. Only its labels and annotations and
// the like can change; images of running containers are left alone.
func (a *Agent) UpdatePod(ctx context.Context, object *corev1.Pod) error {
	p, err := a.find(object.Namespace, object.Name)
	if err != nil {
		return err
	}
	if p.spec().UID != object.UID {
		p.end(0)
		ctx, cancel := context.WithTimeout(ctx, replaceTimeout)
		defer cancel()
		select {
		case <-p.done:
			return a.CreatePod(ctx, object)
		case <-ctx.Done():
			return fmt.Errorf("waiting for the former pod of that name: %w", ctx.Err())
		}
	}
	p.mu.Lock()
	status := p.object.Status
	p.object = object.DeepCopy()
	p.object.Status.Conditions = mergeConditions(object.Status.Conditions, status.Conditions)
	p.mu.Unlock()
	p.changed()
	return nil
}

// mergeConditions takes others' conditions as they are now, ours as we had them.
func mergeConditions(given, ours []corev1.PodCondition) []corev1.PodCondition {
	merged := append([]corev1.PodCondition{}, ours...)
	for _, c := range given {
		known := false
		for i := range merged {
			known = known || merged[i].Type == c.Type
		}
		if !known {
			merged = append(merged, c)
		}
	}
	return merged
}

// DeletePod tells a pod to end. It may be called again with less grace.
func (a *Agent) DeletePod(_ context.Context, object *corev1.Pod) error {
	p, err := a.find(object.Namespace, object.Name)
	if err != nil {
		return err
	}
	if p.spec().UID != object.UID {
		return errdefs.NotFoundf("pod %s is another one now", object.Name)
	}
	var grace time.Duration
	if s := object.DeletionGracePeriodSeconds; s != nil {
		grace = time.Duration(*s) * time.Second
	}
	p.end(grace)
	select {
	case <-p.done: // it had ended long ago, and nobody else forgets it
		a.forget(p)
	default:
	}
	return nil
}

// finish forgets a pod that has ended and tells the API server that it is gone.
func (a *Agent) finish(ctx context.Context, p *pod) {
	a.forget(p)
	object := p.spec()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), requestTimeout)
	defer cancel()
	options := metav1.NewDeleteOptions(0)
	options.Preconditions = metav1.NewUIDPreconditions(string(object.UID))
	// virtual-kubelet deletes it as well, but only when the grace period is over.
	if err := a.client.CoreV1().Pods(object.Namespace).Delete(ctx, object.Name, *options); err != nil {
		a.logger.Info("Pod was not deleted", "pod", object.Name, "err", err)
	}
}

func (a *Agent) forget(p *pod) {
	object := p.spec()
	a.mu.Lock()
	name := key(object.Namespace, object.Name)
	if a.pods[name] == p {
		delete(a.pods, name)
		delete(a.used, p.index)
	}
	a.mu.Unlock()
	if err := os.RemoveAll(a.podFile(string(object.UID), "")); err != nil {
		a.logger.Error("Could not remove a pod's files", "pod", object.Name, "err", err)
	}
}

func (a *Agent) find(namespace, name string) (*pod, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	p, ok := a.pods[key(namespace, name)]
	if !ok {
		return nil, errdefs.NotFoundf("pod %s/%s is not here", namespace, name)
	}
	return p, nil
}

// GetPod returns a pod as it is now.
func (a *Agent) GetPod(_ context.Context, namespace, name string) (*corev1.Pod, error) {
	p, err := a.find(namespace, name)
	if err != nil {
		return nil, err
	}
	return p.spec().DeepCopy(), nil
}

// GetPodStatus returns the status of a pod.
func (a *Agent) GetPodStatus(ctx context.Context, namespace, name string) (*corev1.PodStatus, error) {
	p, err := a.GetPod(ctx, namespace, name)
	if err != nil {
		return nil, err
	}
	return &p.Status, nil
}

// GetPods returns all pods.
func (a *Agent) GetPods(context.Context) ([]*corev1.Pod, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	var list []*corev1.Pod
	for _, p := range a.pods {
		list = append(list, p.spec().DeepCopy())
	}
	return list, nil
}
