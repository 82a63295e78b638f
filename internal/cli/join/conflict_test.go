package join

import (
	"errors"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/namesake-io/namesake/api/cluster/v1alpha1"
	"github.com/namesake-io/namesake/internal/cli/console"
	"github.com/namesake-io/namesake/internal/cli/membership"
)

func cluster(name, id string, edits ...func(*clusterv1alpha1.Cluster)) clusterv1alpha1.Cluster {
	c := clusterv1alpha1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       clusterv1alpha1.ClusterSpec{ID: id, SyncMode: clusterv1alpha1.Push, APIEndpoint: "https://" + name},
	}
	for _, edit := range edits {
		edit(&c)
	}
	return c
}

func TestConflict(t *testing.T) {
	deletion := metav1.NewTime(time.Unix(1, 0))
	deleted := func(c *clusterv1alpha1.Cluster) { c.DeletionTimestamp = &deletion }
	pulled := func(c *clusterv1alpha1.Cluster) { c.Spec.SyncMode = clusterv1alpha1.Pull }
	karmada := func(c *clusterv1alpha1.Cluster) {
		c.Spec.ImpersonatorSecretRef = &clusterv1alpha1.LocalSecretReference{Namespace: "karmada-cluster", Name: "x-impersonator"}
	}
	for name, tc := range map[string]struct {
		clusters []clusterv1alpha1.Cluster
		marker   *membership.Marker
		force    bool
		// want is a part of the error; empty means that the join may be.
		want string
	}{
		"empty hub":               {},
		"others":                  {clusters: []clusterv1alpha1.Cluster{cluster("m2", "2"), cluster("m3", "")}},
		"the same again":          {clusters: []clusterv1alpha1.Cluster{cluster("m1", "1")}, marker: &membership.Marker{HubID: "hub", Cluster: "m1"}},
		"a marker that outlived":  {marker: &membership.Marker{HubID: "hub", Cluster: "before"}},
		"another name":            {clusters: []clusterv1alpha1.Cluster{cluster("m2", "1")}, want: `already joined the hub https://hub as "m2"`},
		"another name, forced":    {clusters: []clusterv1alpha1.Cluster{cluster("m2", "1")}, force: true, want: `already joined the hub https://hub as "m2"`},
		"another hub":             {marker: &membership.Marker{HubID: "other", HubURL: "https://other", Cluster: "x"}, want: `another hub, https://other, as "x"`},
		"another hub, forced":     {marker: &membership.Marker{HubID: "other", HubURL: "https://other", Cluster: "x"}, force: true},
		"taken":                   {clusters: []clusterv1alpha1.Cluster{cluster("m1", "2")}, want: `taken on the hub by another cluster (https://m1, id 2)`},
		"taken, forced":           {clusters: []clusterv1alpha1.Cluster{cluster("m1", "2")}, force: true, want: `taken on the hub by another cluster`},
		"taken by one without id": {clusters: []clusterv1alpha1.Cluster{cluster("m1", "")}, want: "a Cluster without an id"},
		"one without id, forced":  {clusters: []clusterv1alpha1.Cluster{cluster("m1", "")}, force: true},
		"being unjoined":          {clusters: []clusterv1alpha1.Cluster{cluster("m1", "1", deleted)}, want: "is being unjoined"},
		"being unjoined, other":   {clusters: []clusterv1alpha1.Cluster{cluster("m1", "2", deleted)}, want: "is being unjoined"},
		"in Pull mode":            {clusters: []clusterv1alpha1.Cluster{cluster("m1", "1", pulled)}, want: "in Pull mode"},
		"joined by Karmada":       {clusters: []clusterv1alpha1.Cluster{cluster("m1", "1", karmada)}, want: "joined by Karmada"},
	} {
		t.Run(name, func(t *testing.T) {
			f := findings{hubID: "hub", hubURL: "https://hub", memberID: "1", marker: tc.marker, clusters: tc.clusters}
			err := f.conflict(Options{Name: "m1", Force: tc.force, Kubeconfig: "m1.kubeconfig"}, "namesakectl")
			if tc.want == "" {
				if err != nil {
					t.Errorf("conflict() = %v, want nil", err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Fatalf("conflict() = %v, want %q", err, tc.want)
			}
			var hinted *console.HintError
			if !errors.As(err, &hinted) {
				t.Errorf("%v has no way out", err)
			}
		})
	}
}

func TestValidateName(t *testing.T) {
	for _, name := range []string{"a", "1", "member1", "eu-west-1a", strings.Repeat("a", 48)} {
		if err := ValidateName(name); err != nil {
			t.Errorf("ValidateName(%q) = %v, want nil", name, err)
		}
	}
	for _, name := range []string{"", "a.b", "-a", "a-", "A", "a_b", "ä", "a b", "a/b", strings.Repeat("a", 49)} {
		err := ValidateName(name)
		if err == nil || !strings.Contains(err.Error(), `"`+name+`"`) || console.ExitCode(err) != console.ExitUsage {
			t.Errorf("ValidateName(%q) = %v, want a usage error that names it", name, err)
		}
	}
}

func TestOtherTokenSecret(t *testing.T) {
	first := otherTokenSecret("")
	second := otherTokenSecret(first)
	if third := otherTokenSecret(second); first == second || third != first {
		t.Errorf("names of token Secrets: %q, %q, %q; want two that take turns", first, second, third)
	}
}
