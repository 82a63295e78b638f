package charts_test

import (
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/yaml"

	"github.com/namesake-io/namesake/charts"
)

// hub is a real API server with the kinds of the chart.
type hub struct {
	client.Client
	config *rest.Config
}

// startHub starts one, that lives as long as the test.
func startHub(t *testing.T) hub {
	t.Helper()
	const assets = "KUBEBUILDER_ASSETS"
	if os.Getenv(assets) == "" {
		t.Fatalf("this test needs a real API server (%s): run make test", assets)
	}
	env := &envtest.Environment{CRDDirectoryPaths: []string{"namesake/crds"}, ErrorIfCRDPathMissing: true}
	config, err := env.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := env.Stop(); err != nil {
			t.Error(err)
		}
	})
	c, err := client.New(config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return hub{Client: c, config: config}
}

// object reads a manifest. Its name and namespace are filled in where it has none.
func object(t *testing.T, manifest, name string) *unstructured.Unstructured {
	t.Helper()
	data, err := yaml.YAMLToJSON([]byte(manifest))
	if err != nil {
		t.Fatal(err)
	}
	u := &unstructured.Unstructured{}
	if err := u.UnmarshalJSON(data); err != nil {
		t.Fatal(err)
	}
	if u.GetName() == "" {
		u.SetName(name)
	}
	if u.GetKind() != "Cluster" && u.GetNamespace() == "" {
		u.SetNamespace(metav1.NamespaceDefault)
	}
	return u
}

// mcs is a MultiClusterService with this spec; the other kinds likewise.
func mcs(spec string) string {
	return "{apiVersion: networking.karmada.io/v1alpha1, kind: MultiClusterService, spec: " + spec + "}"
}

func cluster(spec string) string {
	return "{apiVersion: cluster.karmada.io/v1alpha1, kind: Cluster, spec: " + spec + "}"
}

func binding(spec string) string {
	return "{apiVersion: work.karmada.io/v1alpha2, kind: ResourceBinding, spec: " + spec + "}"
}

func named(name, manifest string) string {
	return strings.Replace(manifest, "spec: ", "metadata: {name: "+name+"}, spec: ", 1)
}

var long = strings.Repeat("a", 49)

// Bad input is refused, with the field and the way out. What is refused here can
// never reach the hub, whatever becomes of the webhooks.
var refused = map[string]struct {
	manifest string
	want     []string
}{
	"no types":              {mcs("{}"), []string{"spec.types: Required value"}},
	"empty types":           {mcs("{types: []}"), []string{"spec.types", "at least 1 item"}},
	"two types":             {mcs("{types: [CrossCluster, LoadBalancer]}"), []string{"spec.types", "at most 1 item"}},
	"an unknown type":       {mcs("{types: [Everywhere]}"), []string{"spec.types[0]", `"Everywhere"`, `"CrossCluster", "LoadBalancer"`}},
	"port 0":                {mcs("{types: [CrossCluster], ports: [{port: 0}]}"), []string{"spec.ports[0].port", "greater than or equal to 1"}},
	"port 65536":            {mcs("{types: [CrossCluster], ports: [{port: 65536}]}"), []string{"spec.ports[0].port", "less than or equal to 65535"}},
	"a port without number": {mcs("{types: [CrossCluster], ports: [{name: http}]}"), []string{"spec.ports[0].port: Required value"}},
	"a port as a word":      {mcs("{types: [CrossCluster], ports: [{port: http}]}"), []string{"spec.ports[0].port", "must be of type integer"}},
	"a port twice":          {mcs("{types: [CrossCluster], ports: [{name: a, port: 80}, {name: a, port: 80}]}"), []string{"spec.ports", "must not name a port twice"}},
	"a port's name twice":   {mcs("{types: [CrossCluster], ports: [{name: a, port: 80}, {name: a, port: 81}]}"), []string{"spec.ports", "must not use a name twice"}},
	"a port's name":         {mcs("{types: [CrossCluster], ports: [{name: A_b, port: 80}]}"), []string{"spec.ports[0].name", "lower case letters, digits and '-'"}},
	"a cluster's name":      {mcs("{types: [CrossCluster], providerClusters: [{name: A_b}]}"), []string{"spec.providerClusters[0].name", "should match"}},
	"a cluster's name, dot": {mcs("{types: [CrossCluster], consumerClusters: [{name: a.b}]}"), []string{"spec.consumerClusters[0].name", "should match"}},
	"a cluster's long name": {mcs("{types: [CrossCluster], consumerClusters: [{name: " + long + "}]}"), []string{"spec.consumerClusters[0].name", "48"}},
	"neither name nor labels": {
		mcs("{types: [CrossCluster], providerClusters: [{}]}"), []string{"spec.providerClusters[0]", "give either a name or a labelSelector"},
	},
	"both name and labels": {
		mcs("{types: [CrossCluster], providerClusters: [{name: a, labelSelector: {}}]}"), []string{"spec.providerClusters[0]", "give either a name or a labelSelector"},
	},
	"a deprecated list":       {mcs("{types: [CrossCluster], serviceProvisionClusters: [A_b]}"), []string{"spec.serviceProvisionClusters[0]"}},
	"a deprecated range":      {mcs("{types: [CrossCluster], range: {clusterNames: [A_b]}}"), []string{"spec.range.clusterNames[0]"}},
	"a name with a dot":       {named("a.b", mcs("{types: [CrossCluster]}")), []string{"metadata.name is also the name of the Service", "DNS-1035"}},
	"a name with a digit":     {named("1a", mcs("{types: [CrossCluster]}")), []string{"metadata.name is also the name of the Service", "starting with a letter"}},
	"a name of 64 characters": {named(strings.Repeat("a", 64), mcs("{types: [CrossCluster]}")), []string{"at most 63 characters"}},
	"a strategy":              {mcs("{types: [CrossCluster], discoveryStrategy: Best}"), []string{"spec.discoveryStrategy", `"RemoteAndLocal", "LocalFirst"`}},
	"a conflict resolution":   {mcs("{types: [CrossCluster], conflictResolution: Fight}"), []string{"spec.conflictResolution", `"Adopt", "Abort", "Overwrite"`}},
	"a policy":                {mcs("{types: [CrossCluster], unreachableProviders: {policy: Panic}}"), []string{"spec.unreachableProviders.policy", `"Retain"`}},
	"a grace period":          {mcs("{types: [CrossCluster], unreachableProviders: {gracePeriod: 5 minutes}}"), []string{"spec.unreachableProviders.gracePeriod", "for example 5m"}},
	"a negative grace period": {mcs("{types: [CrossCluster], unreachableProviders: {gracePeriod: -5m}}"), []string{"spec.unreachableProviders.gracePeriod", "zero or more"}},

	"a cluster of 49 characters":      {named(long, cluster("{syncMode: Push}")), []string{"metadata.name must be a DNS-1123 label", "at most 48 characters"}},
	"a cluster with a dot":            {named("a.b", cluster("{syncMode: Push}")), []string{"metadata.name must be a DNS-1123 label", "no dots"}},
	"a cluster without mode":          {cluster("{}"), []string{"spec.syncMode: Required value"}},
	"a cluster of an unknown mode":    {cluster("{syncMode: Pray}"), []string{"spec.syncMode", `"Push", "Pull"`}},
	"a cluster's endpoint":            {cluster("{syncMode: Push, apiEndpoint: 'ftp://x'}"), []string{"spec.apiEndpoint", "for example https://10.0.0.1:6443"}},
	"a cluster's proxy":               {cluster("{syncMode: Push, proxyURL: 'x y'}"), []string{"spec.proxyURL", "for example http://10.0.0.2:3128"}},
	"a reference without a name":      {cluster("{syncMode: Push, secretRef: {namespace: x}}"), []string{"spec.secretRef.name: Required value"}},
	"a binding without a resource":    {binding("{clusters: [{name: a}]}"), []string{"spec.resource: Required value"}},
	"a binding's resolution":          {binding("{resource: {apiVersion: v1, kind: Service, name: x}, conflictResolution: Fight}"), []string{"spec.conflictResolution", `"Abort", "Overwrite", "Adopt"`}},
	"replicas that no int32 can hold": {binding("{resource: {apiVersion: v1, kind: Service, name: x}, clusters: [{name: a, replicas: 99999999999}]}"), []string{"spec.clusters[0].replicas"}},
}

// Good input is taken, in our spelling and in the one that Karmada deprecated.
var taken = map[string]string{
	"the least":               mcs("{types: [CrossCluster]}"),
	"for a load balancer":     mcs("{types: [LoadBalancer]}"),
	"lists":                   mcs("{types: [CrossCluster], providerClusters: [{name: member1}], consumerClusters: [{name: member2}, {name: '3'}]}"),
	"labels":                  mcs("{types: [CrossCluster], providerClusters: [{labelSelector: {matchLabels: {region: eu}}}]}"),
	"ports":                   mcs("{types: [CrossCluster], ports: [{name: http, port: 80}, {name: https, port: 443}]}"),
	"one number, two names":   mcs("{types: [CrossCluster], ports: [{name: dns, port: 53}, {name: dns-tcp, port: 53}]}"),
	"an unnamed port":         mcs("{types: [CrossCluster], ports: [{port: 80}]}"),
	"everything":              mcs("{types: [CrossCluster], discoveryStrategy: LocalFirst, conflictResolution: Overwrite, unreachableProviders: {policy: Withdraw, gracePeriod: 1h30m}}"),
	"a name of 63 characters": named(strings.Repeat("a", 63), mcs("{types: [CrossCluster]}")),
	"Karmada's lists":         mcs("{types: [CrossCluster], serviceProvisionClusters: [member1], serviceConsumptionClusters: [member2]}"),
	"Karmada's range":         mcs("{types: [CrossCluster], range: {clusterNames: [member1]}}"),
	"a push cluster":          cluster("{syncMode: Push, apiEndpoint: 'https://10.0.0.1:6443', secretRef: {namespace: karmada-cluster, name: x}}"),
	"a pull cluster":          cluster("{syncMode: Pull}"),
	"a cluster behind IPv6":   cluster("{syncMode: Push, apiEndpoint: 'https://[fd00::1]:6443'}"),
	"a cluster of 48":         named(strings.Repeat("a", 48), cluster("{syncMode: Push}")),
}

func TestKinds(t *testing.T) {
	h := startHub(t)
	for title, tc := range refused {
		t.Run("refused/"+title, func(t *testing.T) {
			err := h.Create(t.Context(), object(t, tc.manifest, "refused"))
			if err == nil {
				t.Fatal("it was taken")
			}
			for _, part := range tc.want {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("want %q in: %v", part, err)
				}
			}
		})
	}
	number := 0
	for title, manifest := range taken {
		number++
		obj := object(t, manifest, fmt.Sprintf("taken-%d", number))
		t.Run("taken/"+title, func(t *testing.T) {
			if err := h.Create(t.Context(), obj); err != nil {
				t.Fatal(err)
			}
			// Written again by whoever reads it.
			if err := h.Update(t.Context(), obj); err != nil {
				t.Error(err)
			}
		})
	}
	t.Run("types stay", h.testTypesStay)
	t.Run("defaults", h.testDefaults)
	t.Run("unknown fields", h.testUnknownFields)
	t.Run("columns", h.testColumns)
}

func (h hub) testTypesStay(t *testing.T) {
	obj := object(t, mcs("{types: [CrossCluster]}"), "types-stay")
	if err := h.Create(t.Context(), obj); err != nil {
		t.Fatal(err)
	}
	patch := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"types":["LoadBalancer"]}}`))
	err := h.Patch(t.Context(), obj, patch)
	if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "spec.types cannot be changed: delete this MultiClusterService and create one of the other type") {
		t.Errorf("error %v, want that types cannot be changed, and what to do", err)
	}
}

func (h hub) testDefaults(t *testing.T) {
	obj := object(t, mcs("{types: [CrossCluster], unreachableProviders: {}}"), "defaults")
	if err := h.Create(t.Context(), obj); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"types": []any{"CrossCluster"}, "discoveryStrategy": "RemoteAndLocal", "conflictResolution": "Adopt",
		"unreachableProviders": map[string]any{"policy": "Retain"},
	}
	if diff := cmp.Diff(want, obj.Object["spec"]); diff != "" {
		t.Errorf("spec (-want +got):\n%s", diff)
	}
}

// Fields that we do not model survive, where Karmada has more than we.
func (h hub) testUnknownFields(t *testing.T) {
	for title, tc := range map[string]struct {
		manifest string
		status   string
		path     []string
	}{
		"Cluster.spec":   {manifest: cluster("{syncMode: Push, resourceModels: [{grade: 1}]}"), path: []string{"spec", "resourceModels"}},
		"Cluster.status": {manifest: cluster("{syncMode: Push}"), status: `{"status":{"resourceSummary":{"allocatable":{"cpu":"3"}}}}`, path: []string{"status", "resourceSummary"}},
		"ResourceBinding.spec": {
			manifest: binding("{resource: {apiVersion: v1, kind: Service, name: x}, placement: {clusterAffinity: {clusterNames: [a]}}, suspension: {dispatching: true}}"),
			path:     []string{"spec", "placement"},
		},
		"ResourceBinding.status": {
			manifest: binding("{resource: {apiVersion: v1, kind: Service, name: x}}"),
			status:   `{"status":{"aggregatedStatus":[{"clusterName":"a"}]}}`, path: []string{"status", "aggregatedStatus"},
		},
		"Work": {
			manifest: "{apiVersion: work.karmada.io/v1alpha1, kind: Work, spec: {workload: {manifests: [{apiVersion: example.com/v1, kind: Thing, metadata: {name: x}, anything: {goes: [1, null]}}]}}}",
			path:     []string{"spec", "workload", "manifests"},
		},
	} {
		t.Run(title, func(t *testing.T) {
			name := "unknown-" + strings.ToLower(strings.ReplaceAll(title, ".", "-"))
			want := object(t, tc.manifest, name)
			obj := want.DeepCopy()
			if err := h.Create(t.Context(), obj); err != nil {
				t.Fatal(err)
			}
			if tc.status != "" {
				if err := h.Status().Patch(t.Context(), obj, client.RawPatch(types.MergePatchType, []byte(tc.status))); err != nil {
					t.Fatal(err)
				}
				status := map[string]any{}
				if err := yaml.Unmarshal([]byte(tc.status), &status); err != nil {
					t.Fatal(err)
				}
				want.Object["status"] = status["status"]
			}
			got, _, err := unstructured.NestedFieldNoCopy(obj.Object, tc.path...)
			if err != nil {
				t.Fatal(err)
			}
			expected, _, err := unstructured.NestedFieldNoCopy(want.Object, tc.path...)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(expected, got); diff != "" || got == nil {
				t.Errorf("%s (-want +got):\n%s", strings.Join(tc.path, "."), diff)
			}
		})
	}
}

// What kubectl get shows.
func (h hub) testColumns(t *testing.T) {
	const ready = `{"status":{%s"conditions":[{"type":"Ready","status":"True","reason":"AllReady","message":"","lastTransitionTime":"2026-08-01T12:00:00Z"}]}}`
	for title, tc := range map[string]struct {
		resource, manifest, status string
		want                       map[string]any
	}{
		"MultiClusterService": {
			resource: "apis/networking.karmada.io/v1alpha1/namespaces/default/multiclusterservices",
			manifest: mcs("{types: [CrossCluster]}"), status: fmt.Sprintf(ready, `"providers":"a,b","consumers":"c",`),
			want: map[string]any{"TYPES": "CrossCluster", "PROVIDERS": "a,b", "CONSUMERS": "c", "READY": "True"},
		},
		"Cluster": {
			resource: "apis/cluster.karmada.io/v1alpha1/clusters",
			manifest: cluster("{syncMode: Push}"), status: fmt.Sprintf(ready, `"kubernetesVersion":"v1.37.2",`),
			want: map[string]any{"VERSION": "v1.37.2", "MODE": "Push", "READY": "True"},
		},
		"Work": {
			resource: "apis/work.karmada.io/v1alpha1/namespaces/default/works",
			manifest: "{apiVersion: work.karmada.io/v1alpha1, kind: Work, spec: {workload: {manifests: [{kind: Service}]}}}",
			status:   strings.Replace(fmt.Sprintf(ready, ""), "Ready", "Applied", 1),
			want:     map[string]any{"WORKLOAD-KIND": "Service", "APPLIED": "True"},
		},
	} {
		t.Run(title, func(t *testing.T) {
			obj := object(t, tc.manifest, "columns")
			if err := h.Create(t.Context(), obj); err != nil {
				t.Fatal(err)
			}
			if err := h.Status().Patch(t.Context(), obj, client.RawPatch(types.MergePatchType, []byte(tc.status))); err != nil {
				t.Fatal(err)
			}
			table := h.table(t, tc.resource+"/columns")
			got := map[string]any{}
			for i, column := range table.ColumnDefinitions {
				if column.Priority == 0 && column.Name != "Name" && column.Name != "AGE" {
					got[column.Name] = table.Rows[0].Cells[i]
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("columns (-want +got):\n%s", diff)
			}
			if last := table.ColumnDefinitions[len(table.ColumnDefinitions)-1]; last.Name != "AGE" && last.Priority == 0 {
				t.Errorf("the last column is %s, want AGE", last.Name)
			}
		})
	}
}

// table asks for an object as kubectl does.
func (h hub) table(t *testing.T, path string) *metav1.Table {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, strings.TrimSuffix(h.config.Host, "/")+"/"+path, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io")
	c, err := rest.HTTPClientFor(h.config)
	if err != nil {
		t.Fatal(err)
	}
	response, err := c.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	data, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	table := &metav1.Table{}
	if err := yaml.Unmarshal(data, table); err != nil {
		t.Fatal(err)
	}
	return table
}

// The chart holds one file for each kind, and programs get just these.
func TestCRDs(t *testing.T) {
	entries, err := fs.ReadDir(charts.CRDs, "namesake/crds")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range entries {
		got = append(got, e.Name())
	}
	want := []string{
		"cluster.karmada.io_clusters.yaml", "networking.karmada.io_multiclusterservices.yaml",
		"work.karmada.io_resourcebindings.yaml", "work.karmada.io_works.yaml",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
}
