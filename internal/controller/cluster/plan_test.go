package cluster

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	clusterv1alpha1 "github.com/namesake-io/namesake/api/cluster/v1alpha1"
	workv1alpha1 "github.com/namesake-io/namesake/api/work/v1alpha1"
	"github.com/namesake-io/namesake/internal/member"
)

var (
	now  = time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)
	opts = Options{
		FailureThreshold: 30 * time.Second, SuccessThreshold: 20 * time.Second, EnablementInterval: 5 * time.Minute,
		MonitorGracePeriod: 40 * time.Second,
	}
)

// was is a condition Ready that was told a while ago.
func was(status metav1.ConditionStatus, reason, message string) metav1.Condition {
	return metav1.Condition{
		Type: clusterv1alpha1.ConditionReady, Status: status, Reason: reason, Message: message,
		LastTransitionTime: metav1.NewTime(now.Add(-time.Hour)),
	}
}

var (
	wasReady       = was(metav1.ConditionTrue, clusterv1alpha1.ReasonClusterReady, "the API server answers and is ready")
	wasSilent      = was(metav1.ConditionFalse, clusterv1alpha1.ReasonClusterNotReachable, "no answer, first words")
	wasNotReady    = was(metav1.ConditionFalse, clusterv1alpha1.ReasonClusterNotReady, "etcd is down")
	wasConnecting  = was(metav1.ConditionUnknown, clusterv1alpha1.ReasonConnecting, "the API server has not answered yet")
	wasRejected    = was(metav1.ConditionFalse, clusterv1alpha1.ReasonCredentialRejected, "refused")
	wasAgentSilent = was(metav1.ConditionUnknown, clusterv1alpha1.ReasonAgentSilent, "the agent has not renewed its lease for 40s: is it running in the cluster, and can it reach the hub?")
	wasInvalid     = was(metav1.ConditionFalse, clusterv1alpha1.ReasonCredentialInvalid, "no Secret")
	unreachable    = corev1.Taint{Key: clusterv1alpha1.TaintUnreachable, Effect: corev1.TaintEffectNoSchedule}
	notReady       = corev1.Taint{Key: clusterv1alpha1.TaintNotReady, Effect: corev1.TaintEffectNoSchedule}
	unschedulable  = corev1.Taint{Key: clusterv1alpha1.TaintUnschedulable, Effect: corev1.TaintEffectNoSchedule}
	wasWatched     = metav1.Condition{Type: clusterv1alpha1.ConditionSlicesWatched, Status: metav1.ConditionTrue, Reason: clusterv1alpha1.ReasonWatchEstablished, Message: "all is told"}
	wasUnwatched   = metav1.Condition{Type: clusterv1alpha1.ConditionSlicesWatched, Status: metav1.ConditionFalse, Reason: clusterv1alpha1.ReasonWatchSilent, Message: "nothing for minutes"}
	ofSomebodyElse = corev1.Taint{Key: "example.com/maintenance", Effect: corev1.TaintEffectNoExecute}
)

// health is what the last probe found, for a while.
func health(reason string, since time.Duration) member.Health {
	h := member.Health{Known: true, Reason: reason, Message: "said now", Since: now.Add(-since)}
	switch reason {
	case clusterv1alpha1.ReasonClusterReady:
		h.Reachable, h.Ready, h.Message = true, true, wasReady.Message
	case clusterv1alpha1.ReasonClusterNotReady:
		h.Reachable = true
	}
	return h
}

const (
	ready    = clusterv1alpha1.ReasonClusterReady
	silent   = clusterv1alpha1.ReasonClusterNotReachable
	unready  = clusterv1alpha1.ReasonClusterNotReady
	rejected = clusterv1alpha1.ReasonCredentialRejected
)

func TestReady(t *testing.T) {
	// beatAgo is a pull member, on the hub, whose agent was seen so long ago.
	beatAgo := func(d time.Duration) func(*state) {
		return func(st *state) { st.asked, st.beat = false, now.Add(-d) }
	}
	for title, tc := range map[string]struct {
		was        *metav1.Condition
		health     *member.Health
		connectErr error
		edit       func(*state)

		wantStatus     metav1.ConditionStatus
		wantReason     string
		wantMessage    string
		wantTransition bool
		wantTaints     []string
		wantAgain      time.Duration
	}{
		"nothing heard yet": {
			wantStatus: metav1.ConditionUnknown, wantReason: clusterv1alpha1.ReasonConnecting,
			wantMessage: "the API server has not answered yet", wantTransition: true, wantAgain: settleInterval,
		},
		"nothing heard yet after a restart of the hub: as it was": {
			was: &wasReady, wantStatus: metav1.ConditionTrue, wantReason: ready, wantMessage: wasReady.Message, wantAgain: settleInterval,
		},
		"the first answer counts at once": {
			was: &wasConnecting, health: new(health(ready, 0)),
			wantStatus: metav1.ConditionTrue, wantReason: ready, wantMessage: wasReady.Message, wantTransition: true,
		},
		"the first silence counts at once": {
			was: &wasConnecting, health: new(health(silent, 0)),
			wantStatus: metav1.ConditionFalse, wantReason: silent, wantMessage: "said now", wantTransition: true, wantTaints: []string{unreachable.Key},
		},
		"a member that worked is silent for a moment": {
			was: &wasReady, health: new(health(silent, 10*time.Second)),
			wantStatus: metav1.ConditionTrue, wantReason: ready, wantMessage: wasReady.Message, wantAgain: 20 * time.Second,
		},
		"and for the threshold": {
			was: &wasReady, health: new(health(silent, 30*time.Second)),
			wantStatus: metav1.ConditionFalse, wantReason: silent, wantMessage: "said now", wantTransition: true, wantTaints: []string{unreachable.Key},
		},
		"a member that worked says for a moment that it is not ready": {
			was: &wasReady, health: new(health(unready, 29*time.Second)),
			wantStatus: metav1.ConditionTrue, wantReason: ready, wantMessage: wasReady.Message, wantAgain: time.Second,
		},
		"and for the threshold, too": {
			was: &wasReady, health: new(health(unready, time.Minute)),
			wantStatus: metav1.ConditionFalse, wantReason: unready, wantMessage: "said now", wantTransition: true, wantTaints: []string{notReady.Key},
		},
		"a silent member is back for a moment": {
			was: &wasSilent, health: new(health(ready, 5*time.Second)),
			wantStatus: metav1.ConditionFalse, wantReason: silent, wantMessage: wasSilent.Message, wantTaints: []string{unreachable.Key}, wantAgain: 15 * time.Second,
		},
		"and for good": {
			was: &wasSilent, health: new(health(ready, 20*time.Second)),
			wantStatus: metav1.ConditionTrue, wantReason: ready, wantMessage: wasReady.Message, wantTransition: true,
		},
		"silent as before, in other words": {
			was: &wasSilent, health: new(health(silent, time.Hour)),
			wantStatus: metav1.ConditionFalse, wantReason: silent, wantMessage: wasSilent.Message, wantTaints: []string{unreachable.Key},
		},
		"from not ready to silent": {
			was: &wasNotReady, health: new(health(silent, 0)),
			wantStatus: metav1.ConditionFalse, wantReason: silent, wantMessage: "said now", wantTaints: []string{unreachable.Key},
		},
		"a refused credential counts at once": {
			was: &wasReady, health: new(health(rejected, 0)),
			wantStatus: metav1.ConditionFalse, wantReason: rejected, wantMessage: "said now", wantTransition: true, wantTaints: []string{unreachable.Key},
		},
		"and a renewed one, too": {
			was: &wasRejected, health: new(health(ready, 0)),
			wantStatus: metav1.ConditionTrue, wantReason: ready, wantMessage: wasReady.Message, wantTransition: true,
		},
		"a Secret that cannot be used, whatever the connection says": {
			was: &wasReady, health: new(health(ready, time.Hour)), connectErr: errors.New("the Secret karmada-cluster/a has no key \"token\""),
			wantStatus: metav1.ConditionFalse, wantReason: clusterv1alpha1.ReasonCredentialInvalid,
			wantMessage:    "the Secret karmada-cluster/a has no key \"token\": join the cluster again to renew it",
			wantTransition: true, wantTaints: []string{unreachable.Key},
		},
		"a Secret that can be used again": {
			was: &wasInvalid, health: new(health(ready, time.Hour)),
			wantStatus: metav1.ConditionTrue, wantReason: ready, wantMessage: wasReady.Message, wantTransition: true,
		},
		"an agent that has not reported yet": {
			edit: beatAgo(time.Hour), wantStatus: metav1.ConditionUnknown, wantReason: clusterv1alpha1.ReasonConnecting,
			wantMessage: "no agent has reported yet: is it running in the cluster, and can it reach the hub?", wantTransition: true,
		},
		"an agent that renews its lease speaks for itself": {
			was: &wasReady, edit: beatAgo(10 * time.Second),
			wantStatus: metav1.ConditionTrue, wantReason: ready, wantMessage: wasReady.Message, wantAgain: 30 * time.Second,
		},
		"also when it says that its API server is silent": {
			was: &wasSilent, edit: beatAgo(39 * time.Second),
			wantStatus: metav1.ConditionFalse, wantReason: silent, wantMessage: wasSilent.Message, wantAgain: time.Second, wantTaints: []string{unreachable.Key},
		},
		"a lease that is overdue": {
			was: &wasReady, edit: beatAgo(40 * time.Second),
			wantStatus: metav1.ConditionUnknown, wantReason: clusterv1alpha1.ReasonAgentSilent, wantMessage: wasAgentSilent.Message,
			wantTransition: true, wantTaints: []string{unreachable.Key},
		},
		"overdue as before": {
			was: &wasAgentSilent, edit: beatAgo(time.Hour),
			wantStatus: metav1.ConditionUnknown, wantReason: clusterv1alpha1.ReasonAgentSilent, wantMessage: wasAgentSilent.Message, wantTaints: []string{unreachable.Key},
		},
		"renewed again, until the agent speaks": {
			was: &wasAgentSilent, edit: beatAgo(0), wantAgain: 40 * time.Second,
			wantStatus: metav1.ConditionUnknown, wantReason: clusterv1alpha1.ReasonAgentSilent, wantMessage: wasAgentSilent.Message, wantTaints: []string{unreachable.Key},
		},
		"an agent that is back says at once that it is well": {
			was: &wasAgentSilent, health: new(health(ready, 0)),
			wantStatus: metav1.ConditionTrue, wantReason: ready, wantMessage: wasReady.Message, wantTransition: true,
		},
	} {
		t.Run(title, func(t *testing.T) {
			st := &state{cluster: &clusterv1alpha1.Cluster{}, now: now, asked: true}
			st.cluster.Generation = 7
			st.cluster.Spec.SyncMode = clusterv1alpha1.Push
			if tc.was != nil {
				st.cluster.Status.Conditions = []metav1.Condition{*tc.was}
			}
			if tc.health != nil {
				st.health, st.known = *tc.health, true
			}
			if tc.edit != nil {
				tc.edit(st)
			}
			before := st.cluster.DeepCopy()
			p := plan(st, tc.connectErr, opts)

			want := metav1.Condition{
				Type: clusterv1alpha1.ConditionReady, Status: tc.wantStatus, Reason: tc.wantReason, Message: tc.wantMessage,
				ObservedGeneration: 7, LastTransitionTime: metav1.NewTime(now.Add(-time.Hour)),
			}
			if tc.wantTransition {
				want.LastTransitionTime = metav1.NewTime(now)
			}
			if diff := cmp.Diff(&want, meta.FindStatusCondition(p.Conditions, clusterv1alpha1.ConditionReady)); diff != "" {
				t.Errorf("condition Ready (-want +got):\n%s", diff)
			}
			var taints []string
			for _, taint := range p.Taints {
				taints = append(taints, taint.Key)
			}
			if diff := cmp.Diff(tc.wantTaints, taints); diff != "" {
				t.Errorf("taints (-want +got):\n%s", diff)
			}
			if p.Again != tc.wantAgain {
				t.Errorf("again after %s, want %s", p.Again, tc.wantAgain)
			}
			if diff := cmp.Diff(before, st.cluster); diff != "" {
				t.Errorf("the plan changed what it reads:\n%s", diff)
			}
		})
	}
}

func TestTaints(t *testing.T) {
	earlier := metav1.NewTime(now.Add(-time.Hour))
	dated := func(taint corev1.Taint) corev1.Taint { taint.TimeAdded = &earlier; return taint }
	added := func(taint corev1.Taint) corev1.Taint { taint.TimeAdded = &metav1.Time{Time: now}; return taint }
	for title, tc := range map[string]struct {
		have       []corev1.Taint
		ready      metav1.Condition
		wantTaints []corev1.Taint
	}{
		"ready: none":                     {ready: wasReady},
		"ready: ours go, others stay":     {have: []corev1.Taint{ofSomebodyElse, dated(unreachable), unschedulable}, ready: wasReady, wantTaints: []corev1.Taint{ofSomebodyElse, unschedulable}},
		"unknown: ours go":                {have: []corev1.Taint{unreachable}, ready: wasConnecting},
		"silent: added and dated":         {have: []corev1.Taint{ofSomebodyElse}, ready: wasSilent, wantTaints: []corev1.Taint{ofSomebodyElse, added(unreachable)}},
		"silent still: the date stays":    {have: []corev1.Taint{dated(unreachable)}, ready: wasSilent, wantTaints: []corev1.Taint{dated(unreachable)}},
		"not ready any more, now silent":  {have: []corev1.Taint{dated(notReady)}, ready: wasSilent, wantTaints: []corev1.Taint{added(unreachable)}},
		"refused: unreachable":            {ready: wasRejected, wantTaints: []corev1.Taint{added(unreachable)}},
		"an agent is silent: unreachable": {ready: wasAgentSilent, wantTaints: []corev1.Taint{added(unreachable)}},
		"not ready":                       {ready: wasNotReady, wantTaints: []corev1.Taint{added(notReady)}},
	} {
		t.Run(title, func(t *testing.T) {
			got := taints(tc.have, tc.ready, now)
			if diff := cmp.Diff(tc.wantTaints, got); diff != "" {
				t.Errorf("taints (-want +got):\n%s", diff)
			}
			if !sameTaints(got, taints(got, tc.ready, now.Add(time.Hour))) {
				t.Error("an hour later they are others: a write at rest")
			}
		})
	}
}

// What a member serves is told with a condition, whole or not, and asked for again.
func TestEnablements(t *testing.T) {
	st := &state{cluster: &clusterv1alpha1.Cluster{}, now: now, asked: true, known: true, health: health(ready, time.Hour)}
	st.cluster.Spec.SyncMode = clusterv1alpha1.Push
	st.served = &enablements{version: "v1.37.2", complete: false, message: "metrics.k8s.io/v1: no answer"}
	p := plan(st, nil, opts)
	c := meta.FindStatusCondition(p.Conditions, clusterv1alpha1.ConditionCompleteAPIEnablements)
	if c == nil || c.Status != metav1.ConditionFalse || c.Reason != clusterv1alpha1.ReasonAPIEnablementsPartial || c.Message != st.served.message {
		t.Errorf("condition %+v, want false with reason and message", c)
	}
	if p.Again != opts.EnablementInterval || p.Served != st.served {
		t.Errorf("again after %s with %v, want %s and what is served", p.Again, p.Served, opts.EnablementInterval)
	}
	st.served.complete = true
	if p = plan(st, nil, opts); !meta.IsStatusConditionTrue(p.Conditions, clusterv1alpha1.ConditionCompleteAPIEnablements) {
		t.Errorf("conditions %+v, want complete", p.Conditions)
	}
}

// How the watch of its slices is, is told once anything is known of it.
func TestSlicesWatched(t *testing.T) {
	for title, tc := range map[string]struct {
		watch member.WatchState
		want  metav1.ConditionStatus
	}{
		"nothing is known": {},
		"works":            {watch: member.WatchState{Known: true, Works: true, Reason: clusterv1alpha1.ReasonWatchEstablished}, want: metav1.ConditionTrue},
		"may not":          {watch: member.WatchState{Known: true, Reason: clusterv1alpha1.ReasonWatchForbidden, Message: "no rights"}, want: metav1.ConditionFalse},
	} {
		t.Run(title, func(t *testing.T) {
			st := &state{cluster: &clusterv1alpha1.Cluster{}, now: now, asked: true, known: true, health: health(ready, time.Hour), watch: tc.watch}
			st.cluster.Spec.SyncMode = clusterv1alpha1.Push
			got := meta.FindStatusCondition(plan(st, nil, opts).Conditions, clusterv1alpha1.ConditionSlicesWatched)
			switch {
			case tc.want == "":
				if got != nil {
					t.Errorf("condition %+v, want none", got)
				}
			case got == nil || got.Status != tc.want || got.Reason != tc.watch.Reason || got.Message != tc.watch.Message:
				t.Errorf("condition %+v, want %s with reason and message of %+v", got, tc.want, tc.watch)
			}
		})
	}
}

// A lease is overdue by the hub's own clock, from when it was seen to change.
func TestBeats(t *testing.T) {
	b := &beats{last: map[string]beat{}}
	for i, step := range []struct {
		version string
		after   time.Duration
		want    time.Duration
	}{
		{"1", 0, 0}, {"1", time.Minute, 0}, {"2", 2 * time.Minute, 2 * time.Minute}, {"2", time.Hour, 2 * time.Minute}, {"", 2 * time.Hour, 2 * time.Hour},
	} {
		if got := b.seen("a", step.version, now.Add(step.after)).Sub(now); got != step.want {
			t.Errorf("step %d: seen after %s, want %s", i, got, step.want)
		}
	}
	b.forget("a")
	if got := b.seen("a", "", now); got != now {
		t.Errorf("after a new start: %s, want %s", got, now)
	}
}

// Planning on what was written plans the same: no write at rest.
func TestAtRest(t *testing.T) {
	for _, h := range []member.Health{health(ready, time.Hour), health(silent, time.Hour), health(unready, time.Hour), health(rejected, time.Hour)} {
		t.Run(h.Reason, func(t *testing.T) {
			st := &state{cluster: &clusterv1alpha1.Cluster{}, now: now, asked: true, known: true, health: h}
			st.cluster.Spec.SyncMode = clusterv1alpha1.Push
			first := plan(st, nil, opts)
			st.cluster.Status.Conditions, st.cluster.Spec.Taints = first.Conditions, first.Taints
			st.now = now.Add(time.Hour)
			if diff := cmp.Diff(first, plan(st, nil, opts)); diff != "" {
				t.Errorf("an hour later (-first +second):\n%s", diff)
			}
		})
	}
}

// What stays in a member that is given up is told by kind and number, with the
// labels by which to find it.
func TestWhatIsLeft(t *testing.T) {
	work := func(collected bool, manifests ...string) *workv1alpha1.Work {
		out := &workv1alpha1.Work{Spec: workv1alpha1.WorkSpec{SuspendDispatching: &collected}}
		for _, m := range manifests {
			out.Spec.Workload.Manifests = append(out.Spec.Workload.Manifests,
				workv1alpha1.Manifest{RawExtension: runtime.RawExtension{Raw: []byte(m)}})
		}
		return out
	}
	const (
		service = `{"apiVersion":"v1","kind":"Service","metadata":{"namespace":"shop","name":"foo"}}`
		config  = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"shop","name":"foo"}}`
		space   = `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"shop"}}`
		slice   = `{"apiVersion":"discovery.k8s.io/v1","kind":"EndpointSlice","metadata":{"namespace":"shop","name":"foo"}}`
	)
	for title, tc := range map[string]struct {
		works      []*workv1alpha1.Work
		seen       bool
		dispatched int
		want       string
	}{
		"nothing": {seen: true, want: "no object of a Work; 0 EndpointSlice (label endpointslice.kubernetes.io/managed-by=endpointslice-dispatch-controller.karmada.io)"},
		"objects and slices": {
			works: []*workv1alpha1.Work{work(false, service), work(false, service, config), work(false, space), work(true, slice), work(false, "{")},
			seen:  true, dispatched: 7,
			want: "1 ConfigMap, 2 Service (label karmada.io/managed=true); 7 EndpointSlice (label endpointslice.kubernetes.io/managed-by=endpointslice-dispatch-controller.karmada.io)",
		},
		"not seen since the hub started": {
			works: []*workv1alpha1.Work{work(false, service)},
			want:  "1 Service (label karmada.io/managed=true); an unknown number of EndpointSlice (label endpointslice.kubernetes.io/managed-by=endpointslice-dispatch-controller.karmada.io)",
		},
	} {
		t.Run(title, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, whatIsLeft(tc.works, tc.seen, tc.dispatched).String()); diff != "" {
				t.Errorf("left (-want +got):\n%s", diff)
			}
		})
	}
}
