package demo

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

func parse(t *testing.T, text string) map[string]any {
	t.Helper()
	object := map[string]any{}
	if err := yaml.Unmarshal([]byte(text), &object); err != nil {
		t.Fatal(err)
	}
	return object
}

func TestReadSlice(t *testing.T) {
	tests := map[string]struct {
		text string
		want slice
	}{
		"own": {
			`{metadata: {name: echo-x, resourceVersion: "7"}, ports: [{port: 8080}], endpoints: [{addresses: [a], conditions: {ready: true}}, {addresses: [b], conditions: {ready: false}}]}`,
			slice{name: "echo-x", provider: "member2", port: 8080, version: "7", endpoints: endpoints{"a": true, "b": false}},
		},
		"dispatched": {
			`{metadata: {name: member1-echo-x, annotations: {endpointslice.karmada.io/provision-cluster: member1}}, endpoints: [{addresses: [a]}]}`,
			slice{name: "member1-echo-x", provider: "member1", endpoints: endpoints{"a": true}},
		},
		"empty": {
			`{metadata: {name: echo-x}, endpoints: null, ports: null}`,
			slice{name: "echo-x", provider: "member2", endpoints: endpoints{}},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := readSlice("member2", &unstructured.Unstructured{Object: parse(t, tc.text)})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(slice{})); diff != "" {
				t.Errorf("slice (-want +got):\n%s", diff)
			}
		})
	}
}

func TestCondition(t *testing.T) {
	tests := map[string]struct{ text, wantStatus, wantReason string }{
		"none":      {`{}`, "", ""},
		"another":   {`{status: {conditions: [{type: Applied, status: "True"}]}}`, "", ""},
		"there":     {`{status: {conditions: [{type: Applied, status: "True"}, {type: Ready, status: "False", reason: Late}]}}`, "False", "Late"},
		"malformed": {`{status: {conditions: [7]}}`, "", ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if status, reason := condition(parse(t, tc.text), "Ready"); status != tc.wantStatus || reason != tc.wantReason {
				t.Errorf("got %q, %q, want %q, %q", status, reason, tc.wantStatus, tc.wantReason)
			}
		})
	}
}

func TestWorkKind(t *testing.T) {
	for text, want := range map[string]string{
		`{}`:                                   "",
		`{spec: {workload: {manifests: []}}}`:  "",
		`{spec: {workload: {manifests: [7]}}}`: "",
		`{spec: {workload: {manifests: [{kind: Service}, {kind: Secret}]}}}`: "Service",
	} {
		if got := workKind(parse(t, text)); got != want {
			t.Errorf("%s: got %q, want %q", text, got, want)
		}
	}
}
