package multiclusterservice

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"

	networkingv1alpha1 "github.com/namesake-io/namesake/api/networking/v1alpha1"
	workv1alpha1 "github.com/namesake-io/namesake/api/work/v1alpha1"
	"github.com/namesake-io/namesake/internal/discovery"
)

var now = time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)

// said is the Work of a cluster that has said something on it.
func said(cluster string, status metav1.ConditionStatus, message string) *workv1alpha1.Work {
	w := silent(cluster)
	w.Status.Conditions = []metav1.Condition{{
		Type: workv1alpha1.ConditionApplied, Status: status, Message: message, ObservedGeneration: w.Generation,
	}}
	return w
}

// silent is the Work of a cluster that has not.
func silent(cluster string) *workv1alpha1.Work {
	return &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-es-" + cluster, Name: "foo-1", Generation: 2}}
}

// stale is a Work on an earlier version of which something was said.
func stale(cluster string) *workv1alpha1.Work {
	w := said(cluster, metav1.ConditionTrue, "")
	w.Generation++
	return w
}

func working(works ...*workv1alpha1.Work) stateEdit { return func(st *state) { st.works = works } }

func was(status metav1.ConditionStatus) stateEdit {
	return func(st *state) {
		st.mcs.Status.Conditions = []metav1.Condition{{
			Type: networkingv1alpha1.ConditionServiceApplied, Status: status, LastTransitionTime: metav1.NewTime(now.Add(-time.Hour)),
		}}
	}
}

func TestAppliedCondition(t *testing.T) {
	const yes, no = metav1.ConditionTrue, metav1.ConditionFalse
	ok := func(cluster string) *workv1alpha1.Work { return said(cluster, yes, "") }
	for title, tc := range map[string]struct {
		state       *state
		want        metav1.ConditionStatus
		wantMessage string
		wantPending bool
		wantOld     bool // the transition was an hour ago
	}{
		"everywhere":          {state: observed(working(ok("a"), ok("b"))), want: yes, wantMessage: "the Service stands in 2 of 2 clusters"},
		"everywhere, as told": {state: observed(was(yes), working(ok("a"), ok("b"))), want: yes, wantMessage: "the Service stands in 2 of 2 clusters", wantOld: true},
		"no longer everywhere": {
			state: observed(was(yes), working(ok("a"), said("b", no, "namespace shop does not exist"))),
			want:  no, wantMessage: "the Service stands in 1 of 2 clusters; b: namespace shop does not exist",
		},
		"on its way":              {state: observed(working(ok("a"), silent("b"))), want: no, wantPending: true, wantMessage: "the Service stands in 1 of 2 clusters; b: waiting for the cluster"},
		"no Work yet":             {state: observed(), want: no, wantPending: true, wantMessage: "the Service stands in 0 of 2 clusters; a: waiting for the cluster; b: waiting for the cluster"},
		"said on another version": {state: observed(working(ok("a"), stale("b"))), want: no, wantPending: true, wantMessage: "the Service stands in 1 of 2 clusters; b: waiting for the cluster"},
		"one refuses, one is silent: that is worth telling at once": {
			state: observed(working(said("a", no, "not ours"), silent("b"))),
			want:  no, wantMessage: "the Service stands in 0 of 2 clusters; a: not ours; b: waiting for the cluster",
		},
		"a Work in a cluster that is not meant does not count": {
			state: observed(working(ok("a"), ok("b"), said("z", no, "old"))), want: yes, wantMessage: "the Service stands in 2 of 2 clusters",
		},
		"no template": {state: observed(withoutTemplate), want: no, wantMessage: "the hub has no Service shop/foo: create it there, in the same namespace"},
		"ExternalName": {
			state: observed(externalName), want: no,
			wantMessage: "a Service of type ExternalName has no endpoints to share: it is a DNS alias, which works in every cluster by itself",
		},
		"a wish that cannot be read": {
			state: observed(unreadable), want: no,
			wantMessage: "reading spec.providerClusters[0].labelSelector: bad; nothing is changed until it is corrected",
		},
	} {
		t.Run(title, func(t *testing.T) {
			c, pending := appliedCondition(tc.state, now)
			want := metav1.Condition{
				Type: networkingv1alpha1.ConditionServiceApplied, Status: tc.want, Reason: networkingv1alpha1.ReasonServiceAppliedFailed,
				Message: tc.wantMessage, ObservedGeneration: 4, LastTransitionTime: metav1.NewTime(now),
			}
			if tc.want == yes {
				want.Reason = networkingv1alpha1.ReasonServiceAppliedSucceed
			}
			if tc.wantOld {
				want.LastTransitionTime = metav1.NewTime(now.Add(-time.Hour))
			}
			if diff := cmp.Diff(want, c); diff != "" {
				t.Errorf("condition (-want +got):\n%s", diff)
			}
			if pending != tc.wantPending {
				t.Errorf("pending %v, want %v", pending, tc.wantPending)
			}
		})
	}
}

// A thousand clusters that refuse do not make a thousand names.
func TestMessageIsBounded(t *testing.T) {
	st := observed()
	st.selection = discovery.Selection{}
	for i := range 1000 {
		name := fmt.Sprintf("cluster-%03d", i)
		st.selection.Consumers = append(st.selection.Consumers, discovery.ClusterName(name))
		st.works = append(st.works, said(name, metav1.ConditionFalse, "no"))
	}
	c, _ := appliedCondition(st, now)
	want := "the Service stands in 0 of 1000 clusters; cluster-000: no; cluster-001: no; cluster-002: no and 997 more"
	if c.Message != want {
		t.Errorf("message %q, want %q", c.Message, want)
	}
}

// An event marks a transition, and nothing else.
func TestTell(t *testing.T) {
	applied := metav1.Condition{Status: metav1.ConditionTrue, Message: "all"}
	failed := metav1.Condition{Status: metav1.ConditionFalse, Message: "some"}
	for title, tc := range map[string]struct {
		was  *metav1.Condition
		is   metav1.Condition
		want []string
	}{
		"applied for the first time": {is: applied, want: []string{"Normal SyncServiceSucceed all"}},
		"failed for the first time":  {is: failed, want: []string{"Warning SyncServiceFailed some"}},
		"healed":                     {was: &failed, is: applied, want: []string{"Normal SyncServiceSucceed all"}},
		"broken":                     {was: &applied, is: failed, want: []string{"Warning SyncServiceFailed some"}},
		"still applied":              {was: &applied, is: applied},
		"failed otherwise":           {was: &failed, is: metav1.Condition{Status: metav1.ConditionFalse, Message: "others"}},
	} {
		t.Run(title, func(t *testing.T) {
			recorder := events.NewFakeRecorder(10)
			tell(recorder, observed().mcs, tc.was, tc.is)
			close(recorder.Events)
			var got []string
			for e := range recorder.Events {
				got = append(got, e)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
		})
	}
}

// A deletion that lasts says what it waits for. One that does not says nothing:
// the object is gone before anybody could read it.
func TestDeletingConditions(t *testing.T) {
	for title, tc := range map[string]struct {
		remains string
		since   time.Duration
		want    bool
	}{
		"has just begun":   {remains: "slices in cluster a", since: time.Second},
		"nothing remains":  {since: time.Hour},
		"slices are there": {remains: "slices in cluster a", since: deletionWait, want: true},
	} {
		t.Run(title, func(t *testing.T) {
			st := observed(remains(tc.remains), was(metav1.ConditionFalse))
			st.mcs.DeletionTimestamp = &metav1.Time{Time: now.Add(-tc.since)}
			found := map[string]bool{}
			for _, c := range deletingConditions(st, now) {
				if c.Status != metav1.ConditionFalse || c.Reason != networkingv1alpha1.ReasonDeleting || !strings.Contains(c.Message, tc.remains) {
					t.Errorf("condition %+v", c)
				}
				found[c.Type] = c.LastTransitionTime.Time.Equal(now.Add(-time.Hour))
			}
			want := map[string]bool{}
			if tc.want {
				want = map[string]bool{networkingv1alpha1.ConditionReady: false, networkingv1alpha1.ConditionServiceApplied: true}
			}
			if diff := cmp.Diff(want, found); diff != "" {
				t.Errorf("conditions, and whether they stood so before (-want +got):\n%s", diff)
			}
		})
	}
}
