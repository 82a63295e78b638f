package node

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// containerState is what is known of one container. Exactly one of waiting,
// running and terminated is set.
type containerState struct {
	waiting    *corev1.ContainerStateWaiting
	running    *corev1.ContainerStateRunning
	terminated *corev1.ContainerStateTerminated
	last       *corev1.ContainerStateTerminated
	restarts   int32
	ready      bool
	started    bool
	id         string
}

// podState is what is known of a pod that has been taken.
type podState struct {
	init, main []containerState // in the order of the spec
	ips        []string
	hostIPs    []string
	start      metav1.Time
}

// Back-off of restarts, as a kubelet has it.
const (
	firstBackoff = 10 * time.Second
	maxBackoff   = 5 * time.Minute
	// calm is how long a container must run for its crashes to be forgotten.
	calm = 10 * time.Minute
)

// shouldRestart tells whether a container that ended is to be started again.
func shouldRestart(policy corev1.RestartPolicy, exitCode int32) bool {
	switch policy {
	case corev1.RestartPolicyNever:
		return false
	case corev1.RestartPolicyOnFailure:
		return exitCode != 0
	default:
		return true
	}
}

// backoff returns how long to wait before the nth restart in a row; the first
// one is not waited for.
func backoff(n int) time.Duration {
	if n <= 1 {
		return 0
	}
	d := firstBackoff
	for range n - 2 {
		d = min(2*d, maxBackoff)
	}
	return d
}

// exitReason names an end as kubectl shows it.
func exitReason(code int32) string {
	if code == 0 {
		return "Completed"
	}
	return "Error"
}

// statusOf returns the status of a pod. Conditions that have not changed keep
// the time of their last transition, and those of others are left alone.
func statusOf(pod *corev1.Pod, s podState, now metav1.Time) corev1.PodStatus {
	status := *pod.Status.DeepCopy()
	status.Reason, status.Message = "", ""
	status.StartTime = &s.start
	status.HostIP, status.HostIPs = "", nil
	for i, ip := range s.hostIPs {
		if i == 0 {
			status.HostIP = ip
		}
		status.HostIPs = append(status.HostIPs, corev1.HostIP{IP: ip})
	}
	status.PodIP, status.PodIPs = "", nil
	for i, ip := range s.ips {
		if i == 0 {
			status.PodIP = ip
		}
		status.PodIPs = append(status.PodIPs, corev1.PodIP{IP: ip})
	}
	status.InitContainerStatuses = containerStatuses(pod.Spec.InitContainers, s.init)
	status.ContainerStatuses = containerStatuses(pod.Spec.Containers, s.main)
	status.Phase = phase(pod.Spec.RestartPolicy, s)

	setCondition(&status, condition{corev1.PodScheduled, true, ""}, now)
	setCondition(&status, condition{corev1.PodReadyToStartContainers, len(s.ips) > 0, ""}, now)
	setCondition(&status, condition{corev1.PodInitialized, initialized(pod, s), "ContainersNotInitialized"}, now)
	why := "ContainersNotReady"
	if status.Phase == corev1.PodSucceeded {
		why = "PodCompleted"
	}
	ready := allReady(s.main) && initialized(pod, s)
	setCondition(&status, condition{corev1.ContainersReady, ready, why}, now)
	setCondition(&status, condition{corev1.PodReady, ready && gatesOpen(pod), why}, now)
	return status
}

func containerStatuses(specs []corev1.Container, states []containerState) []corev1.ContainerStatus {
	var list []corev1.ContainerStatus
	for i, c := range specs {
		s := states[i]
		started := s.started
		cs := corev1.ContainerStatus{
			Name: c.Name, Image: c.Image, ImageID: c.Image, ContainerID: s.id,
			RestartCount: s.restarts, Ready: s.ready, Started: &started,
			State: corev1.ContainerState{Waiting: s.waiting, Running: s.running, Terminated: s.terminated},
		}
		if s.last != nil {
			cs.LastTerminationState = corev1.ContainerState{Terminated: s.last}
		}
		list = append(list, *cs.DeepCopy())
	}
	return list
}

// phase follows from the containers. A container between two runs counts as one
// that has not ended.
func phase(policy corev1.RestartPolicy, s podState) corev1.PodPhase {
	var waiting, ended, failed int
	for _, c := range s.main {
		switch {
		case c.terminated != nil && !shouldRestart(policy, c.terminated.ExitCode):
			ended++
			if c.terminated.ExitCode != 0 {
				failed++
			}
		case c.waiting != nil && c.last == nil:
			waiting++
		}
	}
	for _, c := range s.init {
		if c.terminated != nil && c.terminated.ExitCode != 0 && policy == corev1.RestartPolicyNever {
			return corev1.PodFailed
		}
	}
	switch {
	case ended == len(s.main) && failed > 0:
		return corev1.PodFailed
	case ended == len(s.main):
		return corev1.PodSucceeded
	case waiting > 0:
		return corev1.PodPending
	default:
		return corev1.PodRunning
	}
}

// ended is the state of a pod that was told to end and has: whatever still
// waited will never run.
func (s podState) ended(now metav1.Time) podState {
	for _, list := range [][]containerState{s.init, s.main} {
		for i := range list {
			c := &list[i]
			c.ready, c.started = false, false
			if c.terminated == nil {
				c.waiting, c.running = nil, nil
				c.terminated = &corev1.ContainerStateTerminated{ExitCode: 137, Reason: "ContainerStatusUnknown", FinishedAt: now}
			}
		}
	}
	return s
}

// sidecar tells whether an init container goes on beside those that follow.
func sidecar(c *corev1.Container) bool {
	return c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways
}

func initialized(pod *corev1.Pod, s podState) bool {
	for i := range pod.Spec.InitContainers {
		c := s.init[i]
		done := c.terminated != nil && c.terminated.ExitCode == 0
		if sidecar(&pod.Spec.InitContainers[i]) {
			done = c.started
		}
		if !done {
			return false
		}
	}
	return true
}

func allReady(list []containerState) bool {
	return !slices.ContainsFunc(list, func(c containerState) bool { return !c.ready })
}

func gatesOpen(pod *corev1.Pod) bool {
	for _, gate := range pod.Spec.ReadinessGates {
		open := slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
			return c.Type == gate.ConditionType && c.Status == corev1.ConditionTrue
		})
		if !open {
			return false
		}
	}
	return true
}

type condition struct {
	kind corev1.PodConditionType
	ok   bool
	// otherwise is the reason when it is not ok.
	otherwise string
}

func setCondition(status *corev1.PodStatus, c condition, now metav1.Time) {
	wanted := corev1.PodCondition{Type: c.kind, Status: corev1.ConditionFalse, Reason: c.otherwise, LastTransitionTime: now}
	if c.ok {
		wanted.Status, wanted.Reason = corev1.ConditionTrue, ""
	}
	i := slices.IndexFunc(status.Conditions, func(p corev1.PodCondition) bool { return p.Type == c.kind })
	if i < 0 {
		status.Conditions = append(status.Conditions, wanted)
		return
	}
	if status.Conditions[i].Status == wanted.Status {
		wanted.LastTransitionTime = status.Conditions[i].LastTransitionTime
	}
	status.Conditions[i] = wanted
}
