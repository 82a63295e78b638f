package discovery_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/namesake-io/namesake/internal/discovery"
)

// C7: pod ranges of clusters overlap.
func TestConflicts_C7(t *testing.T) {
	one := func(options ...endpointOption) *discoveryv1.EndpointSlice {
		return slice("s", pod("10.0.0.1", options...))
	}
	terminating := conditions(discoveryv1.EndpointConditions{Ready: ptr(false), Serving: ptr(true), Terminating: ptr(true)})

	tests := map[string]struct {
		clusters []discovery.Cluster
		policy   func(*wish)
		// want is what each consumer holds: consumer → slice → endpoints.
		want          map[string]map[string][]string
		wantConflicts []discovery.AddressConflict
	}{
		"given_once_and_told": {
			clusters: []discovery.Cluster{
				member("a", slice("s", pod("10.0.0.1"), pod("10.0.0.2"), pod("10.0.0.3"))),
				member("b", slice("s", pod("10.0.0.2"), pod("10.0.0.3"), pod("10.0.0.4"))),
				member("c"),
			},
			want: map[string]map[string][]string{"c": {"a-s": {"10.0.0.1", "10.0.0.2", "10.0.0.3"}, "b-s": {"10.0.0.4"}}},
			wantConflicts: []discovery.AddressConflict{
				{Kept: "a", Withheld: "b", Address: "10.0.0.2", Count: 2},
			},
		},
		"each_pair_of_clusters_is_told": {
			clusters:      []discovery.Cluster{member("c", one()), member("a", one()), member("b", one()), member("d")},
			want:          map[string]map[string][]string{"d": {"a-s": {"10.0.0.1"}, "b-s": nil, "c-s": nil}},
			wantConflicts: []discovery.AddressConflict{{Kept: "a", Withheld: "b", Address: "10.0.0.1", Count: 1}, {Kept: "a", Withheld: "c", Address: "10.0.0.1", Count: 1}},
		},
		"one_address_of_many_is_told_the_first_by_slice": {
			clusters: []discovery.Cluster{
				member("a", slice("s", pod("10.0.0.1"), pod("10.0.0.2"))),
				member("b", slice("u", pod("10.0.0.2")), slice("t", pod("10.0.0.1"))),
				member("c"),
			},
			want:          map[string]map[string][]string{"c": {"a-s": {"10.0.0.1", "10.0.0.2"}, "b-t": nil, "b-u": nil}},
			wantConflicts: []discovery.AddressConflict{{Kept: "a", Withheld: "b", Address: "10.0.0.1", Count: 2}},
		},
		"a_consumers_own_address_is_its_own": {
			clusters:      []discovery.Cluster{member("a", slice("s", pod("10.0.0.1"), pod("10.0.0.2"))), member("b", one()), member("c")},
			want:          map[string]map[string][]string{"a": {"b-s": nil}, "b": {"a-s": {"10.0.0.2"}}, "c": {"a-s": {"10.0.0.1", "10.0.0.2"}, "b-s": nil}},
			wantConflicts: []discovery.AddressConflict{{Kept: "a", Withheld: "b", Address: "10.0.0.1", Count: 1}},
		},
		"a_cluster_that_answers_goes_first": {
			clusters:      []discovery.Cluster{silentFor(time.Minute, member("a", one())), member("b", one()), member("c")},
			want:          map[string]map[string][]string{"c": {"a-s": nil, "b-s": {"10.0.0.1"}}},
			wantConflicts: []discovery.AddressConflict{{Kept: "b", Withheld: "a", Address: "10.0.0.1", Count: 1}},
		},
		"C25_one_that_is_only_remembered_keeps_its_place": {
			clusters:      []discovery.Cluster{rememberedMember("a", one()), member("b", one()), member("c")},
			want:          map[string]map[string][]string{"c": {"a-s": {"10.0.0.1"}, "b-s": nil}},
			wantConflicts: []discovery.AddressConflict{{Kept: "a", Withheld: "b", Address: "10.0.0.1", Count: 1}},
		},
		"an_ending_pod_claims_nothing_and_makes_room": {
			clusters: []discovery.Cluster{member("a", one(terminating)), member("b", one()), member("c")},
			want:     map[string]map[string][]string{"c": {"a-s": nil, "b-s": {"10.0.0.1"}}},
		},
		"two_that_are_not_ready_are_no_conflict": {
			clusters: []discovery.Cluster{member("a", one(notReady)), member("b", one(notReady)), member("c")},
			want:     map[string]map[string][]string{"c": {"a-s": {"10.0.0.1 not ready"}, "b-s": {"10.0.0.1 not ready"}}},
		},
		"marked_not_ready_by_policy_claims_nothing": {
			clusters: []discovery.Cluster{silentFor(time.Hour, member("a", one())), member("b", one()), member("c")},
			policy:   whenUnreachable("MarkNotReady", time.Minute),
			want:     map[string]map[string][]string{"c": {"a-s": nil, "b-s": {"10.0.0.1"}}},
		},
		"another_port_is_another_socket": {
			clusters: []discovery.Cluster{member("a", one()), member("b", slice("s", ports(port("http", 9090)), pod("10.0.0.1"))), member("c")},
			want:     map[string]map[string][]string{"c": {"a-s": {"10.0.0.1"}, "b-s": {"10.0.0.1"}}},
		},
		"C23_another_protocol_is_another_socket": {
			clusters: []discovery.Cluster{member("a", one()), member("b", slice("s", ports(udp(port("http", 8080))), pod("10.0.0.1"))), member("c")},
			want:     map[string]map[string][]string{"c": {"a-s": {"10.0.0.1"}, "b-s": {"10.0.0.1"}}},
		},
		"C2_without_ports_the_address_counts": {
			clusters:      []discovery.Cluster{member("a", slice("s", ports(), pod("10.0.0.1"))), member("b", slice("s", ports(), pod("10.0.0.1"))), member("c")},
			want:          map[string]map[string][]string{"c": {"a-s": {"10.0.0.1"}, "b-s": nil}},
			wantConflicts: []discovery.AddressConflict{{Kept: "a", Withheld: "b", Address: "10.0.0.1", Count: 1}},
		},
		"one_address_in_two_spellings": {
			clusters: []discovery.Cluster{
				member("a", slice("s", addressType(discoveryv1.AddressTypeIPv6), pod("fd00::1"))),
				member("b", slice("s", addressType(discoveryv1.AddressTypeIPv6), pod("fd00:0:0::0001"))),
				member("c"),
			},
			want:          map[string]map[string][]string{"c": {"a-s": {"fd00::1"}, "b-s": nil}},
			wantConflicts: []discovery.AddressConflict{{Kept: "a", Withheld: "b", Address: "fd00::1", Count: 1}},
		},
		"one_host_name_in_two_clusters": {
			clusters: []discovery.Cluster{
				member("a", slice("s", addressType(discoveryv1.AddressTypeFQDN), pod("db.example.com"))),
				member("b", slice("s", addressType(discoveryv1.AddressTypeFQDN), pod("db.example.com"), pod("db2.example.com"))),
				member("c"),
			},
			want:          map[string]map[string][]string{"c": {"a-s": {"db.example.com"}, "b-s": {"db2.example.com"}}},
			wantConflicts: []discovery.AddressConflict{{Kept: "a", Withheld: "b", Address: "db.example.com", Count: 1}},
		},
		"a_pod_that_moves_between_slices_of_one_provider": {
			clusters: []discovery.Cluster{member("a", slice("s", pod("10.0.0.1")), slice("t", pod("10.0.0.1"))), member("c")},
			want:     map[string]map[string][]string{"c": {"a-s": {"10.0.0.1"}, "a-t": {"10.0.0.1"}}},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			m := crossCluster()
			if tt.policy != nil {
				tt.policy(m)
			}
			p := discovery.NewPlan(snapshot(m, tt.clusters...))
			if diff := cmp.Diff(tt.wantConflicts, p.Conflicts); diff != "" {
				t.Errorf("conflicts (-want +got):\n%s", diff)
			}
			for consumer, want := range tt.want {
				got := map[string][]string{}
				for name, s := range newConsumer(consumer).dispatch(t, p).slices {
					got[name] = endpoints(s)
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("consumer %s (-want +got):\n%s", consumer, diff)
				}
			}
		})
	}
}
