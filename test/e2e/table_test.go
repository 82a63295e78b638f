package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/namesake-io/namesake/api/cluster/v1alpha1"
)

// table returns what kubectl get prints of a list, by the names of its rows: the
// columns that are shown without -o wide, and their cells.
func table(ctx context.Context, c *cluster, path string) (columns []string, rows map[string][]string, err error) {
	set, err := kubernetes.NewForConfig(c.config)
	if err != nil {
		return nil, nil, err
	}
	raw, err := set.Discovery().RESTClient().Get().AbsPath(path).
		SetHeader("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io").DoRaw(ctx)
	if err != nil {
		return nil, nil, err
	}
	found := &metav1.Table{}
	if err := json.Unmarshal(raw, found); err != nil {
		return nil, nil, err
	}
	var shown []int
	for i, c := range found.ColumnDefinitions {
		if c.Priority == 0 {
			shown = append(shown, i)
			columns = append(columns, strings.ToUpper(c.Name))
		}
	}
	rows = map[string][]string{}
	for _, row := range found.Rows {
		object := &metav1.PartialObjectMetadata{}
		if err := json.Unmarshal(row.Object.Raw, object); err != nil {
			return nil, nil, err
		}
		for _, i := range shown {
			rows[object.Name] = append(rows[object.Name], fmt.Sprint(row.Cells[i]))
		}
	}
	return columns, rows, nil
}

var age = regexp.MustCompile(`^\d+[smh]`)

// kubectl get mcs,clusters,works -A reads well.
func TestTables(t *testing.T) {
	f := together(t)
	s := servedEverywhere(t, f, "foo", "ghostly")
	s.createMCS("foo", to("member2"))
	s.createMCS("ghostly", from("member1", "ghost"))
	s.waitReady("foo")
	s.waitCondition("ghostly", "Ready", "ClusterNotFound", "ghost")

	check := func(path string, wantColumns []string, wantRows map[string][]string) {
		t.Helper()
		columns, rows, err := table(t.Context(), f.hub, path)
		s.must(err)
		if diff := cmp.Diff(wantColumns, columns); diff != "" {
			t.Errorf("columns of %s (- wanted, + found):\n%s", path, diff)
		}
		for _, cells := range rows {
			if last := len(cells) - 1; age.MatchString(cells[last]) {
				cells[last] = "AGE"
			}
		}
		if diff := cmp.Diff(wantRows, rows); diff != "" {
			t.Errorf("rows of %s (- wanted, + found):\n%s", path, diff)
		}
	}
	all := "member1,member2,member3" // three are named, and the others counted
	if more := len(f.names()) - 3; more > 0 {
		all += fmt.Sprintf("+%d", more)
	}
	check("/apis/networking.karmada.io/v1alpha1/namespaces/"+s.ns+"/multiclusterservices",
		[]string{"NAME", "TYPES", "PROVIDERS", "CONSUMERS", "READY", "AGE"},
		map[string][]string{
			"foo":     {"foo", "CrossCluster", all, "member2", "True", "AGE"},
			"ghostly": {"ghostly", "CrossCluster", "member1", all, "False", "AGE"},
		})

	version, err := serverVersion(f.members["member1"])
	s.must(err)
	clusters := map[string][]string{}
	for _, name := range f.names() {
		mode := "Push"
		if slices.Contains(f.pull, name) {
			mode = "Pull"
		}
		clusters[name] = []string{name, version, mode, "True", "AGE"}
	}
	check("/apis/cluster.karmada.io/v1alpha1/clusters", []string{"NAME", "VERSION", "MODE", "READY", "AGE"}, clusters)

	columns, rows, err := table(t.Context(), f.hub, "/apis/work.karmada.io/v1alpha1/namespaces/karmada-es-member2/works")
	s.must(err)
	if diff := cmp.Diff([]string{"NAME", "WORKLOAD-KIND", "APPLIED", "AGE"}, columns); diff != "" {
		t.Errorf("columns of works (- wanted, + found):\n%s", diff)
	}
	seen := map[string]string{}
	for name, cells := range rows {
		switch {
		case strings.HasPrefix(name, "foo-a-"):
			seen["collected slice"] = cells[1] + " " + cells[2]
		case strings.HasPrefix(name, "foo-"):
			if cells[1] == "Service" {
				seen["Service"] = cells[1] + " " + cells[2]
			}
		case strings.HasPrefix(name, s.ns):
			seen["Namespace"] = cells[1] + " " + cells[2]
		}
	}
	if diff := cmp.Diff(map[string]string{
		"collected slice": "EndpointSlice <nil>", "Service": "Service True", "Namespace": "Namespace True",
	}, seen); diff != "" {
		t.Errorf("rows of works (- wanted, + found):\n%s", diff)
	}
}

// serverVersion is what an API server says of itself.
func serverVersion(c *cluster) (string, error) {
	set, err := kubernetes.NewForConfig(c.config)
	if err != nil {
		return "", err
	}
	version, err := set.Discovery().ServerVersion()
	if err != nil {
		return "", err
	}
	return version.GitVersion, nil
}

// A Cluster's status says what it serves, and each condition of which generation
// it speaks.
func TestClusterStatus(t *testing.T) {
	f := together(t)
	for _, name := range f.names() {
		c := &clusterv1alpha1.Cluster{}
		within(t, patience, "status of "+name, func(ctx context.Context) error {
			if err := f.hub.Get(ctx, client.ObjectKey{Name: name}, c); err != nil {
				return err
			}
			for _, kind := range []string{clusterv1alpha1.ConditionReady, clusterv1alpha1.ConditionCompleteAPIEnablements} {
				found := meta.FindStatusCondition(c.Status.Conditions, kind)
				if found == nil || found.Status != metav1.ConditionTrue || found.ObservedGeneration != c.Generation {
					return fmt.Errorf("generation %d, condition %s: %+v", c.Generation, kind, found)
				}
			}
			for _, e := range c.Status.APIEnablements {
				if e.GroupVersion == "discovery.k8s.io/v1" {
					return nil
				}
			}
			return fmt.Errorf("enablements %v", c.Status.APIEnablements)
		})
	}
}

// Nodes are counted where the hub may list them, and only there.
func TestNodeSummary(t *testing.T) {
	f := alone(t)
	const member = "member1"
	if _, err := f.ctl(t.Context(), "unjoin", member, "--cluster-kubeconfig", f.hubPath(member)); err != nil {
		t.Fatal(err)
	}
	comeBack(t, f, member)
	for name, ready := range map[string]corev1.ConditionStatus{"counted-1": corev1.ConditionTrue, "counted-2": corev1.ConditionFalse} {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if err := f.members[member].Create(t.Context(), node); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = f.members[member].Delete(context.WithoutCancel(t.Context()), node) })
		node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready}}
		if err := f.members[member].Status().Update(t.Context(), node); err != nil {
			t.Fatal(err)
		}
	}
	join(t, f, member, "--node-summary")
	within(t, patience, "nodes are counted", func(ctx context.Context) error {
		c := &clusterv1alpha1.Cluster{}
		if err := f.hub.Get(ctx, client.ObjectKey{Name: member}, c); err != nil {
			return err
		}
		nodes := &corev1.NodeList{} // another test may have made some
		if err := f.members[member].List(ctx, nodes); err != nil {
			return err
		}
		if n := c.Status.NodeSummary; n == nil || int(n.TotalNum) != len(nodes.Items) || n.ReadyNum != 1 {
			return fmt.Errorf("summary %+v, want 1 of %d ready", n, len(nodes.Items))
		}
		return nil
	})
	other := &clusterv1alpha1.Cluster{}
	if err := f.hub.Get(t.Context(), client.ObjectKey{Name: "member2"}, other); err != nil || other.Status.NodeSummary != nil {
		t.Errorf("member2, joined without it: %+v, %v", other.Status.NodeSummary, err)
	}
}
