package endpointslicedispatch

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"

	networkingv1alpha1 "github.com/namesake-io/namesake/api/networking/v1alpha1"
	"github.com/namesake-io/namesake/internal/discovery"
	"github.com/namesake-io/namesake/internal/member"
)

// status is one with the conditions Dispatched and Ready, and one cluster a.
func status(dispatched metav1.ConditionStatus, readyReason, readyMessage, clusterReason string) networkingv1alpha1.MultiClusterServiceStatus {
	return networkingv1alpha1.MultiClusterServiceStatus{
		ServiceStatus: corev1.ServiceStatus{Conditions: []metav1.Condition{
			{Type: networkingv1alpha1.ConditionEndpointSliceDispatched, Status: dispatched, Message: "dispatched to some"},
			{Type: networkingv1alpha1.ConditionReady, Reason: readyReason, Message: readyMessage},
		}},
		Clusters: []networkingv1alpha1.ClusterServiceStatus{{Name: "a", Reason: clusterReason, Message: "about a"}},
	}
}

// An event marks a transition, and nothing else.
func TestTell(t *testing.T) {
	const yes, no = metav1.ConditionTrue, metav1.ConditionFalse
	none := networkingv1alpha1.MultiClusterServiceStatus{}
	fine := status(yes, networkingv1alpha1.ReasonAllReady, "", networkingv1alpha1.ReasonAllReady)
	failed := status(no, networkingv1alpha1.ReasonWriteFailed, "no", networkingv1alpha1.ReasonWriteFailed)
	lacking := status(yes, networkingv1alpha1.ReasonClusterNotFound, "not joined: nope", networkingv1alpha1.ReasonAllReady)
	lackingMore := status(yes, networkingv1alpha1.ReasonClusterNotFound, "not joined: nope, more", networkingv1alpha1.ReasonAllReady)
	otherFirst := status(yes, networkingv1alpha1.ReasonPortNotFound, "no such port", networkingv1alpha1.ReasonAllReady)
	incompatible := status(yes, networkingv1alpha1.ReasonAPIIncompatible, "about a", networkingv1alpha1.ReasonAPIIncompatible)
	for title, tc := range map[string]struct {
		was, is networkingv1alpha1.MultiClusterServiceStatus
		missing bool
		want    []string
	}{
		"dispatched for the first time": {was: none, is: fine, want: []string{"Normal DispatchEndpointSliceSucceed dispatched to some"}},
		"dispatched as before":          {was: fine, is: fine},
		"stopped":                       {was: fine, is: failed, want: []string{"Warning DispatchEndpointSliceFailed dispatched to some"}},
		"failed as before":              {was: failed, is: failed},
		"healed":                        {was: failed, is: fine, want: []string{"Normal DispatchEndpointSliceSucceed dispatched to some"}},
		"a cluster has not joined":      {was: fine, is: lacking, missing: true, want: []string{"Warning ClusterNotFound not joined: nope"}},
		"and still has not":             {was: lacking, is: lacking, missing: true},
		"and another one":               {was: lacking, is: lackingMore, missing: true, want: []string{"Warning ClusterNotFound not joined: nope, more"}},
		"what comes first is not that":  {was: fine, is: otherFirst, missing: true},
		"a cluster lacks the API":       {was: fine, is: incompatible, want: []string{"Warning APIIncompatible a: about a"}},
		"and still does":                {was: incompatible, is: incompatible},
	} {
		t.Run(title, func(t *testing.T) {
			plan := &discovery.Plan{}
			if tc.missing {
				plan.Selection.Missing = []discovery.ClusterName{"nope"}
			}
			recorder := events.NewFakeRecorder(10)
			tell(recorder, &networkingv1alpha1.MultiClusterService{Status: tc.was}, &tc.is, plan)
			close(recorder.Events)
			var got []string
			for e := range recorder.Events {
				got = append(got, e)
			}
			slices.Sort(got)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
		})
	}
}

// How an attempt that failed is told, and when it is tried again.
func TestOutcome(t *testing.T) {
	for title, tc := range map[string]struct {
		err        error
		wantReason string
		wantAgain  time.Duration
		wantRetry  bool
	}{
		"a silent member": {err: fmt.Errorf("x: %w", member.ErrUnreachable), wantReason: networkingv1alpha1.ReasonClusterUnreachable, wantRetry: true},
		"no namespace":    {err: errors.Join(fmt.Errorf("x: %w", errNamespace)), wantReason: networkingv1alpha1.ReasonNamespaceNotFound, wantAgain: namespaceWait},
		"anything else":   {err: errors.New("refused"), wantReason: networkingv1alpha1.ReasonWriteFailed, wantRetry: true},
	} {
		t.Run(title, func(t *testing.T) {
			if got := outcomeOf(tc.err); got.Reason != tc.wantReason || got.Message == "" {
				t.Errorf("outcome %+v, want reason %s and a message", got, tc.wantReason)
			}
			if again, err := retryable(tc.err); again != tc.wantAgain || (err != nil) != tc.wantRetry {
				t.Errorf("again after %s, error %v, want %s, %v", again, err, tc.wantAgain, tc.wantRetry)
			}
		})
	}
	if got := outcomeOf(nil); got != (discovery.Outcome{}) {
		t.Errorf("all well: %+v, want nothing to tell", got)
	}
}

// A status is written once, and when it differs: not while the cache lags behind
// the last write, and not for the part of others.
func TestShows(t *testing.T) {
	s := &reported{}
	want := status(metav1.ConditionTrue, networkingv1alpha1.ReasonAllReady, "", networkingv1alpha1.ReasonAllReady)
	have := *want.DeepCopy()
	have.Conditions = append(have.Conditions, metav1.Condition{Type: networkingv1alpha1.ConditionServiceApplied})
	have.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: "1.2.3.4"}}
	if !s.shows(&have, &want) {
		t.Error("what others write beside it counts as a difference")
	}
	for title, edit := range map[string]func(*networkingv1alpha1.MultiClusterServiceStatus){
		"a condition":  func(s *networkingv1alpha1.MultiClusterServiceStatus) { s.Conditions[0].Message = "other" },
		"one is gone":  func(s *networkingv1alpha1.MultiClusterServiceStatus) { s.Conditions = s.Conditions[1:] },
		"a cluster":    func(s *networkingv1alpha1.MultiClusterServiceStatus) { s.Clusters[0].ReadyEndpoints++ },
		"a column":     func(s *networkingv1alpha1.MultiClusterServiceStatus) { s.Providers = "other" },
		"all clusters": func(s *networkingv1alpha1.MultiClusterServiceStatus) { s.Clusters = nil },
	} {
		edited := *have.DeepCopy()
		edit(&edited)
		if s.shows(&edited, &want) {
			t.Errorf("%s differs, and that is not seen", title)
		}
	}
	now := time.Unix(1000, 0)
	s.last, s.at = &want, now
	if !s.justWrote(now.Add(time.Second), want.DeepCopy()) || s.justWrote(now.Add(time.Hour), &want) || s.justWrote(now, &have) {
		t.Error("justWrote: want true for the same, for a while")
	}
}

// At most one write a second, and consumers that are on their way are waited for,
// but not for ever.
func TestWait(t *testing.T) {
	now := time.Unix(1000, 0)
	s := &reported{}
	if got := s.wait(now, true); got != 0 {
		t.Errorf("the first waits %s", got)
	}
	s.at = now
	if got := s.wait(now.Add(300*time.Millisecond), true); got != 700*time.Millisecond {
		t.Errorf("the second waits %s, want the rest of a second", got)
	}
	s.at = time.Time{}
	if got := s.wait(now, false); got != settleWait {
		t.Errorf("consumers that are on their way are waited for %s, want %s", got, settleWait)
	}
	if got := s.wait(now.Add(settleWait), false); got != 0 {
		t.Errorf("after that, %s more", got)
	}
	s.wait(now, true)
	if !s.unsettledSince.IsZero() {
		t.Error("that all is settled is not remembered")
	}
}
