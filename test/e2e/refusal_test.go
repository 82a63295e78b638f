package e2e

import (
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	networkingv1alpha1 "github.com/namesake-io/namesake/api/networking/v1alpha1"
)

// What is wrong with an object is said when it is made: which field, and what
// helps.
func TestRefusedObjects(t *testing.T) {
	f := together(t)
	s := f.newSite(t, nil)
	const mcs = `{apiVersion: networking.karmada.io/v1alpha1, kind: MultiClusterService, metadata: {name: foo}, spec: `
	const cluster = `{apiVersion: cluster.karmada.io/v1alpha1, kind: Cluster, metadata: {name: e2e-refused}, spec: `
	for name, tc := range map[string]struct {
		manifest string
		want     []string
	}{
		"no spec":                   {strings.TrimSuffix(mcs, ", spec: ") + `}`, []string{"spec", "Required"}},
		"no types":                  {mcs + `{}}`, []string{"spec.types", "Required"}},
		"empty types":               {mcs + `{types: []}}`, []string{"spec.types", "at least 1"}},
		"two types":                 {mcs + `{types: [CrossCluster, LoadBalancer]}}`, []string{"spec.types", "at most 1"}},
		"unknown type":              {mcs + `{types: [Everywhere]}}`, []string{"spec.types[0]", `"Everywhere"`, `"CrossCluster", "LoadBalancer"`}},
		"port zero":                 {mcs + `{types: [CrossCluster], ports: [{port: 0}]}}`, []string{"spec.ports[0].port", "greater than or equal to 1"}},
		"port too high":             {mcs + `{types: [CrossCluster], ports: [{port: 70000}]}}`, []string{"spec.ports[0].port", "less than or equal to 65535"}},
		"port twice":                {mcs + `{types: [CrossCluster], ports: [{port: 80}, {port: 80}]}}`, []string{"spec.ports", "twice"}},
		"bad provider":              {mcs + `{types: [CrossCluster], providerClusters: [{name: "Member_1"}]}}`, []string{"spec.providerClusters[0].name", "Member_1"}},
		"bad consumer":              {mcs + `{types: [CrossCluster], consumerClusters: [{name: "a.b"}]}}`, []string{"spec.consumerClusters[0].name", "a.b"}},
		"bad deprecated cluster":    {mcs + `{types: [CrossCluster], serviceProvisionClusters: ["a.b"]}}`, []string{"spec.serviceProvisionClusters[0]", "a.b"}},
		"cluster name too long":     {mcs + `{types: [CrossCluster], providerClusters: [{name: ` + strings.Repeat("a", 49) + `}]}}`, []string{"spec.providerClusters[0].name", "48"}},
		"name and label selector":   {mcs + `{types: [CrossCluster], providerClusters: [{name: member1, labelSelector: {}}]}}`, []string{"spec.providerClusters[0]", "either a name or a labelSelector"}},
		"neither name nor selector": {mcs + `{types: [CrossCluster], consumerClusters: [{}]}}`, []string{"spec.consumerClusters[0]", "either a name or a labelSelector"}},
		"unknown strategy":          {mcs + `{types: [CrossCluster], discoveryStrategy: Nearest}}`, []string{"spec.discoveryStrategy", "LocalFirst"}},
		"unknown resolution":        {mcs + `{types: [CrossCluster], conflictResolution: Fight}}`, []string{"spec.conflictResolution", "Overwrite"}},
		"unknown policy":            {mcs + `{types: [CrossCluster], unreachableProviders: {policy: Panic}}}`, []string{"spec.unreachableProviders.policy", "Retain"}},
		"name starts with a digit":  {strings.Replace(mcs, "name: foo", "name: 1foo", 1) + `{types: [CrossCluster]}}`, []string{"metadata.name", "DNS-1035"}},
		"name with a dot":           {strings.Replace(mcs, "name: foo", "name: foo.bar", 1) + `{types: [CrossCluster]}}`, []string{"metadata.name", "DNS-1035"}},
		"name too long":             {strings.Replace(mcs, "name: foo", "name: "+strings.Repeat("a", 64), 1) + `{types: [CrossCluster]}}`, []string{"metadata.name", "63"}},

		"cluster of 49 characters": {strings.Replace(cluster, "e2e-refused", strings.Repeat("a", 49), 1) + `{syncMode: Push}}`, []string{"metadata.name", "48"}},
		"cluster with a dot":       {strings.Replace(cluster, "e2e-refused", "a.b", 1) + `{syncMode: Push}}`, []string{"metadata.name", "no dots"}},
		"cluster without mode":     {cluster + `{}}`, []string{"spec.syncMode", "Required"}},
		"cluster of unknown mode":  {cluster + `{syncMode: Poll}}`, []string{"spec.syncMode", `"Poll"`, `"Push", "Pull"`}},
	} {
		t.Run(name, func(t *testing.T) {
			obj := &unstructured.Unstructured{}
			if err := yaml.Unmarshal([]byte(tc.manifest), &obj.Object); err != nil {
				t.Fatal(err)
			}
			if obj.GetKind() == "MultiClusterService" {
				obj.SetNamespace(s.ns)
			}
			err := f.hub.Create(t.Context(), obj)
			if err == nil {
				if err := f.hub.Delete(t.Context(), obj); err != nil {
					t.Error(err)
				}
			}
			checkRefusal(t, err, tc.want...)
		})
	}
}

// checkRefusal wants the API server to refuse something, in words.
func checkRefusal(t *testing.T, err error, want ...string) {
	t.Helper()
	if !apierrors.IsInvalid(err) && !apierrors.IsForbidden(err) {
		t.Fatalf("not refused: %v", err)
	}
	for _, part := range want {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("the refusal does not say %q: %v", part, err)
		}
	}
}

// C33: the type cannot be changed.
func TestChangedType_C33(t *testing.T) {
	f := together(t)
	s := f.newSite(t, nil)
	mcs := s.createMCS("foo")
	err := f.hub.Patch(t.Context(), mcs, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"types":["LoadBalancer"]}}`)))
	checkRefusal(t, err, "spec.types", "delete this MultiClusterService")
	got, err := get(t.Context(), s, f.hub, "foo", &networkingv1alpha1.MultiClusterService{})
	s.must(err)
	if got.Spec.Types[0] != networkingv1alpha1.ExposureTypeCrossCluster {
		t.Errorf("types are %v", got.Spec.Types)
	}
}
