package discovery_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	networkingv1alpha1 "github.com/namesake-io/namesake/api/networking/v1alpha1"
	"github.com/namesake-io/namesake/internal/discovery"
)

func inRegion(region string) clusterSelector {
	return clusterSelector{LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"region": region}}}
}

func TestSelect(t *testing.T) {
	labelled := func(name, region string) discovery.Cluster {
		return discovery.Cluster{Name: clusterName(name), Labels: map[string]string{"region": region}}
	}
	leaving := labelled("d", "eu")
	leaving.Leaving = true
	clusters := []discovery.Cluster{labelled("c", "us"), leaving, labelled("a", "eu"), labelled("b", "eu")}
	all := []clusterName{"a", "b", "c"}

	tests := map[string]struct {
		spec    networkingv1alpha1.MultiClusterServiceSpec
		want    discovery.Selection
		wantErr string
	}{
		"C27_nothing_said_means_all": {
			want: discovery.Selection{Providers: all, Consumers: all},
		},
		"by_name": {
			spec: networkingv1alpha1.MultiClusterServiceSpec{ProviderClusters: named([]string{"c", "a"}), ConsumerClusters: named([]string{"b"})},
			want: discovery.Selection{Providers: []clusterName{"a", "c"}, Consumers: []clusterName{"b"}},
		},
		"C27_by_label": {
			spec: networkingv1alpha1.MultiClusterServiceSpec{ProviderClusters: []clusterSelector{inRegion("eu")}},
			want: discovery.Selection{Providers: []clusterName{"a", "b"}, Consumers: all},
		},
		"by_name_and_by_label_each_once": {
			spec: networkingv1alpha1.MultiClusterServiceSpec{ConsumerClusters: []clusterSelector{inRegion("eu"), {Name: "c"}, {Name: "a"}}},
			want: discovery.Selection{Providers: all, Consumers: all},
		},
		"a_selector_that_fits_none_means_none": {
			spec: networkingv1alpha1.MultiClusterServiceSpec{ConsumerClusters: []clusterSelector{inRegion("asia")}},
			want: discovery.Selection{Providers: all},
		},
		"C28_a_listed_cluster_does_not_exist": {
			spec: networkingv1alpha1.MultiClusterServiceSpec{
				ProviderClusters: named([]string{"z", "a", "y"}), ConsumerClusters: named([]string{"y", "b"}),
			},
			want: discovery.Selection{Providers: []clusterName{"a"}, Consumers: []clusterName{"b"}, Missing: []clusterName{"y", "z"}},
		},
		"one_that_leaves_is_neither_selected_nor_missing": {
			spec: networkingv1alpha1.MultiClusterServiceSpec{ProviderClusters: named([]string{"a", "d"}), ConsumerClusters: named([]string{"d"})},
			want: discovery.Selection{Providers: []clusterName{"a"}},
		},
		"the_deprecated_lists": {
			spec: networkingv1alpha1.MultiClusterServiceSpec{
				ServiceProvisionClusters: []networkingv1alpha1.ClusterName{"b"}, ServiceConsumptionClusters: []networkingv1alpha1.ClusterName{"c"},
			},
			want: discovery.Selection{Providers: []clusterName{"b"}, Consumers: []clusterName{"c"}},
		},
		"the_deprecated_range": {
			spec: networkingv1alpha1.MultiClusterServiceSpec{Range: &networkingv1alpha1.ExposureRange{ClusterNames: []networkingv1alpha1.ClusterName{"c"}}},
			want: discovery.Selection{Providers: all, Consumers: []clusterName{"c"}},
		},
		"an_empty_range_means_all": {
			spec: networkingv1alpha1.MultiClusterServiceSpec{Range: &networkingv1alpha1.ExposureRange{}},
			want: discovery.Selection{Providers: all, Consumers: all},
		},
		"consumption_clusters_before_the_range": {
			spec: networkingv1alpha1.MultiClusterServiceSpec{
				ServiceConsumptionClusters: []networkingv1alpha1.ClusterName{"a"},
				Range:                      &networkingv1alpha1.ExposureRange{ClusterNames: []networkingv1alpha1.ClusterName{"c"}},
			},
			want: discovery.Selection{Providers: all, Consumers: []clusterName{"a"}},
		},
		"the_new_lists_before_the_deprecated": {
			spec: networkingv1alpha1.MultiClusterServiceSpec{
				ProviderClusters: named([]string{"a"}), ConsumerClusters: named([]string{"b"}),
				ServiceProvisionClusters: []networkingv1alpha1.ClusterName{"c"}, ServiceConsumptionClusters: []networkingv1alpha1.ClusterName{"c"},
			},
			want: discovery.Selection{Providers: []clusterName{"a"}, Consumers: []clusterName{"b"}},
		},
		"a_selector_that_cannot_be_read": {
			spec: networkingv1alpha1.MultiClusterServiceSpec{ConsumerClusters: []clusterSelector{{Name: "a"}, inRegion("not valid!")}},
			wantErr: `reading spec.consumerClusters[1].labelSelector: values[0][region]: Invalid value: "not valid!": a valid label must be ` +
				`an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character ` +
				`(e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')`,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := discovery.Select(&tt.spec, clusters)
			if errText(err) != tt.wantErr {
				t.Fatalf("error %q, want %q", errText(err), tt.wantErr)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func errText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestSelectionMembers(t *testing.T) {
	s := discovery.Selection{Providers: []clusterName{"a", "c"}, Consumers: []clusterName{"a", "b"}}
	if diff := cmp.Diff([]clusterName{"a", "b", "c"}, s.Members()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
