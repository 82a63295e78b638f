package cluster

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/namesake-io/namesake/api/cluster/v1alpha1"
	networkingv1alpha1 "github.com/namesake-io/namesake/api/networking/v1alpha1"
	workv1alpha1 "github.com/namesake-io/namesake/api/work/v1alpha1"
	"github.com/namesake-io/namesake/internal/manifest"
	"github.com/namesake-io/namesake/internal/member"
)

// settleInterval is how soon to look again while a member has not said anything.
const settleInterval = time.Second

// changes are what is to be told of a member.
type changes struct {
	// Conditions of the Cluster, whole.
	Conditions []metav1.Condition
	// Served is what the member serves, nil when that is not known.
	Served *enablements
	// Taints of the Cluster, whole.
	Taints []corev1.Taint
	// Again is when to look again though nothing happens.
	Again time.Duration
}

// plan decides what is told of a member. connectErr is why it cannot be connected.
func plan(st *state, connectErr error, opts Options) changes {
	was := meta.FindStatusCondition(st.cluster.Status.Conditions, clusterv1alpha1.ConditionReady)
	ready, again := readyCondition(st, was, connectErr, opts)
	out := changes{Served: st.served, Again: again}
	out.Conditions = slices.Clone(st.cluster.Status.Conditions)
	set(&out.Conditions, ready, st)
	if st.served != nil {
		set(&out.Conditions, enablementsCondition(st.served), st)
		out.Again = earlier(out.Again, opts.EnablementInterval)
	}
	if st.watch.Known {
		set(&out.Conditions, watchCondition(st.watch), st)
	}
	out.Taints = taints(st.cluster.Spec.Taints, ready, st.now)
	return out
}

// readyCondition is what the health of a member comes to. A member that worked is
// given time before it counts as silent, and one that was silent before it counts
// as back, so that a hiccup changes nothing.
func readyCondition(st *state, was *metav1.Condition, connectErr error, opts Options) (_ metav1.Condition, again time.Duration) {
	is := metav1.Condition{Type: clusterv1alpha1.ConditionReady, Status: metav1.ConditionFalse}
	switch {
	case !st.asked:
		return agentCondition(st, was, opts)
	case connectErr != nil:
		is.Reason, is.Message = clusterv1alpha1.ReasonCredentialInvalid, connectErr.Error()+": join the cluster again to renew it"
		return is, 0
	case !st.known || !st.health.Known:
		if was != nil {
			return *was, settleInterval
		}
		is.Status, is.Reason, is.Message = metav1.ConditionUnknown, clusterv1alpha1.ReasonConnecting, "the API server has not answered yet"
		return is, settleInterval
	}

	is.Reason, is.Message = st.health.Reason, st.health.Message
	threshold := opts.FailureThreshold
	switch {
	case st.health.Ready:
		is.Status, threshold = metav1.ConditionTrue, opts.SuccessThreshold
	case was != nil && was.Reason == is.Reason:
		// The words of an error vary from one try to the next. The first will do.
		is.Message = was.Message
	}
	if was == nil || was.Status == is.Status || !hesitates(was, is) {
		return is, 0
	}
	if left := st.health.Since.Add(threshold).Sub(st.now); left > 0 {
		return *was, left
	}
	return is, 0
}

// agentCondition is what the hub says of a member that has an agent: nothing, as
// long as the agent renews its lease. It speaks for itself.
func agentCondition(st *state, was *metav1.Condition, opts Options) (_ metav1.Condition, again time.Duration) {
	is := metav1.Condition{Type: clusterv1alpha1.ConditionReady, Status: metav1.ConditionUnknown}
	if was == nil || was.Reason == clusterv1alpha1.ReasonConnecting {
		is.Reason = clusterv1alpha1.ReasonConnecting
		is.Message = "no agent has reported yet: is it running in the cluster, and can it reach the hub?"
		return is, 0
	}
	if left := st.beat.Add(opts.MonitorGracePeriod).Sub(st.now); left > 0 || was.Reason == clusterv1alpha1.ReasonAgentSilent {
		return *was, max(left, 0)
	}
	is.Reason = clusterv1alpha1.ReasonAgentSilent
	is.Message = fmt.Sprintf("the agent has not renewed its lease for %s: is it running in the cluster, and can it reach the hub?", opts.MonitorGracePeriod)
	return is, 0
}

// hesitates says that a transition waits for its threshold: one between answering
// and not. What a member says of a credential counts at once.
func hesitates(was *metav1.Condition, is metav1.Condition) bool {
	slow := []string{clusterv1alpha1.ReasonClusterNotReachable, clusterv1alpha1.ReasonClusterNotReady}
	return was.Status == metav1.ConditionTrue && slices.Contains(slow, is.Reason) ||
		is.Status == metav1.ConditionTrue && slices.Contains(slow, was.Reason)
}

// watchCondition says whether the member tells changes of its slices.
func watchCondition(w member.WatchState) metav1.Condition {
	out := metav1.Condition{
		Type: clusterv1alpha1.ConditionSlicesWatched, Status: metav1.ConditionFalse, Reason: w.Reason, Message: w.Message,
	}
	if w.Works {
		out.Status = metav1.ConditionTrue
	}
	return out
}

// enablementsCondition says whether the list of what a member serves is whole.
func enablementsCondition(s *enablements) metav1.Condition {
	out := metav1.Condition{
		Type: clusterv1alpha1.ConditionCompleteAPIEnablements, Status: metav1.ConditionTrue,
		Reason: clusterv1alpha1.ReasonAPIEnablementsComplete, Message: s.message,
	}
	if !s.complete {
		out.Status, out.Reason = metav1.ConditionFalse, clusterv1alpha1.ReasonAPIEnablementsPartial
	}
	return out
}

// set puts a condition among others, dated when its status has changed.
func set(conditions *[]metav1.Condition, is metav1.Condition, st *state) {
	is.ObservedGeneration = st.cluster.Generation
	is.LastTransitionTime = metav1.Time{Time: st.now.Truncate(time.Second)}
	meta.SetStatusCondition(conditions, is)
}

// taints returns the cluster's taints with ours as the condition asks for.
func taints(have []corev1.Taint, ready metav1.Condition, now time.Time) []corev1.Taint {
	var want string
	switch {
	case ready.Status == metav1.ConditionTrue:
	case ready.Reason == clusterv1alpha1.ReasonClusterNotReady:
		want = clusterv1alpha1.TaintNotReady
	case ready.Status == metav1.ConditionFalse, ready.Reason == clusterv1alpha1.ReasonAgentSilent:
		want = clusterv1alpha1.TaintUnreachable
	}
	var out []corev1.Taint
	for _, t := range have {
		ours := t.Key == clusterv1alpha1.TaintNotReady || t.Key == clusterv1alpha1.TaintUnreachable
		if !ours || t.Key == want {
			out = append(out, t)
		}
		if t.Key == want {
			want = ""
		}
	}
	if want != "" {
		added := metav1.Time{Time: now.Truncate(time.Second)}
		out = append(out, corev1.Taint{Key: want, Effect: corev1.TaintEffectNoSchedule, TimeAdded: &added})
	}
	return out
}

// leftBehind is what stays in a member that is given up.
type leftBehind struct {
	// Objects of Works, by kind. Namespaces are not among them: they stay in
	// members that leave in peace, too.
	Objects map[string]int
	// Slices that were dispatched there. Below zero: it is not known how many.
	Slices int
}

// whatIsLeft counts what stays in a member of which these Works are. Of one that
// has not been seen since the hub started, the slices are not known.
func whatIsLeft(works []*workv1alpha1.Work, seen bool, dispatched int) leftBehind {
	out := leftBehind{Objects: map[string]int{}, Slices: dispatched}
	if !seen {
		out.Slices = -1
	}
	for _, work := range works {
		if manifest.IsCollected(work) {
			continue
		}
		if manifest.IsDelivery(work) {
			out.Slices += len(work.Spec.Workload.Manifests)
			continue
		}
		for _, m := range work.Spec.Workload.Manifests {
			if id, err := manifest.IdentityOf(m); err == nil && id.Kind != member.NamespaceKind.Kind {
				out.Objects[id.Kind]++
			}
		}
	}
	return out
}

// String says it, with the labels by which to find it there.
func (l leftBehind) String() string {
	var parts []string
	for _, kind := range slices.Sorted(maps.Keys(l.Objects)) {
		parts = append(parts, fmt.Sprintf("%d %s", l.Objects[kind], kind))
	}
	objects := "no object of a Work"
	if len(parts) > 0 {
		objects = fmt.Sprintf("%s (label %s=%s)", strings.Join(parts, ", "), workv1alpha1.ManagedLabel, workv1alpha1.ManagedValue)
	}
	count := fmt.Sprint(l.Slices)
	if l.Slices < 0 {
		count = "an unknown number of"
	}
	return fmt.Sprintf("%s; %s EndpointSlice (label %s=%s)", objects, count, discoveryv1.LabelManagedBy, networkingv1alpha1.DispatchedManagedBy)
}

// earlier returns the smaller of two waits, zero meaning none.
func earlier(a, b time.Duration) time.Duration {
	if a == 0 || b > 0 && b < a {
		return b
	}
	return a
}
