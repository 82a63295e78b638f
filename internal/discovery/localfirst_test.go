package discovery

import (
	"testing"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	networkingv1alpha1 "github.com/namesake-io/namesake/api/networking/v1alpha1"
)

func TestLocalFirst(t *testing.T) {
	no := false
	own := func(name string, addresses ...string) *discoveryv1.EndpointSlice {
		out := &discoveryv1.EndpointSlice{
			ObjectMeta:  metav1.ObjectMeta{Namespace: "shop", Name: name, Labels: map[string]string{discoveryv1.LabelServiceName: "foo"}},
			AddressType: discoveryv1.AddressTypeIPv4,
		}
		for _, a := range addresses {
			out.Endpoints = append(out.Endpoints, discoveryv1.Endpoint{Addresses: []string{a}})
		}
		return out
	}
	down := own("foo-b", "198.18.2.1")
	down.Endpoints[0].Conditions.Ready = &no

	tests := map[string]struct {
		strategy   networkingv1alpha1.DiscoveryStrategy
		local      *discoveryv1.EndpointSlice
		wantReady  bool
		wantBackup bool
	}{
		"local backend ready: remote ones are the second choice": {
			strategy: networkingv1alpha1.DiscoveryLocalFirst, local: own("foo-b", "198.18.2.1"), wantBackup: true,
		},
		"no local backend: remote ones are the first choice": {
			strategy: networkingv1alpha1.DiscoveryLocalFirst, local: own("foo-b"), wantReady: true,
		},
		"local backend not ready: remote ones are the first choice": {
			strategy: networkingv1alpha1.DiscoveryLocalFirst, local: down, wantReady: true,
		},
		"RemoteAndLocal: all are equal": {
			strategy: networkingv1alpha1.DiscoveryRemoteAndLocal, local: own("foo-b", "198.18.2.1"), wantReady: true,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			plan := NewPlan(Snapshot{
				Service: types.NamespacedName{Namespace: "shop", Name: "foo"},
				MCS: &networkingv1alpha1.MultiClusterService{
					ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "foo"},
					Spec: networkingv1alpha1.MultiClusterServiceSpec{
						Types:             []networkingv1alpha1.ExposureType{networkingv1alpha1.ExposureTypeCrossCluster},
						DiscoveryStrategy: tc.strategy,
					},
				},
				Clusters: []Cluster{
					{Name: "a", Authoritative: true, Slices: []*discoveryv1.EndpointSlice{own("foo-a", "198.18.1.1")}},
					{Name: "b", Authoritative: true, Slices: []*discoveryv1.EndpointSlice{tc.local}},
				},
			})
			got := plan.Wanted("b")[0].Slice.Endpoints[0]
			if ready(&got) != tc.wantReady {
				t.Errorf("ready = %v, want %v", ready(&got), tc.wantReady)
			}
			backup := got.Conditions.Serving != nil && *got.Conditions.Serving && got.Conditions.Terminating != nil && *got.Conditions.Terminating
			if backup != tc.wantBackup {
				t.Errorf("serving and terminating = %v, want %v", backup, tc.wantBackup)
			}
			if first := plan.Slices[0].Slice.Endpoints[0]; !ready(&first) {
				t.Errorf("the plan that all consumers share was changed")
			}
		})
	}
}
