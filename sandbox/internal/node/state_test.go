package node

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

func TestBackoff(t *testing.T) {
	var got []time.Duration
	for n := range 9 {
		got = append(got, backoff(n))
	}
	s := time.Second
	if diff := cmp.Diff([]time.Duration{0, 0, 10 * s, 20 * s, 40 * s, 80 * s, 160 * s, 300 * s, 300 * s}, got); diff != "" {
		t.Errorf("back-off (-want +got):\n%s", diff)
	}
}

func TestShouldRestart(t *testing.T) {
	for policy, want := range map[corev1.RestartPolicy][2]bool{
		corev1.RestartPolicyAlways:    {true, true},
		corev1.RestartPolicyOnFailure: {false, true},
		corev1.RestartPolicyNever:     {false, false},
	} {
		if got := [2]bool{shouldRestart(policy, 0), shouldRestart(policy, 1)}; got != want {
			t.Errorf("%s: restarts %v after 0 and 1, want %v", policy, got, want)
		}
	}
}

var (
	creating = containerState{waiting: &corev1.ContainerStateWaiting{Reason: "ContainerCreating"}}
	up       = containerState{running: &corev1.ContainerStateRunning{}, started: true, ready: true}
	notReady = containerState{running: &corev1.ContainerStateRunning{}, started: true}
	crashing = containerState{waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}, last: &corev1.ContainerStateTerminated{ExitCode: 1}}
	complete = containerState{terminated: &corev1.ContainerStateTerminated{}}
	failed   = containerState{terminated: &corev1.ContainerStateTerminated{ExitCode: 1}}
)

func TestStatusOf(t *testing.T) {
	const (
		always, never, onFailure = corev1.RestartPolicyAlways, corev1.RestartPolicyNever, corev1.RestartPolicyOnFailure
	)
	tests := map[string]struct {
		policy          corev1.RestartPolicy
		init, main      []containerState
		sidecar         bool
		gate            bool
		wantPhase       corev1.PodPhase
		wantReady       bool
		wantInitialized bool
	}{
		"being made":           {policy: always, main: []containerState{creating}, wantPhase: corev1.PodPending, wantInitialized: true},
		"up":                   {policy: always, main: []containerState{up, up}, wantPhase: corev1.PodRunning, wantReady: true, wantInitialized: true},
		"one not ready":        {policy: always, main: []containerState{up, notReady}, wantPhase: corev1.PodRunning, wantInitialized: true},
		"one still being made": {policy: always, main: []containerState{up, creating}, wantPhase: corev1.PodPending, wantInitialized: true},
		"crashing":             {policy: always, main: []containerState{crashing}, wantPhase: corev1.PodRunning, wantInitialized: true},
		"between two runs":     {policy: always, main: []containerState{failed}, wantPhase: corev1.PodRunning, wantInitialized: true},
		"done":                 {policy: onFailure, main: []containerState{complete, complete}, wantPhase: corev1.PodSucceeded, wantInitialized: true},
		"half done":            {policy: never, main: []containerState{complete, up}, wantPhase: corev1.PodRunning, wantInitialized: true},
		"failed":               {policy: never, main: []containerState{complete, failed}, wantPhase: corev1.PodFailed, wantInitialized: true},
		"tried again":          {policy: onFailure, main: []containerState{failed}, wantPhase: corev1.PodRunning, wantInitialized: true},
		"init at work":         {policy: always, init: []containerState{up}, main: []containerState{creating}, wantPhase: corev1.PodPending},
		"init done":            {policy: always, init: []containerState{complete}, main: []containerState{up}, wantPhase: corev1.PodRunning, wantReady: true, wantInitialized: true},
		"init failed":          {policy: never, init: []containerState{failed}, main: []containerState{creating}, wantPhase: corev1.PodFailed},
		"sidecar up":           {policy: always, sidecar: true, init: []containerState{up}, main: []containerState{up}, wantPhase: corev1.PodRunning, wantReady: true, wantInitialized: true},
		"gate closed":          {policy: always, gate: true, main: []containerState{up}, wantPhase: corev1.PodRunning, wantInitialized: true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			pod := &corev1.Pod{Spec: corev1.PodSpec{RestartPolicy: tt.policy, Containers: make([]corev1.Container, len(tt.main))}}
			for range tt.init {
				c := corev1.Container{}
				if tt.sidecar {
					c.RestartPolicy = ptr.To(corev1.ContainerRestartPolicyAlways)
				}
				pod.Spec.InitContainers = append(pod.Spec.InitContainers, c)
			}
			if tt.gate {
				pod.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: "example.com/gate"}}
			}
			status := statusOf(pod, podState{init: tt.init, main: tt.main, ips: []string{"198.18.0.9", "fd00::9"}}, metav1.Now())
			if status.Phase != tt.wantPhase {
				t.Errorf("phase = %s, want %s", status.Phase, tt.wantPhase)
			}
			if got := isTrue(status, corev1.PodReady); got != tt.wantReady {
				t.Errorf("ready = %v, want %v", got, tt.wantReady)
			}
			if got := isTrue(status, corev1.PodInitialized); got != tt.wantInitialized {
				t.Errorf("initialized = %v, want %v", got, tt.wantInitialized)
			}
			if status.PodIP != "198.18.0.9" || len(status.PodIPs) != 2 {
				t.Errorf("addresses = %s, %v", status.PodIP, status.PodIPs)
			}
		})
	}
}

func isTrue(status corev1.PodStatus, kind corev1.PodConditionType) bool {
	for _, c := range status.Conditions {
		if c.Type == kind {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// Conditions that have not changed keep their time, others' conditions stay.
func TestConditionsMoveOnTransitionsOnly(t *testing.T) {
	pod := &corev1.Pod{Spec: corev1.PodSpec{RestartPolicy: corev1.RestartPolicyAlways, Containers: make([]corev1.Container, 1)}}
	pod.Status.Conditions = []corev1.PodCondition{{Type: "example.com/other", Status: corev1.ConditionTrue}}
	early, late := metav1.Unix(1, 0), metav1.Unix(2, 0)
	state := func(c containerState) podState { return podState{main: []containerState{c}} }
	pod.Status = statusOf(pod, state(up), early)
	if !isTrue(pod.Status, "example.com/other") {
		t.Error("the condition of somebody else is gone")
	}
	again := statusOf(pod, state(up), late)
	if diff := cmp.Diff(pod.Status, again); diff != "" {
		t.Errorf("the same state changed the status (-want +got):\n%s", diff)
	}
	for _, c := range statusOf(pod, state(notReady), late).Conditions {
		want := early
		switch c.Type {
		case corev1.PodReady, corev1.ContainersReady:
			want = late
		case "example.com/other":
			want = metav1.Time{}
		}
		if c.LastTransitionTime != want {
			t.Errorf("%s changed at %v, want %v", c.Type, c.LastTransitionTime, want)
		}
	}
}

// A pod that was told to end has no container that waits or runs.
func TestEnded(t *testing.T) {
	pod := &corev1.Pod{Spec: corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever, Containers: make([]corev1.Container, 3)}}
	s := podState{main: []containerState{crashing, complete, up}}.ended(metav1.Now())
	status := statusOf(pod, s, metav1.Now())
	for _, c := range status.ContainerStatuses {
		if c.State.Terminated == nil || c.Ready {
			t.Errorf("container ended as %+v", c)
		}
	}
	if status.Phase != corev1.PodFailed {
		t.Errorf("phase = %s", status.Phase)
	}
}

func TestLogFormat(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	stored := at.Format(time.RFC3339Nano) + " a line of text\n"
	plain, with, since := logWish{}, logWish{}, logWish{}
	with.Timestamps = true
	since.SinceTime = at.Add(time.Second)
	for wish, want := range map[*logWish]string{&plain: "a line of text\n", &with: stored, &since: ""} {
		if got, _ := wish.format(stored); got != want {
			t.Errorf("%+v: %q, want %q", wish.ContainerLogOpts, got, want)
		}
	}
}
