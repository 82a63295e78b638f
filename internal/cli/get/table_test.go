package get

import (
	"bytes"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/printers"

	clusterv1alpha1 "github.com/namesake-io/namesake/api/cluster/v1alpha1"
	networkingv1alpha1 "github.com/namesake-io/namesake/api/networking/v1alpha1"
)

var now = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

func ago(d time.Duration) metav1.Time { return metav1.NewTime(now.Add(-d)) }

func condition(status metav1.ConditionStatus, reason string) []metav1.Condition {
	return []metav1.Condition{{Type: "Ready", Status: status, Reason: reason}}
}

func unstructuredOf(t *testing.T, objects ...any) []unstructured.Unstructured {
	t.Helper()
	var items []unstructured.Unstructured
	for _, obj := range objects {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
		if err != nil {
			t.Fatal(err)
		}
		items = append(items, unstructured.Unstructured{Object: content})
	}
	return items
}

func printed(t *testing.T, toTable tableFunc, items []unstructured.Unstructured, v view) string {
	t.Helper()
	v.now = now
	table, err := toTable(items, v)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := printers.NewTablePrinter(printers.PrintOptions{}).PrintObj(table, &out); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestClusterTable(t *testing.T) {
	items := unstructuredOf(t,
		&clusterv1alpha1.Cluster{
			ObjectMeta: metav1.ObjectMeta{Name: "member1", CreationTimestamp: ago(3 * time.Hour)},
			Spec: clusterv1alpha1.ClusterSpec{
				ID: "0e1d", SyncMode: clusterv1alpha1.Push, APIEndpoint: "https://10.0.0.1:6443",
				Provider: "acme", Region: "north", Zones: []string{"a", "b"},
			},
			Status: clusterv1alpha1.ClusterStatus{
				KubernetesVersion: "v1.37.2", Conditions: condition(metav1.ConditionTrue, clusterv1alpha1.ReasonClusterReady),
			},
		},
		&clusterv1alpha1.Cluster{
			ObjectMeta: metav1.ObjectMeta{Name: "member2", CreationTimestamp: ago(10 * time.Second)},
			Spec:       clusterv1alpha1.ClusterSpec{SyncMode: clusterv1alpha1.Pull, Zone: "c"},
			Status: clusterv1alpha1.ClusterStatus{
				Conditions: condition(metav1.ConditionFalse, clusterv1alpha1.ReasonClusterNotReachable),
			},
		},
		&clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "member3"}},
	)
	for name, tc := range map[string]struct {
		view view
		want string
	}{
		"narrow": {want: `NAME      VERSION   MODE   READY                       AGE
member1   v1.37.2   Push   True                        3h
member2   <none>    Pull   False/ClusterNotReachable   10s
member3   <none>           Unknown                     <unknown>
`},
		"wide": {view: view{wide: true}, want: `NAME      VERSION   MODE   READY                       AGE         APIENDPOINT             PROVIDER   REGION   ZONES    ID
member1   v1.37.2   Push   True                        3h          https://10.0.0.1:6443   acme       north    a,b      0e1d
member2   <none>    Pull   False/ClusterNotReachable   10s         <none>                  <none>     <none>   c        <none>
member3   <none>           Unknown                     <unknown>   <none>                  <none>     <none>   <none>   <none>
`},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, printed(t, clusterTable, items, tc.view)); diff != "" {
				t.Errorf("table (-want +got):\n%s", diff)
			}
		})
	}
}

func TestServiceTable(t *testing.T) {
	since := ago(90 * time.Second)
	provider := []networkingv1alpha1.ClusterRole{networkingv1alpha1.RoleProvider}
	consumer := []networkingv1alpha1.ClusterRole{networkingv1alpha1.RoleConsumer}
	both := []networkingv1alpha1.ClusterRole{networkingv1alpha1.RoleProvider, networkingv1alpha1.RoleConsumer}
	crossCluster := networkingv1alpha1.MultiClusterServiceSpec{
		Types: []networkingv1alpha1.ExposureType{networkingv1alpha1.ExposureTypeCrossCluster},
	}
	items := unstructuredOf(t,
		&networkingv1alpha1.MultiClusterService{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "foo", CreationTimestamp: ago(26 * time.Hour)},
			Spec:       crossCluster,
			Status: networkingv1alpha1.MultiClusterServiceStatus{
				ServiceStatus: corev1.ServiceStatus{Conditions: condition(metav1.ConditionFalse, "ClusterUnreachable")},
				Providers:     "member1,member2", Consumers: "member2,member3",
				Clusters: []networkingv1alpha1.ClusterServiceStatus{
					{Name: "member1", Roles: provider, CollectedEndpoints: 3, ReadyEndpoints: 2, Reason: "AllReady", LastTransitionTime: &since},
					{Name: "member2", Roles: both, CollectedEndpoints: 4, ReadyEndpoints: 4, DispatchedEndpoints: 3, Reason: "AllReady"},
					// What stands here is nobody's: a consumer provides nothing.
					{Name: "member3", Roles: consumer, CollectedEndpoints: 9, DispatchedEndpoints: 0, Reason: "ClusterUnreachable"},
				},
			},
		},
		&networkingv1alpha1.MultiClusterService{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "new", CreationTimestamp: ago(time.Second)}, Spec: crossCluster,
		},
	)
	for name, tc := range map[string]struct {
		view view
		want string
	}{
		"narrow": {want: `NAME   TYPES          PROVIDERS         CONSUMERS         ENDPOINTS   READY                      AGE
foo    CrossCluster   member1,member2   member2,member3   6/7         False/ClusterUnreachable   26h
new    CrossCluster   <none>            <none>            <none>      Unknown                    1s
`},
		"all namespaces": {view: view{namespace: true}, want: `NAMESPACE   NAME   TYPES          PROVIDERS         CONSUMERS         ENDPOINTS   READY                      AGE
shop        foo    CrossCluster   member1,member2   member2,member3   6/7         False/ClusterUnreachable   26h
shop        new    CrossCluster   <none>            <none>            <none>      Unknown                    1s
`},
		"wide": {view: view{wide: true}, want: `NAME   TYPES          READY                      CLUSTER   ROLES               ENDPOINTS   RECEIVED   STATE                SINCE
foo    CrossCluster   False/ClusterUnreachable   member1   Provider            2/3         <none>     AllReady             90s
foo    CrossCluster   False/ClusterUnreachable   member2   Provider,Consumer   4/4         3          AllReady             <none>
foo    CrossCluster   False/ClusterUnreachable   member3   Consumer            <none>      0          ClusterUnreachable   <none>
new    CrossCluster   Unknown                    <none>    <none>              <none>      <none>     <none>               <none>
`},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, printed(t, serviceTable, items, tc.view)); diff != "" {
				t.Errorf("table (-want +got):\n%s", diff)
			}
		})
	}
}
