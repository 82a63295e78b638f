package get

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/duration"

	clusterv1alpha1 "github.com/namesake-io/namesake/api/cluster/v1alpha1"
	networkingv1alpha1 "github.com/namesake-io/namesake/api/networking/v1alpha1"
)

// none stands in a cell that has nothing to say.
const none = "<none>"

// view is how a table is wanted.
type view struct {
	wide bool
	// namespace: there is a column for it.
	namespace bool
	now       time.Time
}

// tableFunc makes a table of objects. It is pure.
type tableFunc func([]unstructured.Unstructured, view) (*metav1.Table, error)

func clusterTable(items []unstructured.Unstructured, v view) (*metav1.Table, error) {
	columns := []string{"NAME", "VERSION", "MODE", "READY", "AGE"}
	if v.wide {
		columns = append(columns, "APIENDPOINT", "PROVIDER", "REGION", "ZONES", "ID")
	}
	table := newTable(columns)
	for i := range items {
		var c clusterv1alpha1.Cluster
		if err := convert(&items[i], &c); err != nil {
			return nil, err
		}
		row := []any{c.Name, or(c.Status.KubernetesVersion), string(c.Spec.SyncMode), readiness(c.Status.Conditions), v.age(c.CreationTimestamp)}
		if v.wide {
			row = append(row, or(c.Spec.APIEndpoint), or(c.Spec.Provider), or(c.Spec.Region), or(zones(&c)), or(c.Spec.ID))
		}
		addRow(table, row)
	}
	return table, nil
}

func zones(c *clusterv1alpha1.Cluster) string {
	if len(c.Spec.Zones) == 0 {
		return c.Spec.Zone
	}
	return strings.Join(c.Spec.Zones, ",")
}

func serviceTable(items []unstructured.Unstructured, v view) (*metav1.Table, error) {
	var columns []string
	if v.namespace {
		columns = append(columns, "NAMESPACE")
	}
	columns = append(columns, "NAME", "TYPES")
	if v.wide {
		columns = append(columns, "READY", "CLUSTER", "ROLES", "ENDPOINTS", "RECEIVED", "STATE", "SINCE")
	} else {
		columns = append(columns, "PROVIDERS", "CONSUMERS", "ENDPOINTS", "READY", "AGE")
	}
	table := newTable(columns)
	for i := range items {
		var mcs networkingv1alpha1.MultiClusterService
		if err := convert(&items[i], &mcs); err != nil {
			return nil, err
		}
		var row []any
		if v.namespace {
			row = append(row, mcs.Namespace)
		}
		row = append(row, mcs.Name, types(&mcs))
		if !v.wide {
			addRow(table, append(row, or(mcs.Status.Providers), or(mcs.Status.Consumers), endpoints(&mcs),
				readiness(mcs.Status.Conditions), v.age(mcs.CreationTimestamp)))
			continue
		}
		row = append(row, readiness(mcs.Status.Conditions))
		for _, cells := range v.clusterCells(&mcs) {
			addRow(table, append(row[:len(row):len(row)], cells...))
		}
	}
	return table, nil
}

func types(mcs *networkingv1alpha1.MultiClusterService) string {
	names := make([]string, 0, len(mcs.Spec.Types))
	for _, t := range mcs.Spec.Types {
		names = append(names, string(t))
	}
	return or(strings.Join(names, ","))
}

// endpoints are the ready ones of all that the providers have.
func endpoints(mcs *networkingv1alpha1.MultiClusterService) string {
	var ready, collected int64
	known := false
	for i := range mcs.Status.Clusters {
		c := &mcs.Status.Clusters[i]
		if !hasRole(c, networkingv1alpha1.RoleProvider) {
			continue
		}
		known = true
		ready += int64(c.ReadyEndpoints)
		collected += int64(c.CollectedEndpoints)
	}
	if !known {
		return none
	}
	return fmt.Sprintf("%d/%d", ready, collected)
}

// clusterCells are the columns from CLUSTER on, a line for each cluster.
func (v view) clusterCells(mcs *networkingv1alpha1.MultiClusterService) [][]any {
	if len(mcs.Status.Clusters) == 0 {
		return [][]any{{none, none, none, none, none, none}}
	}
	lines := make([][]any, 0, len(mcs.Status.Clusters))
	for i := range mcs.Status.Clusters {
		c := &mcs.Status.Clusters[i]
		roles := make([]string, 0, len(c.Roles))
		for _, role := range c.Roles {
			roles = append(roles, string(role))
		}
		provided, received := none, none
		if hasRole(c, networkingv1alpha1.RoleProvider) {
			provided = fmt.Sprintf("%d/%d", c.ReadyEndpoints, c.CollectedEndpoints)
		}
		if hasRole(c, networkingv1alpha1.RoleConsumer) {
			received = strconv.Itoa(int(c.DispatchedEndpoints))
		}
		since := none
		if c.LastTransitionTime != nil {
			since = v.age(*c.LastTransitionTime)
		}
		lines = append(lines, []any{c.Name, or(strings.Join(roles, ",")), provided, received, or(c.Reason), since})
	}
	return lines
}

func hasRole(c *networkingv1alpha1.ClusterServiceStatus, role networkingv1alpha1.ClusterRole) bool {
	for _, r := range c.Roles {
		if r == role {
			return true
		}
	}
	return false
}

func newTable(columns []string) *metav1.Table {
	table := &metav1.Table{}
	for _, name := range columns {
		table.ColumnDefinitions = append(table.ColumnDefinitions, metav1.TableColumnDefinition{Name: name, Type: "string"})
	}
	return table
}

func addRow(table *metav1.Table, cells []any) {
	table.Rows = append(table.Rows, metav1.TableRow{Cells: cells})
}

func (v view) age(t metav1.Time) string {
	if t.IsZero() {
		return "<unknown>"
	}
	return duration.HumanDuration(v.now.Sub(t.Time))
}

func or(s string) string {
	if s == "" {
		return none
	}
	return s
}

func convert(from *unstructured.Unstructured, to any) error {
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(from.Object, to); err != nil {
		return fmt.Errorf("reading %s %s: %w", from.GetKind(), from.GetName(), err)
	}
	return nil
}
