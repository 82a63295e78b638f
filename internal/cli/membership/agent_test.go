package membership

import (
	"slices"
	"strings"
	"testing"

	clusterv1alpha1 "github.com/namesake-io/namesake/api/cluster/v1alpha1"
)

// Whatever an agent, or who registers it, is granted on the hub is named, or is in
// the namespace that is the cluster's own.
func TestGrantsStayWithOneCluster(t *testing.T) {
	own := clusterv1alpha1.ExecutionNamespace("m1")
	for _, g := range Grants("m1") {
		for _, rule := range g.Rules {
			for _, list := range [][]string{rule.APIGroups, rule.Resources, rule.ResourceNames, rule.Verbs, rule.NonResourceURLs} {
				if slices.ContainsFunc(list, func(s string) bool { return strings.Contains(s, "*") }) {
					t.Errorf("a wildcard in %s: %v", g.Name, rule)
				}
			}
			if g.Namespace != own && len(rule.ResourceNames) == 0 {
				t.Errorf("%s in namespace %q reaches what has other names: %v", g.Name, g.Namespace, rule)
			}
			if slices.Contains(rule.Resources, "secrets") && (g.Namespace != own || len(rule.ResourceNames) == 0 || slices.Contains(rule.Verbs, "get")) {
				t.Errorf("%s may read Secrets: %v", g.Name, rule)
			}
		}
	}
}
