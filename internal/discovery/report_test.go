package discovery_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	networkingv1alpha1 "github.com/namesake-io/namesake/api/networking/v1alpha1"
	"github.com/namesake-io/namesake/internal/discovery"
)

// reported is a situation: what is planned, and how the consumers took it.
type reported struct {
	snapshot discovery.Snapshot
	// applied is the message with which the Service is not applied; "" is applied,
	// and unsaid is nothing said yet.
	applied string
	// failed are consumers that did not take the plan, with reason and message;
	// silent are those that have not been tried.
	failed map[discovery.ClusterName]discovery.Outcome
	silent []discovery.ClusterName
	// refused are clusters in which the Service does not stand.
	refused map[discovery.ClusterName]discovery.Outcome
}

const unsaid = "unsaid"

// report is what is told of a situation.
func (r reported) report() (networkingv1alpha1.MultiClusterServiceStatus, bool) {
	s := r.snapshot
	s.MCS = s.MCS.DeepCopy()
	s.MCS.Generation = 4
	if r.applied != unsaid {
		c := metav1.Condition{Type: networkingv1alpha1.ConditionServiceApplied, Status: metav1.ConditionTrue}
		if r.applied != "" {
			c.Status, c.Message = metav1.ConditionFalse, r.applied
		}
		s.MCS.Status.Conditions = append(s.MCS.Status.Conditions, c)
	}
	plan := discovery.NewPlan(s)
	outcomes := map[discovery.ClusterName]discovery.Outcome{}
	for _, name := range plan.Selection.Consumers {
		if !slices.Contains(r.silent, name) {
			outcome := r.failed[name]
			outcome.Plan = plan
			outcomes[name] = outcome
		}
	}
	return plan.Report(discovery.ReportInput{MCS: s.MCS, Template: s.Template, Outcomes: outcomes, Refused: r.refused, Now: now})
}

// lines is a status as sentences: a line a condition, and a line a cluster that
// is not all ready.
func lines(status *networkingv1alpha1.MultiClusterServiceStatus) []string {
	var out []string
	for _, c := range status.Conditions {
		out = append(out, fmt.Sprintf("%s %s %s: %s", c.Type, c.Status, c.Reason, c.Message))
	}
	for i := range status.Clusters {
		if c := &status.Clusters[i]; c.Reason != networkingv1alpha1.ReasonAllReady {
			out = append(out, fmt.Sprintf("%s %s: %s", c.Name, c.Reason, c.Message))
		}
	}
	slices.Sort(out)
	return out
}

func TestReport(t *testing.T) {
	const (
		collected  = "EndpointSliceCollected True EndpointSliceCollectedSucceed: endpoints are collected from 2 of 2 clusters"
		dispatched = "EndpointSliceDispatched True EndpointSliceDispatchedSucceed: endpoints are dispatched to 2 of 2 clusters"
		notYet     = "; nothing is changed until it is corrected"
	)
	a := func() discovery.Cluster { return member("a", slice("a1", pod("10.1.0.1"), pod("10.1.0.2", notReady))) }
	b := func() discovery.Cluster { return member("b", slice("b1", pod("10.2.0.1"))) }
	silence := silentFor(time.Hour, rememberedMember("b", slice("b1", pod("10.2.0.1"))))
	agentless := silence
	agentless.UnreachableWhy = "its agent is silent"
	withTemplate := func(s discovery.Snapshot, t *corev1.Service) discovery.Snapshot { s.Template = t; return s }
	unreachable := func(why string) []string {
		return []string{
			"EndpointSliceCollected False EndpointSliceCollectedFailed: endpoints are collected from 2 of 3 clusters; b: " + why,
			"EndpointSliceDispatched True EndpointSliceDispatchedSucceed: endpoints are dispatched to 3 of 3 clusters",
			"Ready False ClusterUnreachable: b: " + why,
			"b ClusterUnreachable: " + why,
		}
	}

	for title, tc := range map[string]struct {
		reported
		want          []string
		wantUnsettled bool
	}{
		"all well": {
			reported: reported{snapshot: snapshot(crossCluster(), a(), b())},
			want:     []string{collected, dispatched, "Ready True AllReady: 2 providers, 2 consumers"},
		},
		"on its way": {
			reported: reported{snapshot: snapshot(crossCluster(), a(), b()), silent: []discovery.ClusterName{"b"}},
			want: []string{
				collected,
				"EndpointSliceDispatched False EndpointSliceDispatchedFailed: endpoints are dispatched to 1 of 2 clusters; b: endpoints are on their way",
				"Ready False Progressing: b: endpoints are on their way",
				"b Progressing: endpoints are on their way",
			},
			wantUnsettled: true,
		},
		"the Service is on its way": {
			reported: reported{snapshot: snapshot(crossCluster(), a(), b()), applied: unsaid},
			want:     []string{collected, dispatched, "Ready False Progressing: the Service is on its way to the clusters"},
			// One who puts it there will say so in a moment.
			wantUnsettled: true,
		},
		"the Service is not applied": {
			reported: reported{snapshot: snapshot(crossCluster(), a(), b()), applied: "the Service stands in 1 of 2 clusters; b: refused"},
			want:     []string{collected, dispatched, "Ready False ServiceAppliedFailed: the Service stands in 1 of 2 clusters; b: refused"},
		},
		"no Service on the hub (C22)": {
			reported: reported{snapshot: withTemplate(snapshot(crossCluster(), a(), b()), nil), applied: "no Service"},
			want:     []string{collected, dispatched, "Ready False ServiceNotFound: the hub has no Service shop/foo: create it there, in the same namespace"},
		},
		"ExternalName (C21)": {
			reported: reported{snapshot: withTemplate(snapshot(crossCluster(), a(), b()), template(func(s *corev1.Service) { s.Spec.Type = corev1.ServiceTypeExternalName }))},
			want: []string{
				"EndpointSliceCollected False EndpointSliceCollectedFailed: a Service of type ExternalName has no endpoints: it is a DNS alias, which works in every cluster by itself",
				"EndpointSliceDispatched False EndpointSliceDispatchedFailed: a Service of type ExternalName has no endpoints: it is a DNS alias, which works in every cluster by itself",
				"Ready False ServiceUnsupported: a Service of type ExternalName has no endpoints: it is a DNS alias, which works in every cluster by itself",
			},
		},
		"a cluster that has not joined (C28)": {
			reported: reported{snapshot: snapshot(crossCluster(providers("a", "b", "nope"), consumers("a", "b")), a(), b())},
			want: []string{
				collected + "; not joined: nope", dispatched + "; not joined: nope",
				"Ready False ClusterNotFound: not joined: nope: join with 'namesakectl join', or take off the lists of spec; the other clusters are served",
			},
		},
		"nobody has joined": {
			reported: reported{snapshot: snapshot(crossCluster())},
			want: []string{
				"EndpointSliceCollected True EndpointSliceCollectedSucceed: endpoints are collected from 0 of 0 clusters",
				"EndpointSliceDispatched True EndpointSliceDispatchedSucceed: endpoints are dispatched to 0 of 0 clusters",
				"Ready False ClusterNotFound: no joined cluster is selected as a provider: join one with 'namesakectl join', or change the lists of spec",
			},
		},
		"a port that the Service does not have": {
			reported: reported{snapshot: snapshot(crossCluster(exposing(exposurePort{Name: "http", Port: 80}, exposurePort{Name: "grpc", Port: 9})), a(), b())},
			want:     []string{collected, dispatched, "Ready False PortNotFound: spec.ports lists grpc:9, which the Service does not have; it has http:80: correct one of the two, the other ports are shared"},
		},
		"a selector that cannot be read": {
			reported: reported{snapshot: snapshot(crossCluster(func(m *wish) {
				m.Spec.ProviderClusters = []clusterSelector{{LabelSelector: &metav1.LabelSelector{
					MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "k", Operator: "Nope"}},
				}}}
			}), a(), b())},
			want: []string{
				`EndpointSliceCollected False EndpointSliceCollectedFailed: reading spec.providerClusters[0].labelSelector: "Nope" is not a valid label selector operator` + notYet,
				`EndpointSliceDispatched False EndpointSliceDispatchedFailed: reading spec.providerClusters[0].labelSelector: "Nope" is not a valid label selector operator` + notYet,
				`Ready False ServiceUnsupported: reading spec.providerClusters[0].labelSelector: "Nope" is not a valid label selector operator` + notYet,
			},
		},
		"one address in two clusters (C7)": {
			reported: reported{snapshot: snapshot(crossCluster(), a(), member("b", slice("b1", pod("10.1.0.1"))))},
			want: []string{
				collected, dispatched,
				"Ready False AddressConflict: clusters a and b both claim 10.1.0.1: their pod ranges overlap; callers elsewhere get it from a, and the other's pod there is reached from its own cluster only: give the clusters ranges of their own",
			},
		},
		"three addresses in two clusters (C7)": {
			reported: reported{snapshot: snapshot(crossCluster(),
				member("a", slice("a1", pod("10.1.0.1"), pod("10.1.0.2"), pod("10.1.0.3"))),
				member("b", slice("b1", pod("10.1.0.1"), pod("10.1.0.2"), pod("10.1.0.3"))))},
			want: []string{
				collected, dispatched,
				"Ready False AddressConflict: clusters a and b both claim 10.1.0.1 and 2 more: their pod ranges overlap; callers elsewhere get it from a, and the other's pod there is reached from its own cluster only: give the clusters ranges of their own",
			},
		},
		"a provider without the EndpointSlice API (C34)": {
			reported: reported{snapshot: snapshot(crossCluster(), a(), func() discovery.Cluster { c := b(); c.LacksSlices = true; return c }())},
			want: []string{
				"EndpointSliceCollected False EndpointSliceCollectedFailed: endpoints are collected from 1 of 2 clusters; b: its API server does not serve discovery.k8s.io/v1, as Kubernetes 1.21 and later do: upgrade it, or take it off the lists of spec",
				"EndpointSliceDispatched False EndpointSliceDispatchedFailed: endpoints are dispatched to 1 of 2 clusters; b: its API server does not serve discovery.k8s.io/v1, as Kubernetes 1.21 and later do: upgrade it, or take it off the lists of spec",
				"Ready False APIIncompatible: b: its API server does not serve discovery.k8s.io/v1, as Kubernetes 1.21 and later do: upgrade it, or take it off the lists of spec",
				"b APIIncompatible: its API server does not serve discovery.k8s.io/v1, as Kubernetes 1.21 and later do: upgrade it, or take it off the lists of spec",
			},
		},
		"no namespace in a consumer (C19)": {
			reported: reported{snapshot: snapshot(crossCluster(), a(), b()), failed: map[discovery.ClusterName]discovery.Outcome{
				"b": {Reason: networkingv1alpha1.ReasonNamespaceNotFound, Message: "the namespace does not exist there"},
			}},
			want: []string{
				collected,
				"EndpointSliceDispatched False EndpointSliceDispatchedFailed: endpoints are dispatched to 1 of 2 clusters; b: the namespace does not exist there",
				"Ready False NamespaceNotFound: b: the namespace does not exist there",
				"b NamespaceNotFound: the namespace does not exist there",
			},
		},
		"a cluster that refuses the Service (C18)": {
			reported: reported{
				snapshot: snapshot(crossCluster(), a(), b()), applied: "the Service stands in 1 of 2 clusters; b: it is another's",
				refused: map[discovery.ClusterName]discovery.Outcome{
					"b": {Reason: networkingv1alpha1.ReasonServiceConflict, Message: "it is another's"},
				},
			},
			want: []string{
				collected, dispatched,
				"Ready False ServiceConflict: b: it is another's", "b ServiceConflict: it is another's",
			},
		},
		"a cluster says why: that comes before the Service that is missing there": {
			reported: reported{
				snapshot: snapshot(crossCluster(), a(), b()), applied: "the Service stands in 1 of 2 clusters",
				failed: map[discovery.ClusterName]discovery.Outcome{"b": {Reason: networkingv1alpha1.ReasonNamespaceNotFound, Message: "no namespace"}},
			},
			want: []string{
				collected,
				"EndpointSliceDispatched False EndpointSliceDispatchedFailed: endpoints are dispatched to 1 of 2 clusters; b: no namespace",
				"Ready False NamespaceNotFound: b: no namespace", "b NamespaceNotFound: no namespace",
			},
		},
		"a provider that the hub has not asked since it started (C24)": {
			wantUnsettled: true,
			reported:      reported{snapshot: snapshot(crossCluster(), a(), rememberedMember("b", slice("b1", pod("10.2.0.1"))))},
			want: []string{
				"EndpointSliceCollected False EndpointSliceCollectedFailed: endpoints are collected from 1 of 2 clusters; b: waiting for the cluster's own word on its endpoints; those last seen are kept",
				dispatched,
				"Ready False Progressing: b: waiting for the cluster's own word on its endpoints; those last seen are kept",
				"b Progressing: waiting for the cluster's own word on its endpoints; those last seen are kept",
			},
		},
		"a silent provider, kept (C26)": {
			reported: reported{snapshot: snapshot(crossCluster(), a(), silence, member("c"))},
			want:     unreachable("the API server does not answer; its endpoints are kept as last seen"),
		},
		"a provider whose agent is silent": {
			reported: reported{snapshot: snapshot(crossCluster(), a(), agentless, member("c"))},
			want:     unreachable("its agent is silent; its endpoints are kept as last seen"),
		},
		"a silent provider, to be withdrawn (C26)": {
			reported: reported{snapshot: snapshot(crossCluster(whenUnreachable(networkingv1alpha1.UnreachableWithdraw, 5*time.Minute)), a(), silence, member("c"))},
			want:     unreachable("the API server does not answer; its endpoints follow the policy Withdraw after 5m0s"),
		},
		"a silent provider, to be marked (C26)": {
			reported: reported{snapshot: snapshot(crossCluster(whenUnreachable(networkingv1alpha1.UnreachableMarkNotReady, 2*time.Hour)), a(), silence, member("c"))},
			want:     unreachable("the API server does not answer; its endpoints follow the policy MarkNotReady after 2h0m0s"),
		},
		"most are silent: nothing is taken from anybody": {
			reported: reported{snapshot: snapshot(crossCluster(consumers("a"), whenUnreachable(networkingv1alpha1.UnreachableWithdraw, 0)),
				silentFor(time.Hour, a()), silence)},
			want: []string{
				"EndpointSliceCollected False EndpointSliceCollectedFailed: endpoints are collected from 0 of 2 clusters; a: " + hubsOwn + "; b: " + hubsOwn,
				"EndpointSliceDispatched True EndpointSliceDispatchedSucceed: endpoints are dispatched to 1 of 1 clusters",
				"Ready False ClusterUnreachable: a: " + hubsOwn + "; b: " + hubsOwn,
				"a ClusterUnreachable: " + hubsOwn, "b ClusterUnreachable: " + hubsOwn,
			},
		},
		"for a load balancer": {
			reported: reported{snapshot: snapshot(crossCluster(func(m *wish) {
				m.Spec.Types = []networkingv1alpha1.ExposureType{networkingv1alpha1.ExposureTypeLoadBalancer}
			}), a(), b())},
			want: []string{
				collected,
				"Ready True AllReady: 2 providers; a load balancer finds their endpoints in the Works labelled multiclusterservice.karmada.io/namespace=shop, multiclusterservice.karmada.io/name=foo and endpointslice.karmada.io/managed-by",
			},
		},
	} {
		t.Run(title, func(t *testing.T) {
			status, settled := tc.report()
			if diff := cmp.Diff(tc.want, lines(&status)); diff != "" {
				t.Errorf("status (-want +got):\n%s", diff)
			}
			if settled == tc.wantUnsettled {
				t.Errorf("settled %v", settled)
			}
			for _, c := range status.Conditions {
				if c.ObservedGeneration != 4 || !c.LastTransitionTime.Time.Equal(now) {
					t.Errorf("condition %s of generation %d, dated %s", c.Type, c.ObservedGeneration, c.LastTransitionTime)
				}
			}
		})
	}
}

const hubsOwn = "the API server does not answer; most clusters are silent, so the fault may be the hub's own: its endpoints are kept as last seen"

// The report of each cluster: its roles, and what it gives and gets.
func TestReportOfClusters(t *testing.T) {
	status, _ := reported{
		snapshot: snapshot(crossCluster(providers("a", "b"), consumers("b", "c")),
			member("a", slice("a1", pod("10.1.0.1"), pod("10.1.0.2", notReady)), slice("a2", pod("10.1.0.3"))),
			member("b", slice("b1", pod("10.2.0.1"))), member("c"), member("d")),
	}.report()
	at := &metav1.Time{Time: now}
	const provider, consumer = networkingv1alpha1.RoleProvider, networkingv1alpha1.RoleConsumer
	type clusterStatus = networkingv1alpha1.ClusterServiceStatus
	want := []clusterStatus{
		{Name: "a", Roles: []networkingv1alpha1.ClusterRole{provider}, CollectedEndpoints: 3, ReadyEndpoints: 2, Reason: "AllReady", LastTransitionTime: at},
		{
			Name: "b", Roles: []networkingv1alpha1.ClusterRole{provider, consumer}, CollectedEndpoints: 1, ReadyEndpoints: 1, DispatchedEndpoints: 3,
			Reason: "AllReady", LastTransitionTime: at,
		},
		{Name: "c", Roles: []networkingv1alpha1.ClusterRole{consumer}, DispatchedEndpoints: 4, Reason: "AllReady", LastTransitionTime: at},
	}
	if diff := cmp.Diff(want, status.Clusters); diff != "" {
		t.Errorf("clusters (-want +got):\n%s", diff)
	}
	if status.Providers != "a,b" || status.Consumers != "b,c" {
		t.Errorf("columns %q and %q, want a,b and b,c", status.Providers, status.Consumers)
	}
}

// A transition is dated when it happens, and the date stays: reporting on what
// was reported is the same, byte for byte.
func TestReportAtRest(t *testing.T) {
	r := reported{snapshot: snapshot(crossCluster(), member("a", slice("a1", pod("10.1.0.1"))), member("b"))}
	first, _ := r.report()
	r.snapshot.MCS.Status = first
	r.applied = unsaid // it is in the status already
	meta.SetStatusCondition(&r.snapshot.MCS.Status.Conditions, metav1.Condition{Type: networkingv1alpha1.ConditionServiceApplied, Status: metav1.ConditionTrue})
	for i := range r.snapshot.MCS.Status.Conditions {
		r.snapshot.MCS.Status.Conditions[i].LastTransitionTime = metav1.NewTime(now.Add(-time.Hour))
	}
	for i := range r.snapshot.MCS.Status.Clusters {
		r.snapshot.MCS.Status.Clusters[i].LastTransitionTime = &metav1.Time{Time: now.Add(-time.Hour)}
	}
	again, settled := r.report()
	for i := range again.Conditions {
		if at := again.Conditions[i].LastTransitionTime; !at.Time.Equal(now.Add(-time.Hour)) {
			t.Errorf("%s is dated anew: %s", again.Conditions[i].Type, at)
		}
	}
	for i := range again.Clusters {
		if at := again.Clusters[i].LastTransitionTime; !at.Time.Equal(now.Add(-time.Hour)) {
			t.Errorf("cluster %s is dated anew: %s", again.Clusters[i].Name, at)
		}
	}
	slices.Reverse(r.snapshot.Clusters)
	other, _ := r.report()
	if diff := cmp.Diff(again, other); diff != "" || !settled {
		t.Errorf("from the same in another order, settled %v (-first +second):\n%s", settled, diff)
	}
}

// An outcome of another plan is not up to date.
func TestReportOfAnotherPlan(t *testing.T) {
	s := snapshot(crossCluster(), member("a"), member("b"))
	s.MCS.Status.Conditions = []metav1.Condition{{Type: networkingv1alpha1.ConditionServiceApplied, Status: metav1.ConditionTrue}}
	plan, older := discovery.NewPlan(s), discovery.NewPlan(s)
	report := func(of *discovery.Plan) bool {
		_, settled := plan.Report(discovery.ReportInput{MCS: s.MCS, Template: s.Template, Now: now, Outcomes: map[discovery.ClusterName]discovery.Outcome{
			"a": {Plan: plan}, "b": {Plan: of},
		}})
		return settled
	}
	if report(older) || !report(plan) {
		t.Error("want settled with this plan, and not with an older one")
	}
}

// A thousand clusters make no thousand names in a message.
func TestReportIsBounded(t *testing.T) {
	m := crossCluster()
	var clusters []discovery.Cluster
	failed := map[discovery.ClusterName]discovery.Outcome{}
	for i := range 1000 {
		name := fmt.Sprintf("cluster-%03d", i)
		clusters = append(clusters, silentFor(time.Hour, member(name)))
		failed[discovery.ClusterName(name)] = discovery.Outcome{Reason: networkingv1alpha1.ReasonWriteFailed, Message: errors.New("no").Error()}
		m.Spec.ProviderClusters = append(m.Spec.ProviderClusters, named([]string{name, "missing-" + name})...)
	}
	status, _ := reported{snapshot: snapshot(m, clusters...), failed: failed}.report()
	for _, c := range status.Conditions {
		if len(c.Message) > 1000 || !strings.Contains(c.Message, " and 997 more") {
			t.Errorf("%s says in %d characters: %.200s", c.Type, len(c.Message), c.Message)
		}
	}
	if want := "cluster-000,cluster-001,cluster-002+997"; status.Providers != want {
		t.Errorf("column %q, want %q", status.Providers, want)
	}
}
