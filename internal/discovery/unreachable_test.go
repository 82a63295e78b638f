package discovery_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	networkingv1alpha1 "github.com/namesake-io/namesake/api/networking/v1alpha1"
	"github.com/namesake-io/namesake/internal/discovery"
)

// C26: a provider's API server is down. Consumer c held both providers' slices
// before.
func TestUnreachable_C26(t *testing.T) {
	const (
		retain   = networkingv1alpha1.UnreachableRetain
		mark     = networkingv1alpha1.UnreachableMarkNotReady
		withdraw = networkingv1alpha1.UnreachableWithdraw
		grace    = 5 * time.Minute
	)
	a := member("a", slice("s", pod("10.0.0.1"), pod("10.0.0.2", notReady)))
	b := member("b", slice("s", pod("10.1.0.1")))
	c := member("c")
	all := []string{"10.0.0.1", "10.0.0.2 not ready"}
	none := []string{"10.0.0.1 not ready", "10.0.0.2 not ready"}

	tests := map[string]struct {
		policy       func(*wish)
		manager      networkingv1alpha1.UnreachableProviders // for services without a policy
		clusters     []discovery.Cluster
		wantA        []string // what c holds of a; nil: a's slice is withdrawn
		wantRecheck  time.Duration
		wantRetained []clusterName
	}{
		"kept_by_default_for_ever": {
			policy: func(*wish) {}, clusters: []discovery.Cluster{silentFor(1000*time.Hour, a), b, c}, wantA: all,
		},
		"retained_for_ever": {
			policy: whenUnreachable(retain, grace), clusters: []discovery.Cluster{silentFor(1000*time.Hour, a), b, c}, wantA: all,
		},
		"an_empty_policy_retains": {
			policy: whenUnreachable("", grace), clusters: []discovery.Cluster{silentFor(1000*time.Hour, a), b, c}, wantA: all,
		},
		"an_empty_policy_has_no_deadline": {
			policy: whenUnreachable("", grace), clusters: []discovery.Cluster{silentFor(time.Second, a), b, c}, wantA: all,
		},
		"kept_within_the_grace_period": {
			policy: whenUnreachable(withdraw, grace), clusters: []discovery.Cluster{silentFor(grace-time.Second, a), b, c},
			wantA: all, wantRecheck: time.Second,
		},
		"withdrawn_after_it": {
			policy: whenUnreachable(withdraw, grace), clusters: []discovery.Cluster{silentFor(grace, a), b, c},
		},
		"withdrawn_also_when_only_remembered": {
			policy:   whenUnreachable(withdraw, grace),
			clusters: []discovery.Cluster{silentFor(grace, rememberedMember("a", a.Slices...)), b, c},
		},
		"withdrawn_also_when_forgotten": {
			policy: whenUnreachable(withdraw, grace), clusters: []discovery.Cluster{silentFor(grace, rememberedMember("a")), b, c},
		},
		"marked_not_ready_after_it": {
			policy: whenUnreachable(mark, grace), clusters: []discovery.Cluster{silentFor(grace, a), b, c}, wantA: none,
		},
		"marked_not_ready_also_when_forgotten": {
			policy: whenUnreachable(mark, grace), clusters: []discovery.Cluster{silentFor(grace, rememberedMember("a")), b, c}, wantA: none,
		},
		"at_once_without_a_grace_period": {
			policy: func(m *wish) {
				m.Spec.UnreachableProviders = &networkingv1alpha1.UnreachableProviders{Policy: withdraw}
			},
			clusters: []discovery.Cluster{silentFor(time.Nanosecond, a), b, c},
		},
		"as_the_manager_says_where_the_service_says_nothing": {
			policy: func(*wish) {}, manager: networkingv1alpha1.UnreachableProviders{Policy: withdraw, GracePeriod: &metav1.Duration{Duration: grace}},
			clusters: []discovery.Cluster{silentFor(grace, a), b, c},
		},
		"not_as_the_manager_says_where_the_service_does": {
			policy: whenUnreachable(retain, 0), manager: networkingv1alpha1.UnreachableProviders{Policy: withdraw},
			clusters: []discovery.Cluster{silentFor(grace, a), b, c}, wantA: all,
		},
		"restored_on_return": {
			policy: whenUnreachable(withdraw, grace), clusters: []discovery.Cluster{a, b, c}, wantA: all,
		},
		"a_single_provider_among_clusters_that_answer": {
			policy:   func(m *wish) { whenUnreachable(withdraw, grace)(m); providers("a")(m) },
			clusters: []discovery.Cluster{silentFor(grace, a), b, c},
		},
		"half_of_the_clusters_silent_is_their_fault": {
			policy:   whenUnreachable(withdraw, grace),
			clusters: []discovery.Cluster{silentFor(grace, a), silentFor(time.Second, b), c, member("d")}, wantRecheck: grace - time.Second,
		},
		"most_clusters_silent_is_the_hubs_fault": {
			policy:   whenUnreachable(withdraw, grace),
			clusters: []discovery.Cluster{silentFor(grace, a), silentFor(time.Second, b), silentFor(time.Second, member("d")), c},
			wantA:    all, wantRecheck: grace - time.Second, wantRetained: []clusterName{"a"},
		},
		"clusters_that_leave_do_not_count": {
			policy: whenUnreachable(withdraw, grace),
			clusters: func() []discovery.Cluster {
				d, e := member("d"), member("e")
				d.Leaving, e.Leaving = true, true
				return []discovery.Cluster{silentFor(grace, a), silentFor(grace, b), c, d, e}
			}(),
			wantA: all, wantRetained: []clusterName{"a", "b"},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			consumer := newConsumer("c").dispatch(t, discovery.NewPlan(snapshot(crossCluster(), a, b, c)))

			m := crossCluster()
			tt.policy(m)
			now := snapshot(m, tt.clusters...)
			now.Unreachable = tt.manager
			p := discovery.NewPlan(now)
			consumer.dispatch(t, p)

			var gotA []string
			if s := consumer.slices["a-s"]; s != nil {
				gotA = endpoints(s)
			}
			if diff := cmp.Diff(tt.wantA, gotA); diff != "" {
				t.Errorf("endpoints of a (-want +got):\n%s", diff)
			}
			if p.RecheckAfter != tt.wantRecheck {
				t.Errorf("recheck after %s, want %s", p.RecheckAfter, tt.wantRecheck)
			}
			if diff := cmp.Diff(tt.wantRetained, p.Retained); diff != "" {
				t.Errorf("retained (-want +got):\n%s", diff)
			}

			consumer.dispatch(t, discovery.NewPlan(snapshot(m, a, b, c)))
			if diff := cmp.Diff(all, endpoints(consumer.slices["a-s"])); diff != "" {
				t.Errorf("endpoints of a after its return (-want +got):\n%s", diff)
			}
		})
	}
}

func TestUnreachable_C26_the_next_deadline_is_the_nearest(t *testing.T) {
	m := crossCluster(whenUnreachable(networkingv1alpha1.UnreachableWithdraw, time.Hour))
	p := discovery.NewPlan(snapshot(m,
		silentFor(10*time.Minute, member("a")), silentFor(50*time.Minute, member("b")), silentFor(30*time.Minute, member("c")),
		member("d"), member("e"), member("f")))
	if want := 10 * time.Minute; p.RecheckAfter != want {
		t.Errorf("recheck after %s, want %s", p.RecheckAfter, want)
	}
}
