package webhook

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/namesake-io/namesake/api/cluster/v1alpha1"
	networkingv1alpha1 "github.com/namesake-io/namesake/api/networking/v1alpha1"
)

func mcs(name, spec string) string {
	return `{apiVersion: networking.karmada.io/v1alpha1, kind: MultiClusterService, metadata: {name: "` + name + `", namespace: default}, spec: {` + spec + `}}`
}

func clusterObject(name, spec string) string {
	return `{apiVersion: cluster.karmada.io/v1alpha1, kind: Cluster, metadata: {name: "` + name + `"}, spec: {` + spec + `}}`
}

// badInput is refused: by the schema in any case, or, where only the webhook knows
// better, by it.
var badInput = map[string]struct {
	obj    string
	schema string
	// webhook says it when the schema does not.
	webhook string
}{
	"name with a dot":         {obj: mcs("a.b", `types: [CrossCluster]`), schema: "metadata.name is also the name of the Service: a DNS-1035 label"},
	"name with a digit first": {obj: mcs("1a", `types: [CrossCluster]`), schema: "metadata.name is also the name of the Service: a DNS-1035 label"},
	"no types":                {obj: mcs("a", `ports: []`), schema: "spec.types: Required value"},
	"no type":                 {obj: mcs("a", `types: []`), schema: "spec.types: Invalid value"},
	"two types":               {obj: mcs("a", `types: [CrossCluster, LoadBalancer]`), schema: "spec.types: Too many: 2: must have at most 1 item"},
	"unknown type":            {obj: mcs("a", `types: [Ingress]`), schema: `spec.types[0]: Unsupported value: "Ingress": supported values: "CrossCluster", "LoadBalancer"`},
	"port 0":                  {obj: mcs("a", `types: [CrossCluster], ports: [{port: 0}]`), schema: "spec.ports[0].port"},
	"port 65536":              {obj: mcs("a", `types: [CrossCluster], ports: [{port: 65536}]`), schema: "spec.ports[0].port"},
	"port without number":     {obj: mcs("a", `types: [CrossCluster], ports: [{name: http}]`), schema: "spec.ports[0].port: Required value"},
	"port twice":              {obj: mcs("a", `types: [CrossCluster], ports: [{port: 80}, {port: 80}]`), schema: "spec.ports must not name a port twice"},
	"port name twice":         {obj: mcs("a", `types: [CrossCluster], ports: [{name: x, port: 80}, {name: x, port: 81}]`), schema: "spec.ports must not use a name twice"},
	"port name":               {obj: mcs("a", `types: [CrossCluster], ports: [{name: HTTP, port: 80}]`), schema: "a port's name is a DNS-1123 label"},
	"cluster name":            {obj: mcs("a", `types: [CrossCluster], providerClusters: [{name: a.b}]`), schema: "spec.providerClusters[0].name"},
	"long cluster name":       {obj: mcs("a", `types: [CrossCluster], consumerClusters: [{name: `+strings.Repeat("x", 49)+`}]`), schema: "spec.consumerClusters[0].name: Too long: may not be more than 48"},
	"deprecated cluster name": {obj: mcs("a", `types: [CrossCluster], serviceProvisionClusters: [A]`), schema: "spec.serviceProvisionClusters[0]"},
	"range":                   {obj: mcs("a", `types: [CrossCluster], range: {clusterNames: [""]}`), schema: "spec.range.clusterNames[0]"},
	"no selection":            {obj: mcs("a", `types: [CrossCluster], consumerClusters: [{}]`), schema: "give either a name or a labelSelector"},
	"two selections":          {obj: mcs("a", `types: [CrossCluster], consumerClusters: [{name: a, labelSelector: {}}]`), schema: "give either a name or a labelSelector"},
	"selector operator": {
		obj:     mcs("a", `types: [CrossCluster], providerClusters: [{labelSelector: {matchExpressions: [{key: a, operator: Near}]}}]`),
		webhook: `MultiClusterService.networking.karmada.io "a" is invalid: spec.providerClusters[0].labelSelector.matchExpressions[0].operator: Invalid value: "Near": not a valid selector operator`,
	},
	"selector key": {
		obj:     mcs("a", `types: [CrossCluster], consumerClusters: [{labelSelector: {matchLabels: {"a b": c}}}]`),
		webhook: `spec.consumerClusters[0].labelSelector.matchLabels: Invalid value: "a b"`,
	},
	"strategy":              {obj: mcs("a", `types: [CrossCluster], discoveryStrategy: Nearest`), schema: `spec.discoveryStrategy: Unsupported value: "Nearest": supported values: "RemoteAndLocal", "LocalFirst"`},
	"conflict resolution":   {obj: mcs("a", `types: [CrossCluster], conflictResolution: Merge`), schema: `spec.conflictResolution: Unsupported value: "Merge"`},
	"policy":                {obj: mcs("a", `types: [CrossCluster], unreachableProviders: {policy: Drop}`), schema: `spec.unreachableProviders.policy: Unsupported value: "Drop"`},
	"negative grace period": {obj: mcs("a", `types: [CrossCluster], unreachableProviders: {gracePeriod: -5m}`), schema: "gracePeriod must be a duration of zero or more, for example 5m or 1h30m"},
	"no duration":           {obj: mcs("a", `types: [CrossCluster], unreachableProviders: {gracePeriod: soon}`), schema: "gracePeriod must be a duration of zero or more, for example 5m or 1h30m"},
	"days":                  {obj: mcs("a", `types: [CrossCluster], unreachableProviders: {gracePeriod: 1d}`), schema: "gracePeriod must be a duration of zero or more, for example 5m or 1h30m"},
	"an endless duration":   {obj: mcs("a", `types: [CrossCluster], unreachableProviders: {gracePeriod: 9999999999h}`), schema: "gracePeriod must be a duration of zero or more, for example 5m or 1h30m"},
	"an id that is none": {
		obj:     `{apiVersion: networking.karmada.io/v1alpha1, kind: MultiClusterService, metadata: {name: a, namespace: default, labels: {multiclusterservice.karmada.io/permanent-id: mine}}, spec: {types: [CrossCluster]}}`,
		webhook: `metadata.labels[multiclusterservice.karmada.io/permanent-id]: Invalid value: "mine": must be a UUID: leave the label out, and one is given`,
	},
	"another shape": {obj: mcs("a", `types: CrossCluster`), schema: "spec.types"},

	"a cluster's name":        {obj: clusterObject("a.b", `syncMode: Pull`), schema: "metadata.name must be a DNS-1123 label"},
	"a cluster's long name":   {obj: clusterObject(strings.Repeat("x", 49), `syncMode: Pull`), schema: "metadata.name must be a DNS-1123 label"},
	"a cluster without mode":  {obj: clusterObject("a", `id: x`), schema: "spec.syncMode: Required value"},
	"an unknown mode":         {obj: clusterObject("a", `syncMode: Poll`), schema: `spec.syncMode: Unsupported value: "Poll": supported values: "Push", "Pull"`},
	"another scheme":          {obj: clusterObject("a", `syncMode: Push, apiEndpoint: "ftp://a"`), schema: "apiEndpoint must be the URL of an API server, for example https://10.0.0.1:6443"},
	"no host":                 {obj: clusterObject("a", `syncMode: Push, apiEndpoint: "https://"`), schema: "apiEndpoint must be the URL of an API server"},
	"no endpoint":             {obj: clusterObject("a", `syncMode: Push, apiEndpoint: "a b"`), webhook: `spec.apiEndpoint: Invalid value: "a b": is no URL: give the URL of the member's API server`},
	"no proxy":                {obj: clusterObject("a", `syncMode: Push, proxyURL: "10.0.0.2:3128"`), schema: "proxyURL must be the URL of a proxy"},
	"a Secret without a name": {obj: clusterObject("a", `syncMode: Push, secretRef: {namespace: a, name: ""}`), webhook: `spec.secretRef.name: Required value: name the Secret on the hub, or leave secretRef out`},
}

// TestSchemaAlone is a hub without webhooks: what the schema can say, it says.
func TestSchemaAlone(t *testing.T) {
	u := newUser(t)
	for name, tc := range badInput {
		t.Run(name, func(t *testing.T) {
			err := u.Create(t.Context(), parse(t, tc.obj), client.DryRunAll)
			if tc.schema == "" && err != nil {
				t.Errorf("the schema refuses it, say so in the table: %v", err)
			}
			if tc.schema != "" && (err == nil || !strings.Contains(err.Error(), tc.schema)) {
				t.Errorf("got %v, want %q in it", err, tc.schema)
			}
		})
	}
}

func TestAdmission(t *testing.T) {
	u := newUser(t)
	register(t, u, serve(t, DefaultOptions(), true))
	t.Run("refused", func(t *testing.T) {
		for name, tc := range badInput {
			t.Run(name, func(t *testing.T) {
				err := u.Create(t.Context(), parse(t, tc.obj), client.DryRunAll)
				if want := tc.schema + tc.webhook; err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("got %v, want %q in it", err, want)
				}
			})
		}
	})
	t.Run("defaults and warnings", func(t *testing.T) { testDefaults(t, u) })
	t.Run("updates", func(t *testing.T) { testUpdates(t, u) })
	t.Run("deletion", func(t *testing.T) { testDeletion(t, u) })
	t.Run("clusters", func(t *testing.T) { testClusters(t, u) })
}

func testDefaults(t *testing.T, u *user) {
	joined := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "joined"}, Spec: clusterv1alpha1.ClusterSpec{SyncMode: clusterv1alpha1.Pull}}
	create(t, u, joined)
	if got := u.told(); len(got) > 0 {
		t.Errorf("a Pull cluster is warned of: %q", got)
	}
	obj := parse(t, mcs("defaults", `types: [CrossCluster], unreachableProviders: {gracePeriod: 0s}, providerClusters: [{name: joined}, {name: absent}], serviceConsumptionClusters: [joined]`))
	create(t, u, obj)
	got := &networkingv1alpha1.MultiClusterService{}
	get(t, u, obj, got)
	if id := got.Labels[networkingv1alpha1.PermanentIDLabel]; len(id) != 36 {
		t.Errorf("permanent id %q", id)
	}
	if got.Spec.DiscoveryStrategy != networkingv1alpha1.DiscoveryRemoteAndLocal || got.Spec.ConflictResolution != networkingv1alpha1.ConflictAdopt ||
		got.Spec.UnreachableProviders.Policy != networkingv1alpha1.UnreachableRetain {
		t.Errorf("defaults: %+v", got.Spec)
	}
	eventually(t, "the cache knows the cluster, and only the absent one is warned of", func() error {
		u.told()
		again := parse(t, mcs("defaults2", `types: [CrossCluster], unreachableProviders: {gracePeriod: 0s}, providerClusters: [{name: joined}, {name: absent}], serviceConsumptionClusters: [joined]`))
		if err := u.Create(t.Context(), again, client.DryRunAll); err != nil {
			return err
		}
		want := []string{
			"spec.serviceConsumptionClusters is deprecated: use spec.consumerClusters[].name",
			"spec.unreachableProviders.gracePeriod has no effect with the policy Retain, which keeps endpoints for good: set the policy MarkNotReady or Withdraw, or take the grace period out",
			"not joined: absent; they take part as soon as they join, the other clusters are served now",
		}
		if diff := cmp.Diff(want, u.told()); diff != "" {
			return fmt.Errorf("warnings (-want +got):\n%s", diff)
		}
		return nil
	})
	got.Annotations = map[string]string{"a": "b"}
	if err := u.Update(t.Context(), got); err != nil {
		t.Fatal(err)
	}
	if told := u.told(); len(told) > 0 {
		t.Errorf("who does not touch the spec is warned: %q", told)
	}
}

func testUpdates(t *testing.T, u *user) {
	const given = "0b1f2f5e-5d0c-4a1b-9a51-0b9b6f0a7a11"
	obj := parse(t, mcs("updates", `types: [CrossCluster]`))
	obj.SetLabels(map[string]string{networkingv1alpha1.PermanentIDLabel: given, "team": "shop"})
	create(t, u, obj)
	for name, labels := range map[string]map[string]any{
		"changed":    {networkingv1alpha1.PermanentIDLabel: "7c7d9c0e-22a7-4be9-8b5e-3f1d2a6c9d22"},
		"taken away": {networkingv1alpha1.PermanentIDLabel: nil},
		"others":     {"team": "cart"},
	} {
		patch(t, u, obj, map[string]any{"metadata": map[string]any{"labels": labels}})
		if got := obj.GetLabels()[networkingv1alpha1.PermanentIDLabel]; got != given {
			t.Errorf("id %s: got %q, want %q as it was", name, got, given)
		}
	}
	if got := obj.GetLabels()["team"]; got != "cart" {
		t.Errorf("another label is %q", got)
	}
	for fields, want := range map[string]string{
		`types: [LoadBalancer]`: "spec.types cannot be changed: delete this MultiClusterService and create one of the other type",
		`types: [CrossCluster], consumerClusters: [{labelSelector: {matchExpressions: [{key: a, operator: In}]}}]`: "spec.consumerClusters[0].labelSelector.matchExpressions[0].values: Required value",
	} {
		changed := parse(t, mcs("updates", fields))
		changed.SetResourceVersion(obj.GetResourceVersion())
		if err := u.Update(t.Context(), changed, client.DryRunAll); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("update to %s: got %v, want %q in it", fields, err, want)
		}
	}
}

// testDeletion has finalizers taken off an object that no rule would let pass.
func testDeletion(t *testing.T, u *user) {
	obj := parse(t, mcs("deletion", `types: [CrossCluster]`))
	obj.SetFinalizers([]string{"example.com/keep"})
	create(t, u, obj)
	if err := u.Delete(t.Context(), obj); err != nil {
		t.Fatal(err)
	}
	patch(t, u, obj, map[string]any{"metadata": map[string]any{
		"finalizers": nil, "labels": map[string]any{networkingv1alpha1.PermanentIDLabel: "not-an-id"},
	}})
	if err := u.Get(t.Context(), client.ObjectKeyFromObject(obj), obj); !apierrors.IsNotFound(err) {
		t.Errorf("after its last finalizer: %v", err)
	}
}

func testClusters(t *testing.T, u *user) {
	obj := parse(t, clusterObject("bare", `syncMode: Push, future: {kept: true}`))
	create(t, u, obj)
	want := []string{
		"spec.apiEndpoint is empty: a Push cluster is not connected until it is set; `namesakectl join` does all that is needed",
		"spec.secretRef is empty: a Push cluster is not connected without a credential; `namesakectl join` does all that is needed",
	}
	if diff := cmp.Diff(want, u.told()); diff != "" {
		t.Errorf("warnings (-want +got):\n%s", diff)
	}
	patch(t, u, obj, map[string]any{"spec": map[string]any{"taints": []any{map[string]any{"key": "a", "effect": "NoSchedule"}}}})
	if got := u.told(); len(got) > 0 {
		t.Errorf("who taints is warned: %q", got)
	}
}

func TestGateOff(t *testing.T) {
	u := newUser(t)
	standing := parse(t, mcs("standing", `types: [CrossCluster]`))
	create(t, u, standing)
	register(t, u, serve(t, DefaultOptions(), false))

	err := u.Create(t.Context(), parse(t, mcs("new", `types: [CrossCluster]`)))
	want := `multiclusterservices.networking.karmada.io "new" is forbidden: the feature gate MultiClusterService is off on this hub: ` +
		`start its controller-manager with --feature-gates=MultiClusterService=true; what is shared already stays as it is, and can be changed and deleted`
	if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), want) {
		t.Errorf("a new object: got %v, want %q", err, want)
	}
	patch(t, u, standing, map[string]any{"spec": map[string]any{"ports": []any{map[string]any{"port": 80}}}})
	if err := u.Delete(t.Context(), standing); err != nil {
		t.Errorf("deleting: %v", err)
	}
}

// TestHubGone is the day when nobody answers: what is being deleted can go, and
// what cannot do harm passes.
func TestHubGone(t *testing.T) {
	u := newUser(t)
	standing := parse(t, mcs("gone", `types: [CrossCluster]`))
	standing.SetFinalizers([]string{"example.com/keep"})
	create(t, u, standing)
	for _, c := range configurations(t, "127.0.0.1:1") { // nobody listens there
		create(t, u, c)
	}
	t.Cleanup(func() { unregister(t, u) })
	eventually(t, "new MultiClusterServices are refused", func() error {
		err := u.Create(t.Context(), parse(t, mcs("new", `types: [CrossCluster]`)), client.DryRunAll)
		if err == nil || !strings.Contains(err.Error(), "failed calling webhook") {
			return fmt.Errorf("a new object: %w", err)
		}
		return nil
	})
	if err := u.Delete(t.Context(), standing); err != nil {
		t.Errorf("deleting: %v", err)
	}
	patch(t, u, standing, map[string]any{"metadata": map[string]any{"finalizers": nil}})
	if err := u.Create(t.Context(), parse(t, clusterObject("new", `syncMode: Pull`)), client.DryRunAll); err != nil {
		t.Errorf("a Cluster: %v", err)
	}
}

func create(t *testing.T, u *user, obj client.Object) {
	t.Helper()
	if err := u.Create(t.Context(), obj); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := client.IgnoreNotFound(u.Delete(context.Background(), obj)); err != nil {
			t.Error(err)
		}
	})
}

func get(t *testing.T, u *user, key, into client.Object) {
	t.Helper()
	if err := u.Get(t.Context(), client.ObjectKeyFromObject(key), into); err != nil {
		t.Fatal(err)
	}
}

func patch(t *testing.T, u *user, obj client.Object, fields map[string]any) {
	t.Helper()
	data, err := json.Marshal(fields)
	if err != nil {
		t.Fatal(err)
	}
	if err := u.Patch(t.Context(), obj, client.RawPatch(types.MergePatchType, data)); err != nil {
		t.Fatal(err)
	}
}
