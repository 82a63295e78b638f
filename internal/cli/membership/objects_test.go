package membership

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

// TestRules holds the rights of the hub in a member to the letter: a change
// here is one that the owners of members must hear of.
func TestRules(t *testing.T) {
	const want = `- apiGroups:
  - ""
  resources:
  - services
  verbs:
  - get
  - list
  - watch
  - create
  - update
  - patch
  - delete
- apiGroups:
  - discovery.k8s.io
  resources:
  - endpointslices
  verbs:
  - get
  - list
  - watch
  - create
  - update
  - patch
  - delete
- apiGroups:
  - ""
  resources:
  - namespaces
  verbs:
  - get
  - list
  - watch
  - create
- nonResourceURLs:
  - /readyz
  - /livez
  - /version
  - /api
  - /api/*
  - /apis
  - /apis/*
  verbs:
  - get
`
	got, err := yaml.Marshal(Rules(false))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("rules (-want +got):\n%s", diff)
	}
}

func TestRulesHaveNoWildcard(t *testing.T) {
	for _, rule := range Rules(true) {
		for _, list := range [][]string{rule.APIGroups, rule.Resources, rule.ResourceNames, rule.Verbs} {
			if slices.ContainsFunc(list, func(s string) bool { return strings.Contains(s, "*") }) {
				t.Errorf("a wildcard in %v", rule)
			}
		}
		for _, url := range rule.NonResourceURLs {
			if strings.Contains(strings.TrimSuffix(url, "/*"), "*") || url == "/*" {
				t.Errorf("URL %q is wider than one tree of discovery", url)
			}
		}
	}
}

func TestMarkerComesBackAsItWas(t *testing.T) {
	for name, m := range map[string]Marker{
		"plain":                  {HubID: "1", HubURL: "https://hub", Cluster: "m1"},
		"with its own namespace": {HubID: "1", HubURL: "https://hub", Cluster: "m1", CreatedNamespace: true},
	} {
		t.Run(name, func(t *testing.T) {
			obj := m.Object()
			if diff := cmp.Diff(m, *markerOf(obj)); diff != "" {
				t.Errorf("marker (-want +got):\n%s", diff)
			}
			if !IsOurs(obj) {
				t.Error("the marker is not labelled as ours")
			}
		})
	}
}
