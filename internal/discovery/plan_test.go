package discovery_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	networkingv1alpha1 "github.com/namesake-io/namesake/api/networking/v1alpha1"
	"github.com/namesake-io/namesake/internal/discovery"
)

// What each consumer is to hold.
func TestPlan(t *testing.T) {
	a := member("a", slice("s", pod("10.0.0.1")), slice("t", pod("10.0.0.2")))
	b := member("b", slice("s", pod("10.1.0.1")))
	c := member("c")
	deleted := func(m *wish) { m.DeletionTimestamp = &metav1.Time{Time: now} }
	leaving := member("d", slice("s", pod("10.3.0.1")))
	leaving.Leaving = true

	tests := map[string]struct {
		wish     *wish
		template *corev1.Service
		clusters []discovery.Cluster
		want     map[clusterName][]string
	}{
		"C27_all_for_all": {
			wish: crossCluster(), clusters: []discovery.Cluster{a, b, c},
			want: map[clusterName][]string{"a": {"b-s"}, "b": {"a-s", "a-t"}, "c": {"a-s", "a-t", "b-s"}},
		},
		"listed_ones": {
			wish: crossCluster(providers("a"), consumers("a", "c")), clusters: []discovery.Cluster{a, b, c},
			want: map[clusterName][]string{"c": {"a-s", "a-t"}},
		},
		"C28_a_missing_one_disturbs_nobody": {
			wish: crossCluster(providers("a", "zz"), consumers("c", "yy")), clusters: []discovery.Cluster{a, b, c},
			want: map[clusterName][]string{"c": {"a-s", "a-t"}},
		},
		"C29_one_that_leaves_neither_gives_nor_gets": {
			wish: crossCluster(), clusters: []discovery.Cluster{b, c, leaving},
			want: map[clusterName][]string{"c": {"b-s"}},
		},
		"C33_no_wish": {clusters: []discovery.Cluster{a, b, c}},
		"C33_a_wish_that_is_being_deleted": {
			wish: crossCluster(deleted), clusters: []discovery.Cluster{a, b, c},
		},
		"C21_an_alias_has_no_endpoints": {
			wish:     crossCluster(),
			template: template(func(s *corev1.Service) { s.Spec.Type = corev1.ServiceTypeExternalName }),
			clusters: []discovery.Cluster{a, b, c},
		},
		"a_load_balancer_collects_only": {
			wish: crossCluster(func(m *wish) {
				m.Spec.Types = []networkingv1alpha1.ExposureType{networkingv1alpha1.ExposureTypeLoadBalancer}
			}),
			clusters: []discovery.Cluster{a, b, c},
		},
		"C15_a_slice_of_another_service": {
			wish:     crossCluster(),
			clusters: []discovery.Cluster{member("a", slice("s", label(discoveryv1.LabelServiceName, "bar"), pod("10.0.0.1"))), c},
		},
		"a_slice_of_another_namespace": {
			wish: crossCluster(),
			clusters: []discovery.Cluster{
				member("a", slice("s", func(s *discoveryv1.EndpointSlice) { s.Namespace = "kube-system" }, pod("10.0.0.1"))), c,
			},
		},
		"C32_a_dispatched_slice_goes_no_further": {
			wish: crossCluster(),
			clusters: []discovery.Cluster{
				member("a", slice("b-s", annotation(networkingv1alpha1.ProvisionClusterAnnotation, "b"), pod("10.1.0.1"))), b, c,
			},
			want: map[clusterName][]string{"a": {"b-s"}, "c": {"b-s"}},
		},
		"C9_two_objects": {
			wish:     crossCluster(),
			clusters: []discovery.Cluster{member("a", slice("b-c", pod("10.0.0.1"))), member("a-b", slice("c", pod("10.1.0.1"))), c},
			want: map[clusterName][]string{
				"a": {"a-b-c"}, "a-b": {"a-b-c--xchyhscavpsydpog"}, "c": {"a-b-c--xchyhscavpsydpog", "a-b-c"},
			},
		},
		"C6_three_slices_of_one_service": {
			wish:     crossCluster(),
			clusters: []discovery.Cluster{member("a", slice("u"), slice("s"), slice("t")), c},
			want:     map[clusterName][]string{"c": {"a-s", "a-t", "a-u"}},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := snapshot(tt.wish, tt.clusters...)
			if tt.template != nil {
				s.Template = tt.template
			}
			p := discovery.NewPlan(s)
			for _, consumer := range []clusterName{"a", "a-b", "b", "c", "d", "stranger"} {
				var got []string
				for _, d := range p.Wanted(consumer) {
					got = append(got, d.Slice.Name)
				}
				if diff := cmp.Diff(tt.want[consumer], got); diff != "" {
					t.Errorf("%s holds (-want +got):\n%s", consumer, diff)
				}
			}
		})
	}
}

// C1: each provider has its own port number. C5: and its address types.
func TestPlan_C1_C5_each_slice_as_its_provider_has_it(t *testing.T) {
	p := discovery.NewPlan(snapshot(crossCluster(),
		member("a", slice("s", ports(port("http", 8080)), pod("10.0.0.1"))),
		member("b", slice("s", ports(port("http", 9090)), pod("10.1.0.1")),
			slice("s6", addressType(discoveryv1.AddressTypeIPv6), ports(port("http", 9090)), pod("fd00::1"))),
		member("c")))

	type seen struct {
		AddressType discoveryv1.AddressType
		Port        int32
		Endpoints   []string
	}
	got := map[string]seen{}
	for name, s := range newConsumer("c").dispatch(t, p).slices {
		got[name] = seen{s.AddressType, *s.Ports[0].Port, endpoints(s)}
	}
	want := map[string]seen{
		"a-s":  {discoveryv1.AddressTypeIPv4, 8080, []string{"10.0.0.1"}},
		"b-s":  {discoveryv1.AddressTypeIPv4, 9090, []string{"10.1.0.1"}},
		"b-s6": {discoveryv1.AddressTypeIPv6, 9090, []string{"fd00::1"}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// C12: both keep the hostname, so that the name resolves to both.
func TestPlan_C12_equal_hostnames(t *testing.T) {
	stateful := func(address string) *discoveryv1.EndpointSlice {
		return slice("s", ports(), label(corev1.IsHeadlessService, ""), pod(address, hostname("foo-1")))
	}
	s := snapshot(crossCluster(), member("a", stateful("10.0.0.1")), member("b", stateful("10.1.0.1")), member("c"))
	s.Template = template(headless)
	got := map[string]string{}
	for _, held := range newConsumer("c").dispatch(t, discovery.NewPlan(s)).slices {
		for _, e := range held.Endpoints {
			got[e.Addresses[0]] = *e.Hostname
		}
	}
	if diff := cmp.Diff(map[string]string{"10.0.0.1": "foo-1", "10.1.0.1": "foo-1"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Status needs to know what was collected, whatever is dispatched.
func TestPlan_C3_unset_counts_as_ready(t *testing.T) {
	a := member("a",
		slice("s", pod("10.0.0.1"), pod("10.0.0.2", notReady), pod("10.0.0.3", conditions(discoveryv1.EndpointConditions{}))),
		slice("t", pod("10.0.0.4")),
		slice("other", label(discoveryv1.LabelServiceName, "bar"), pod("10.0.0.5")))
	b := silentFor(time.Minute, rememberedMember("b"))
	b.LacksSlices = true
	s := snapshot(crossCluster(providers("a", "b"), exposing(exposurePort{Name: "admin", Port: 81})), a, b, member("c", slice("s")))
	p := discovery.NewPlan(s)

	for name, want := range map[clusterName]discovery.ProviderState{
		"a": {Authoritative: true, Slices: 2, Endpoints: 4, Ready: 3},
		"b": {LacksSlices: true, UnreachableSince: now.Add(-time.Minute)},
		"c": {},
	} {
		got := p.Provider(name)
		if got != want {
			t.Errorf("provider %s: got %+v, want %+v", name, got, want)
		}
	}
}

func TestPlan_C21_says_why_an_alias_is_not_shared(t *testing.T) {
	s := snapshot(crossCluster(), member("a"))
	if p := discovery.NewPlan(s); p.Unsupported != "" {
		t.Errorf("an ordinary Service is refused: %s", p.Unsupported)
	}
	s.Template.Spec.Type = corev1.ServiceTypeExternalName
	if p := discovery.NewPlan(s); p.Unsupported == "" {
		t.Error("an ExternalName Service is not refused")
	}
}

// A wish that cannot be read is no reason to change anything.
func TestPlan_hold(t *testing.T) {
	a, c := member("a", slice("s", pod("10.0.0.1"))), member("c")
	before := snapshot(crossCluster(exposing(exposurePort{Port: 80})), a, c)

	unreadable := snapshot(crossCluster(func(m *wish) { m.Spec.ProviderClusters = []clusterSelector{inRegion("not valid!")} }), a, c)
	withoutService := before
	withoutService.Template = nil
	deleted := unreadable
	deleted.MCS = nil

	tests := map[string]struct {
		after    discovery.Snapshot
		wantHold string
		want     []string
	}{
		"a_selector_that_cannot_be_read": {
			after: unreadable, want: []string{"a-s"},
			wantHold: `reading spec.providerClusters[0].labelSelector: values[0][region]: Invalid value`,
		},
		"C22_a_port_number_without_its_service": {
			after: withoutService, want: []string{"a-s"},
			wantHold: "reading spec.ports[0]: there is no Service to say the name of port 80",
		},
		"C33_deletion_is_always_understood": {after: deleted},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			consumer := newConsumer("c").dispatch(t, discovery.NewPlan(before))
			p := discovery.NewPlan(tt.after)
			if got := errText(p.Hold); got[:min(len(got), len(tt.wantHold))] != tt.wantHold || (got == "") != (tt.wantHold == "") {
				t.Errorf("hold %q, want %q", got, tt.wantHold)
			}
			if diff := cmp.Diff(tt.want, consumer.dispatch(t, p).names()); diff != "" {
				t.Errorf("c holds (-want +got):\n%s", diff)
			}
		})
	}
}
