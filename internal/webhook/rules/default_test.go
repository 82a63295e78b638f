package rules

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

func object(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	if text == "" {
		return nil
	}
	out := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &out.Object); err != nil {
		t.Fatal(err)
	}
	return out
}

func TestDefault(t *testing.T) {
	tests := map[string]struct{ old, obj, want string }{
		"all that is missing": {
			obj: `{metadata: {name: foo}, spec: {types: [CrossCluster], unreachableProviders: {gracePeriod: 5m}}}`,
			want: `{metadata: {name: foo, labels: {multiclusterservice.karmada.io/permanent-id: new}},
				spec: {types: [CrossCluster], discoveryStrategy: RemoteAndLocal, conflictResolution: Adopt,
					unreachableProviders: {gracePeriod: 5m, policy: Retain}}}`,
		},
		"what is said stays": {
			obj: `{metadata: {labels: {a: b, multiclusterservice.karmada.io/permanent-id: given}},
				spec: {discoveryStrategy: LocalFirst, conflictResolution: Abort, unreachableProviders: {policy: Withdraw}, future: {x: 1}}}`,
			want: `{metadata: {labels: {a: b, multiclusterservice.karmada.io/permanent-id: given}},
				spec: {discoveryStrategy: LocalFirst, conflictResolution: Abort, unreachableProviders: {policy: Withdraw}, future: {x: 1}}}`,
		},
		"a changed id is put back": {
			old:  `{metadata: {labels: {multiclusterservice.karmada.io/permanent-id: first}}}`,
			obj:  `{metadata: {labels: {multiclusterservice.karmada.io/permanent-id: second}}, spec: {discoveryStrategy: LocalFirst, conflictResolution: Adopt}}`,
			want: `{metadata: {labels: {multiclusterservice.karmada.io/permanent-id: first}}, spec: {discoveryStrategy: LocalFirst, conflictResolution: Adopt}}`,
		},
		"an id that was taken away comes back": {
			old:  `{metadata: {labels: {multiclusterservice.karmada.io/permanent-id: first}}}`,
			obj:  `{metadata: {}, spec: {discoveryStrategy: LocalFirst, conflictResolution: Adopt}}`,
			want: `{metadata: {labels: {multiclusterservice.karmada.io/permanent-id: first}}, spec: {discoveryStrategy: LocalFirst, conflictResolution: Adopt}}`,
		},
		"an old object without an id gets one": {
			old:  `{metadata: {}}`,
			obj:  `{metadata: {}, spec: {discoveryStrategy: LocalFirst, conflictResolution: Adopt}}`,
			want: `{metadata: {labels: {multiclusterservice.karmada.io/permanent-id: new}}, spec: {discoveryStrategy: LocalFirst, conflictResolution: Adopt}}`,
		},
		"another shape is left to the schema": {
			obj:  `{metadata: {labels: {multiclusterservice.karmada.io/permanent-id: x}}, spec: [not, an, object]}`,
			want: `{metadata: {labels: {multiclusterservice.karmada.io/permanent-id: x}}, spec: [not, an, object]}`,
		},
		"a number where a word belongs": {
			obj:  `{metadata: {labels: {multiclusterservice.karmada.io/permanent-id: x}}, spec: {discoveryStrategy: 3, conflictResolution: Adopt, unreachableProviders: 3}}`,
			want: `{metadata: {labels: {multiclusterservice.karmada.io/permanent-id: x}}, spec: {discoveryStrategy: 3, conflictResolution: Adopt, unreachableProviders: 3}}`,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			obj, want := object(t, tc.obj), object(t, tc.want)
			Default(obj, object(t, tc.old), func() string { return "new" })
			if diff := cmp.Diff(want.Object, obj.Object); diff != "" {
				t.Errorf("defaulted object (-want +got):\n%s", diff)
			}
			Default(obj, want, func() string { return "another" })
			if diff := cmp.Diff(want.Object, obj.Object); diff != "" {
				t.Errorf("defaulted twice (-want +got):\n%s", diff)
			}
		})
	}
}
