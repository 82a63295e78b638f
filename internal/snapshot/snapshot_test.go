package snapshot

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	clusterv1alpha1 "github.com/namesake-io/namesake/api/cluster/v1alpha1"
	networkingv1alpha1 "github.com/namesake-io/namesake/api/networking/v1alpha1"
	"github.com/namesake-io/namesake/internal/discovery"
)

func TestFromCluster(t *testing.T) {
	at := func(seconds int64) metav1.Time { return metav1.NewTime(time.Unix(seconds, 0)) }
	ready := func(status metav1.ConditionStatus, reason string) metav1.Condition {
		return metav1.Condition{Type: clusterv1alpha1.ConditionReady, Status: status, Reason: reason, LastTransitionTime: at(1000)}
	}
	enablements := func(status metav1.ConditionStatus) metav1.Condition {
		return metav1.Condition{Type: clusterv1alpha1.ConditionCompleteAPIEnablements, Status: status}
	}
	taint := func(key string, seconds int64) corev1.Taint {
		added := at(seconds)
		return corev1.Taint{Key: key, TimeAdded: &added}
	}
	for title, tc := range map[string]struct {
		conditions []metav1.Condition
		taints     []corev1.Taint
		serves     []string
		want       discovery.Cluster
	}{
		"new":                       {},
		"ready":                     {conditions: []metav1.Condition{ready(metav1.ConditionTrue, clusterv1alpha1.ReasonClusterReady)}},
		"not ready, but it answers": {conditions: []metav1.Condition{ready(metav1.ConditionFalse, clusterv1alpha1.ReasonClusterNotReady)}},
		"silent": {
			conditions: []metav1.Condition{ready(metav1.ConditionFalse, clusterv1alpha1.ReasonClusterNotReachable)},
			want:       discovery.Cluster{UnreachableSince: time.Unix(1000, 0)},
		},
		"refuses the credential": {
			conditions: []metav1.Condition{ready(metav1.ConditionFalse, clusterv1alpha1.ReasonCredentialRejected)},
			want:       discovery.Cluster{UnreachableSince: time.Unix(1000, 0), UnreachableWhy: "the API server refuses the hub's credential"},
		},
		"its agent is silent": {
			conditions: []metav1.Condition{ready(metav1.ConditionUnknown, clusterv1alpha1.ReasonAgentSilent)},
			want:       discovery.Cluster{UnreachableSince: time.Unix(1000, 0), UnreachableWhy: "its agent is silent"},
		},
		"not ready first, silent later": {
			conditions: []metav1.Condition{ready(metav1.ConditionFalse, clusterv1alpha1.ReasonClusterNotReachable)},
			taints:     []corev1.Taint{taint(clusterv1alpha1.TaintUnreachable, 1500)},
			want:       discovery.Cluster{UnreachableSince: time.Unix(1500, 0)},
		},
		"a taint alone says nothing": {taints: []corev1.Taint{taint(clusterv1alpha1.TaintUnreachable, 1500)}},
		"another taint, too": {
			conditions: []metav1.Condition{ready(metav1.ConditionFalse, clusterv1alpha1.ReasonClusterNotReachable)},
			taints:     []corev1.Taint{taint(clusterv1alpha1.TaintNotReady, 1500), {Key: clusterv1alpha1.TaintUnreachable}},
			want:       discovery.Cluster{UnreachableSince: time.Unix(1000, 0)},
		},
		"serves slices":                {conditions: []metav1.Condition{enablements(metav1.ConditionTrue)}, serves: []string{"v1", "discovery.k8s.io/v1"}},
		"serves none (C34)":            {conditions: []metav1.Condition{enablements(metav1.ConditionTrue)}, serves: []string{"v1", "discovery.k8s.io/v1beta1"}, want: discovery.Cluster{LacksSlices: true}},
		"could not say all: who knows": {conditions: []metav1.Condition{enablements(metav1.ConditionFalse)}, serves: []string{"v1"}},
	} {
		t.Run(title, func(t *testing.T) {
			c := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "a", Labels: map[string]string{"region": "eu"}}}
			c.Status.Conditions, c.Spec.Taints = tc.conditions, tc.taints
			for _, gv := range tc.serves {
				c.Status.APIEnablements = append(c.Status.APIEnablements, clusterv1alpha1.APIEnablement{GroupVersion: gv})
			}
			tc.want.Name, tc.want.Labels = "a", c.Labels
			if diff := cmp.Diff(tc.want, FromCluster(c)); diff != "" {
				t.Errorf("cluster (-want +got):\n%s", diff)
			}
			c.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
			if !FromCluster(c).Leaving {
				t.Error("a cluster that is being deleted does not leave")
			}
		})
	}
}

func TestInterest(t *testing.T) {
	mcs := func(name string, policy networkingv1alpha1.UnreachablePolicy) *networkingv1alpha1.MultiClusterService {
		out := &networkingv1alpha1.MultiClusterService{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}}
		if policy != "" {
			out.Spec.UnreachableProviders = &networkingv1alpha1.UnreachableProviders{Policy: policy}
		}
		return out
	}
	key := func(name string) types.NamespacedName { return types.NamespacedName{Namespace: "shop", Name: name} }
	sensitive := func(i *Interest) []string {
		var out []string
		for service := range i.Sensitive() {
			out = append(out, service.Name)
		}
		slices.Sort(out)
		return out
	}

	i := NewInterest(networkingv1alpha1.UnreachableProviders{})
	i.Add(mcs("plain", ""))
	i.Add(mcs("retain", networkingv1alpha1.UnreachableRetain))
	i.Add(mcs("withdraw", networkingv1alpha1.UnreachableWithdraw))
	i.Add(mcs("mark", networkingv1alpha1.UnreachableMarkNotReady))
	if !i.Has(key("plain")) || i.Has(key("other")) || i.Has(types.NamespacedName{Namespace: "elsewhere", Name: "plain"}) {
		t.Error("Has: want those that were added, and no other")
	}
	if diff := cmp.Diff([]string{"mark", "withdraw"}, sensitive(i)); diff != "" {
		t.Errorf("services that the health of providers matters to (-want +got):\n%s", diff)
	}
	i.Add(mcs("withdraw", ""))
	i.Remove(key("plain"))
	i.Remove(key("never there"))
	if got := len(i.Services()); got != 3 {
		t.Errorf("%d services, want the three that are left: %v", got, i.Services())
	}
	if diff := cmp.Diff([]string{"mark"}, sensitive(i)); diff != "" || i.Has(key("plain")) {
		t.Errorf("after changes: plain wanted %v (-want +got):\n%s", i.Has(key("plain")), diff)
	}

	// Where the manager says what to do, only those that keep endpoints are not.
	i = NewInterest(networkingv1alpha1.UnreachableProviders{Policy: networkingv1alpha1.UnreachableWithdraw})
	i.Add(mcs("plain", ""))
	i.Add(mcs("retain", networkingv1alpha1.UnreachableRetain))
	if diff := cmp.Diff([]string{"plain"}, sensitive(i)); diff != "" {
		t.Errorf("with a policy of the manager (-want +got):\n%s", diff)
	}
}
