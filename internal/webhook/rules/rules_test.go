package rules

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	clusterv1alpha1 "github.com/namesake-io/namesake/api/cluster/v1alpha1"
	networkingv1alpha1 "github.com/namesake-io/namesake/api/networking/v1alpha1"
)

const (
	idA = "0b1f2f5e-5d0c-4a1b-9a51-0b9b6f0a7a11"
	idB = "7c7d9c0e-22a7-4be9-8b5e-3f1d2a6c9d22"
)

func read[T any](t *testing.T, text string) *T {
	t.Helper()
	if text == "" {
		return nil
	}
	out := new(T)
	if err := yaml.UnmarshalStrict([]byte(text), out); err != nil {
		t.Fatal(err)
	}
	return out
}

// said is the sentences, one a line.
func said(errs field.ErrorList) string {
	lines := make([]string, 0, len(errs))
	for _, err := range errs {
		lines = append(lines, err.Error())
	}
	return strings.Join(lines, "\n")
}

func TestMultiClusterService(t *testing.T) {
	const ok = `{metadata: {name: foo}, spec: {types: [CrossCluster]}}`
	spec := func(fields string) string {
		return `{metadata: {name: foo}, spec: {types: [CrossCluster], ` + fields + `}}`
	}
	label := func(id, more string) string {
		return `{metadata: {name: foo, labels: {multiclusterservice.karmada.io/permanent-id: "` + id + `"}` + more + `}, spec: {types: [CrossCluster]}}`
	}
	tests := map[string]struct{ old, obj, want string }{
		"the least": {obj: ok},
		"everything": {obj: spec(`ports: [{name: dns, port: 53}, {name: dns-tcp, port: 53}, {port: 80}], providerClusters: [{name: a}, {labelSelector: {matchLabels: {x: "1"}}}],
			consumerClusters: [{name: b}], discoveryStrategy: LocalFirst, conflictResolution: Overwrite,
			unreachableProviders: {policy: Withdraw, gracePeriod: 5m}, serviceProvisionClusters: [c], serviceConsumptionClusters: [d], range: {clusterNames: [e]}`)},
		"a name with a dot": {
			obj:  `{metadata: {name: foo.bar}, spec: {types: [CrossCluster]}}`,
			want: `metadata.name: Invalid value: "foo.bar": is also the name of the Service: use a DNS-1035 label (lower case letters, digits and '-', starting with a letter, at most 63 characters)`,
		},
		"a name that starts with a digit": {
			obj:  `{metadata: {name: 1st}, spec: {types: [CrossCluster]}}`,
			want: `metadata.name: Invalid value: "1st": is also the name of the Service: use a DNS-1035 label (lower case letters, digits and '-', starting with a letter, at most 63 characters)`,
		},
		"no type": {
			obj:  `{metadata: {name: foo}, spec: {types: []}}`,
			want: `spec.types: Required value: give exactly one: CrossCluster, LoadBalancer`,
		},
		"two types": {
			obj:  `{metadata: {name: foo}, spec: {types: [CrossCluster, LoadBalancer]}}`,
			want: `spec.types: Too many: 2: one object has one type: create a MultiClusterService of each type, in namespaces of their own`,
		},
		"an unknown type": {
			obj:  `{metadata: {name: foo}, spec: {types: [NodePort]}}`,
			want: `spec.types[0]: Unsupported value: "NodePort": supported values: "CrossCluster", "LoadBalancer"`,
		},
		"another type": {
			old:  ok,
			obj:  `{metadata: {name: foo}, spec: {types: [LoadBalancer]}}`,
			want: `spec.types: Invalid value: ["LoadBalancer"]: cannot be changed from [CrossCluster]: delete this MultiClusterService and create one of the other type`,
		},
		"ports out of range": {
			obj: spec(`ports: [{port: 0}, {port: 65536}, {port: -1}, {port: 65535}]`),
			want: `spec.ports[0].port: Invalid value: 0: must be a port of the Service, between 1 and 65535
spec.ports[1].port: Invalid value: 65536: must be a port of the Service, between 1 and 65535
spec.ports[2].port: Invalid value: -1: must be a port of the Service, between 1 and 65535`,
		},
		"a port's name": {
			obj:  spec(`ports: [{name: HTTP, port: 80}]`),
			want: `spec.ports[0].name: Invalid value: "HTTP": must be the name of a port of the Service: lower case letters, digits and '-', at most 63 characters`,
		},
		"a port twice": {
			obj:  spec(`ports: [{port: 80}, {port: 81}, {port: 80}]`),
			want: `spec.ports[2]: Duplicate value: ":80": name each port once`,
		},
		"a port's name twice": {
			obj:  spec(`ports: [{name: http, port: 80}, {name: http, port: 81}]`),
			want: `spec.ports[1].name: Duplicate value: "http": a Service has one port of a name: name each port once`,
		},
		"bad cluster names": {
			obj: spec(`providerClusters: [{name: A}], consumerClusters: [{name: "-"}], serviceProvisionClusters: [a.b],
				serviceConsumptionClusters: [` + strings.Repeat("x", 49) + `], range: {clusterNames: [""]}`),
			want: `spec.providerClusters[0].name: Invalid value: "A"` + noCluster + `
spec.consumerClusters[0].name: Invalid value: "-"` + noCluster + `
spec.serviceProvisionClusters[0]: Invalid value: "a.b"` + noCluster + `
spec.serviceConsumptionClusters[0]: Invalid value: "` + strings.Repeat("x", 49) + `"` + noCluster + `
spec.range.clusterNames[0]: Invalid value: ""` + noCluster,
		},
		"neither name nor selector": {
			obj:  spec(`consumerClusters: [{}]`),
			want: `spec.consumerClusters[0]: Required value: give a name or a labelSelector; for all clusters, leave the list out`,
		},
		"name and selector": {
			obj:  spec(`providerClusters: [{name: a, labelSelector: {}}]`),
			want: `spec.providerClusters[0]: Invalid value: "a": has a name and a labelSelector: make two entries of it`,
		},
		"selectors": {
			obj: spec(`providerClusters: [{labelSelector: {matchLabels: {"a b": x}}}, {labelSelector: {matchExpressions: [{key: a, operator: Near}]}}],
				consumerClusters: [{labelSelector: {matchExpressions: [{key: a, operator: In}, {key: a, operator: Exists, values: [x]}]}}]`),
			want: `spec.providerClusters[0].labelSelector.matchLabels: Invalid value: "a b": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')
spec.providerClusters[1].labelSelector.matchExpressions[0].operator: Invalid value: "Near": not a valid selector operator
spec.consumerClusters[0].labelSelector.matchExpressions[0].values: Required value: must be specified when ` + "`operator`" + ` is 'In' or 'NotIn'
spec.consumerClusters[0].labelSelector.matchExpressions[1].values: Forbidden: may not be specified when ` + "`operator`" + ` is 'Exists' or 'DoesNotExist'`,
		},
		"unknown words": {
			obj: spec(`discoveryStrategy: Nearest, conflictResolution: Merge, unreachableProviders: {policy: Drop}`),
			want: `spec.discoveryStrategy: Unsupported value: "Nearest": supported values: "RemoteAndLocal", "LocalFirst"
spec.conflictResolution: Unsupported value: "Merge": supported values: "Adopt", "Abort", "Overwrite"
spec.unreachableProviders.policy: Unsupported value: "Drop": supported values: "Retain", "MarkNotReady", "Withdraw"`,
		},
		"a negative grace period": {
			obj:  spec(`unreachableProviders: {policy: Withdraw, gracePeriod: -5m}`),
			want: `spec.unreachableProviders.gracePeriod: Invalid value: "-5m0s": must not be negative: use 0s to act at once`,
		},
		"a given id":     {obj: label(idA, "")},
		"the same id":    {old: label(idA, ""), obj: label(idA, "")},
		"an id is given": {old: ok, obj: label(idA, "")},
		"an id that is none": {
			obj:  label("shop", ""),
			want: `metadata.labels[multiclusterservice.karmada.io/permanent-id]: Invalid value: "shop": must be a UUID: leave the label out, and one is given`,
		},
		"an id almost": {
			obj:  label(strings.Replace(idA, "-", "0", 1), ""),
			want: `metadata.labels[multiclusterservice.karmada.io/permanent-id]: Invalid value: "` + strings.Replace(idA, "-", "0", 1) + `": must be a UUID: leave the label out, and one is given`,
		},
		"another id": {
			old: label(idA, ""), obj: label(idB, ""),
			want: `metadata.labels[multiclusterservice.karmada.io/permanent-id]: Invalid value: "` + idB + `": cannot be changed or taken away: leave it at "` + idA + `"`,
		},
		"no id any more": {
			old: label(idA, ""), obj: ok,
			want: `metadata.labels[multiclusterservice.karmada.io/permanent-id]: Invalid value: "": cannot be changed or taken away: leave it at "` + idA + `"`,
		},
		"what was wrong before and is not touched": {
			old: spec(`ports: [{port: 80}, {port: 80}]`), obj: `{metadata: {name: foo, annotations: {a: b}}, spec: {types: [CrossCluster], ports: [{port: 80}, {port: 80}]}}`,
		},
		"what is being deleted": {
			old: label(idA, `, finalizers: [x], deletionTimestamp: "2026-01-01T00:00:00Z"`),
			obj: `{metadata: {name: foo, deletionTimestamp: "2026-01-01T00:00:00Z"}, spec: {types: []}}`,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			obj, old := read[networkingv1alpha1.MultiClusterService](t, tc.obj), read[networkingv1alpha1.MultiClusterService](t, tc.old)
			before := obj.DeepCopy()
			if diff := cmp.Diff(tc.want, said(MultiClusterService(obj, old))); diff != "" {
				t.Errorf("errors (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(before, obj); diff != "" {
				t.Errorf("the object was changed:\n%s", diff)
			}
		})
	}
}

const noCluster = `: no cluster can have this name: it is a DNS-1123 label (lower case letters, digits and '-', no dots) of at most 48 characters`

func TestWarnings(t *testing.T) {
	tests := map[string]struct {
		spec string
		want []string
	}{
		"nothing": {spec: `types: [CrossCluster], providerClusters: [{name: a}, {labelSelector: {}}, {labelSelector: {}}]`},
		"deprecated": {
			spec: `serviceProvisionClusters: [a], serviceConsumptionClusters: [b]`,
			want: []string{
				"spec.serviceProvisionClusters is deprecated: use spec.providerClusters[].name",
				"spec.serviceConsumptionClusters is deprecated: use spec.consumerClusters[].name",
			},
		},
		"range": {
			spec: `range: {clusterNames: [a]}`,
			want: []string{"spec.range.clusterNames is deprecated: use spec.consumerClusters[].name"},
		},
		"ignored": {
			spec: `providerClusters: [{name: a}], consumerClusters: [{name: a}], serviceProvisionClusters: [a], serviceConsumptionClusters: [b], range: {clusterNames: [c]}`,
			want: []string{
				"spec.serviceProvisionClusters is ignored, since spec.providerClusters is set: take it out",
				"spec.serviceConsumptionClusters is ignored, since spec.consumerClusters is set: take it out",
				"spec.range.clusterNames is ignored, since spec.consumerClusters is set: take it out",
			},
		},
		"the older of the deprecated": {
			spec: `serviceConsumptionClusters: [b], range: {clusterNames: [c]}`,
			want: []string{
				"spec.serviceConsumptionClusters is deprecated: use spec.consumerClusters[].name",
				"spec.range.clusterNames is ignored, since spec.serviceConsumptionClusters is set: take it out",
			},
		},
		"a grace period for nothing": {
			spec: `unreachableProviders: {gracePeriod: 5m}`,
			want: []string{"spec.unreachableProviders.gracePeriod has no effect with the policy Retain, which keeps endpoints for good: set the policy MarkNotReady or Withdraw, or take the grace period out"},
		},
		"a grace period for something": {spec: `unreachableProviders: {policy: MarkNotReady, gracePeriod: 5m}`},
		"a cluster twice": {
			spec: `providerClusters: [{name: a}, {name: a}, {name: a}], consumerClusters: [{name: a}, {name: b}, {name: b}]`,
			want: []string{"spec.consumerClusters names cluster b more than once", "spec.providerClusters names cluster a more than once"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := Warnings(read[networkingv1alpha1.MultiClusterService](t, `{spec: {`+tc.spec+`}}`))
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("warnings (-want +got):\n%s", diff)
			}
		})
	}
}

func TestNamedAndUnknownClusters(t *testing.T) {
	mcs := read[networkingv1alpha1.MultiClusterService](t, `{spec: {providerClusters: [{name: d}, {labelSelector: {}}], consumerClusters: [{name: a}, {name: d}],
		serviceProvisionClusters: [c], serviceConsumptionClusters: [b], range: {clusterNames: [a, e]}}}`)
	names := NamedClusters(mcs)
	if diff := cmp.Diff([]string{"a", "b", "c", "d", "e"}, names); diff != "" {
		t.Errorf("named clusters (-want +got):\n%s", diff)
	}
	for want, unknown := range map[string][]string{
		"": nil,
		"not joined: a; they take part as soon as they join, the other clusters are served now":                  names[:1],
		"not joined: a, b, c; they take part as soon as they join, the other clusters are served now":            names[:3],
		"not joined: a, b, c and 2 more; they take part as soon as they join, the other clusters are served now": names,
	} {
		if got := UnknownClusters(unknown); got != want {
			t.Errorf("UnknownClusters(%v) = %q, want %q", unknown, got, want)
		}
	}
}

func TestCluster(t *testing.T) {
	push := func(fields string) string {
		return `{metadata: {name: m}, spec: {syncMode: Push, secretRef: {namespace: karmada-cluster, name: m}, ` + fields + `}}`
	}
	const ok = `{metadata: {name: m}, spec: {syncMode: Push, apiEndpoint: "https://10.0.0.1:6443", secretRef: {namespace: karmada-cluster, name: m}}}`
	const endpoint = `: give the URL of the member's API server, for example https://10.0.0.1:6443`
	tests := map[string]struct {
		old, obj, want string
		warnings       []string
	}{
		"push":                {obj: ok},
		"pull":                {obj: `{metadata: {name: m}, spec: {syncMode: Pull}}`},
		"host and port":       {obj: push(`apiEndpoint: "10.0.0.1:6443"`)},
		"host alone":          {obj: push(`apiEndpoint: api.m.example.com`)},
		"IPv6":                {obj: push(`apiEndpoint: "https://[fd00::1]:6443/k8s/clusters/m"`)},
		"a proxy":             {obj: push(`apiEndpoint: "https://m", proxyURL: "socks5://10.0.0.2:1080"`)},
		"a name with a dot":   {obj: `{metadata: {name: a.b}, spec: {syncMode: Pull}}`, want: `metadata.name: Invalid value: "a.b"` + noCluster},
		"a name of 49":        {obj: `{metadata: {name: ` + strings.Repeat("x", 49) + `}, spec: {syncMode: Pull}}`, want: `metadata.name: Invalid value: "` + strings.Repeat("x", 49) + `"` + noCluster},
		"no mode":             {obj: `{metadata: {name: m}, spec: {}}`, want: `spec.syncMode: Unsupported value: "": supported values: "Push", "Pull"`},
		"another scheme":      {obj: push(`apiEndpoint: "ftp://m"`), want: `spec.apiEndpoint: Invalid value: "ftp://m": has the scheme "ftp", not https or http` + endpoint},
		"no host":             {obj: push(`apiEndpoint: "https://:6443"`), want: `spec.apiEndpoint: Invalid value: "https://:6443": names no host` + endpoint},
		"no URL":              {obj: push(`apiEndpoint: "https://m:port"`), want: `spec.apiEndpoint: Invalid value: "https://m:port": is no URL` + endpoint},
		"blanks":              {obj: push(`apiEndpoint: "my cluster"`), want: `spec.apiEndpoint: Invalid value: "my cluster": is no URL` + endpoint},
		"no name":             {obj: push(`apiEndpoint: "https://my_cluster_"`), want: `spec.apiEndpoint: Invalid value: "https://my_cluster_": names the host "my_cluster_", which is neither an address nor a name` + endpoint},
		"a proxy's password":  {obj: push(`apiEndpoint: "https://m", proxyURL: "ftp://me:secret@p"`), want: `spec.proxyURL: Invalid value: "ftp://me:xxxxx@p": has the scheme "ftp", not http or https or socks5: give the URL of a proxy, for example http://10.0.0.2:3128`},
		"a proxy without URL": {obj: push(`apiEndpoint: "https://m", proxyURL: "http://me:sec ret@p"`), want: `spec.proxyURL: Invalid value: "(withheld: it cannot be parsed and may hold a password)": is no URL: give the URL of a proxy, for example http://10.0.0.2:3128`},
		"a Secret without name": {
			obj:  `{metadata: {name: m}, spec: {syncMode: Pull, secretRef: {namespace: "", name: A}}}`,
			want: "spec.secretRef.name: Invalid value: \"A\": no Secret on the hub can have it: lower case letters, digits, '-' and '.'\nspec.secretRef.namespace: Required value: name the Secret on the hub, or leave secretRef out",
		},
		"push without anything": {
			obj: `{metadata: {name: m}, spec: {syncMode: Push}}`,
			warnings: []string{
				"spec.apiEndpoint is empty: a Push cluster is not connected until it is set; `namesakectl join` does all that is needed",
				"spec.secretRef is empty: a Push cluster is not connected without a credential; `namesakectl join` does all that is needed",
			},
		},
		"unsafe": {
			obj: push(`apiEndpoint: "http://m", insecureSkipTLSVerification: true`),
			warnings: []string{
				"spec.apiEndpoint is not https: the credential crosses the network readable by anybody on the way",
				"spec.insecureSkipTLSVerification lets anybody on the way pose as the cluster: for tests only",
			},
		},
		"taints of a cluster that was wrong before": {
			old: push(`apiEndpoint: "ftp://m"`), obj: push(`apiEndpoint: "ftp://m", taints: [{key: a, effect: NoSchedule}]`),
		},
		"being deleted": {obj: `{metadata: {name: a.b, deletionTimestamp: "2026-01-01T00:00:00Z"}, spec: {}}`},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			obj, old := read[clusterv1alpha1.Cluster](t, tc.obj), read[clusterv1alpha1.Cluster](t, tc.old)
			errs := Cluster(obj, old)
			if diff := cmp.Diff(tc.want, said(errs)); diff != "" {
				t.Errorf("errors (-want +got):\n%s", diff)
			}
			if len(errs) == 0 && old == nil && obj.DeletionTimestamp == nil {
				if diff := cmp.Diff(tc.warnings, ClusterWarnings(obj)); diff != "" {
					t.Errorf("warnings (-want +got):\n%s", diff)
				}
			}
		})
	}
}
