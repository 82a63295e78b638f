package cli_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/namesake-io/namesake/api/cluster/v1alpha1"
	workv1alpha1 "github.com/namesake-io/namesake/api/work/v1alpha1"
)

// hold gives the named cluster the controller's finalizer and returns what takes
// it off again.
func hold(t *testing.T, name string) (release func()) {
	t.Helper()
	cluster := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
	patch := func(ctx context.Context, data string) error {
		return client.IgnoreNotFound(hub.client.Patch(ctx, cluster, client.RawPatch(types.MergePatchType, []byte(data))))
	}
	if err := patch(t.Context(), `{"metadata":{"finalizers":["karmada.io/cluster-controller"]}}`); err != nil {
		t.Fatal(err)
	}
	release = func() {
		if err := patch(context.Background(), `{"metadata":{"finalizers":null}}`); err != nil {
			t.Error(err)
		}
	}
	t.Cleanup(release)
	return release
}

// releaseWhenDeleted takes the finalizer off when the deletion was asked for,
// and hands on the Cluster as it was then.
func releaseWhenDeleted(t *testing.T, name string) <-chan *clusterv1alpha1.Cluster {
	t.Helper()
	release := hold(t, name)
	ctx, cancel := context.WithCancel(t.Context())
	watcher, err := hub.client.Watch(ctx, &clusterv1alpha1.ClusterList{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cancel)
	seen := make(chan *clusterv1alpha1.Cluster, 1)
	go func() {
		defer watcher.Stop()
		for event := range watcher.ResultChan() {
			cluster, ok := event.Object.(*clusterv1alpha1.Cluster)
			if ok && cluster.Name == name && cluster.DeletionTimestamp != nil {
				seen <- cluster
				release()
				return
			}
		}
	}()
	return seen
}

func TestUnjoin(t *testing.T) {
	needServers(t)
	join(t, "gone")
	seen := releaseWhenDeleted(t, "gone")
	r := succeed(t, "unjoin", "gone", "--cluster-kubeconfig", member.kubeconfig)
	want := `Unjoining gone from the hub HUB
  ✓ deletion of Cluster gone: asked for (TIME)
  ✓ the hub has let go (TIME)
  ✓ credential on the hub: removed (TIME)
  ✓ account in the member: removed; namespace karmada-cluster too (TIME)
gone has left in TIME
`
	if diff := cmp.Diff(want, steady(r.out)); diff != "" {
		t.Errorf("stdout (-want +got):\n%s", diff)
	}
	if _, forced := (<-seen).Annotations[clusterv1alpha1.ForceUnjoinAnnotation]; forced {
		t.Error("the unjoin was forced")
	}
	if left := append(leftInMember(t), leftOnHub(t, "gone")...); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: systemNamespace}}
	member.get(t, namespace)
	if namespace.DeletionTimestamp == nil {
		t.Error("the namespace that the join made stays")
	}
}

func TestUnjoinByForce(t *testing.T) {
	needServers(t)
	join(t, "forced")
	seen := releaseWhenDeleted(t, "forced")
	unreachable := editedKubeconfig(t, func(c *cluster) { c.Server = "https://127.0.0.1:1" })

	r := run(t, "unjoin", "forced", "--cluster-kubeconfig", unreachable)
	if want := "error: the member https://127.0.0.1:1 cannot be reached"; r.code != 1 || !strings.HasPrefix(r.err, want) {
		t.Fatalf("got %s\nwant exit code 1 and %q", r, want)
	}
	r = succeed(t, "unjoin", "forced", "--cluster-kubeconfig", unreachable, "--force")
	want := `Unjoining forced from the hub HUB
  · its account stays there: the member https://127.0.0.1:1 cannot be reached ` +
		`(kubeconfig KUBECONFIG, context envtest): dial tcp 127.0.0.1:1: connect: connection refused
  ✓ deletion of Cluster forced: asked for, by force (TIME)
  ✓ the hub has let go (TIME)
  ✓ credential on the hub: removed (TIME)
forced has left in TIME
An account of ours still stands in it, without use. To remove it, run there:
  kubectl delete --ignore-not-found clusterrolebinding/namesake-hub clusterrole/namesake-hub ` +
		`clusterrolebinding/namesake-agent clusterrole/namesake-agent
  kubectl delete --ignore-not-found -n karmada-cluster ` +
		`serviceaccount/namesake configmap/namesake secret/namesake-token secret/namesake-token-2
  kubectl delete --ignore-not-found -n karmada-cluster ` +
		`deployment/namesake-agent rolebinding/namesake-agent role/namesake-agent serviceaccount/namesake-agent secret/namesake-agent
`
	if diff := cmp.Diff(want, steady(r.out, unreachable, "KUBECONFIG")); diff != "" {
		t.Errorf("stdout (-want +got):\n%s", diff)
	}
	if got := (<-seen).Annotations[clusterv1alpha1.ForceUnjoinAnnotation]; got != "true" {
		t.Errorf("annotation %s = %q before the deletion, want true", clusterv1alpha1.ForceUnjoinAnnotation, got)
	}
	// The member is back: it joins again although the marker still stands there.
	join(t, "forced2")
}

// What the hub says that stays in a member is passed on, with the commands that
// remove it.
func TestUnjoinTellsWhatStays(t *testing.T) {
	needServers(t)
	join(t, "dead")
	cluster := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "dead"}}
	hub.get(t, cluster)
	hub.create(t, &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "dead-left"},
		InvolvedObject: corev1.ObjectReference{Kind: "Cluster", Name: cluster.Name, UID: cluster.UID},
		Reason:         clusterv1alpha1.EventLeftUnclean, Message: "2 Service and 3 EndpointSlice stay",
	})
	seen := releaseWhenDeleted(t, "dead")
	r := succeed(t, "unjoin", "dead", "--force", "--cluster-kubeconfig", member.kubeconfig)
	want := `Unjoining dead from the hub HUB
  ✓ deletion of Cluster dead: asked for, by force (TIME)
  ✓ the hub has let go (TIME)
  · 2 Service and 3 EndpointSlice stay
  ✓ credential on the hub: removed (TIME)
  ✓ account in the member: removed; namespace karmada-cluster too (TIME)
dead has left in TIME
To remove what was put there, run there:
  kubectl delete endpointslices -A -l endpointslice.kubernetes.io/managed-by=endpointslice-dispatch-controller.karmada.io
  kubectl delete services -A -l karmada.io/managed=true
`
	if diff := cmp.Diff(want, steady(r.out)); diff != "" {
		t.Errorf("stdout (-want +got):\n%s", diff)
	}
	<-seen
}

func TestUnjoinTimesOut(t *testing.T) {
	needServers(t)
	join(t, "stuck")
	hold(t, "stuck")
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: clusterv1alpha1.ExecutionNamespace("stuck")}}
	hub.create(t, namespace)
	for _, name := range []string{"a", "b"} {
		hub.create(t, &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: namespace.Name, Name: name}})
	}
	r := run(t, "unjoin", "stuck", "--wait-timeout", "500ms")
	want := `error: stuck is still there after TIME: 2 Works in karmada-es-stuck, no Ready condition, finalizers karmada.io/cluster-controller
hint:  is the controller-manager running against the hub? If the member is gone for good, add --force; else run this again to wait on
`
	if diff := cmp.Diff(want, steady(r.err)); r.code != 1 || diff != "" {
		t.Errorf("exit code %d; stderr (-want +got):\n%s", r.code, diff)
	}
	if left := leftOnHub(t, "stuck"); !slices.Contains(left, "Secret/stuck") {
		t.Error("the hub's Secret is gone before the Cluster is: the controller needs it")
	}
	r = run(t, joinArgs("stuck")...)
	want = `error: the cluster "stuck" is being unjoined from the hub
hint:  wait until ` + "`namesakectl get clusters`" + ` no longer shows it, then run this again
`
	if diff := cmp.Diff(want, steady(r.err)); r.code != 1 || diff != "" {
		t.Errorf("joining meanwhile: exit code %d; stderr (-want +got):\n%s", r.code, diff)
	}
}

func TestUnjoinRefuses(t *testing.T) {
	needServers(t)
	join(t, "known")
	for name, tc := range map[string]struct {
		args []string
		want string
	}{
		"unknown name": {
			args: []string{"unjoin", "unknown"},
			want: `error: no cluster "unknown" has joined the hub HUB
hint:  joined are: known
`,
		},
		"kubeconfig of another cluster": {
			args: []string{"unjoin", "known", "--cluster-kubeconfig", hub.kubeconfig},
			want: `error: kubeconfig HUB.kubeconfig is that of another cluster (id HUBID) than known (id MEMBERID)
hint:  name the kubeconfig of known, whose API server is MEMBER
`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := run(t, tc.args...)
			if diff := cmp.Diff(tc.want, steady(r.err, hub.id(t), "HUBID", member.id(t), "MEMBERID")); r.code != 1 || diff != "" {
				t.Errorf("exit code %d; stderr (-want +got):\n%s", r.code, diff)
			}
			hub.get(t, &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "known"}})
		})
	}
}

func TestUnjoinKeepsANamespaceInUse(t *testing.T) {
	needServers(t)
	join(t, "tenant")
	guest := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: systemNamespace, Name: "guest"}}
	member.create(t, guest)
	r := succeed(t, "unjoin", "tenant", "--cluster-kubeconfig", member.kubeconfig)
	if want := "account in the member: removed; namespace karmada-cluster stays: it holds configmaps/guest ("; !strings.Contains(r.out, want) {
		t.Errorf("stdout does not hold %q:\n%s", want, r.out)
	}
	member.get(t, guest)
	if diff := cmp.Diff([]string{"ConfigMap/guest"}, leftInMember(t)); diff != "" {
		t.Errorf("left in the member (-want +got):\n%s", diff)
	}
	// The namespace is not the one of a join any more.
	if err := member.client.Delete(t.Context(), guest); err != nil {
		t.Fatal(err)
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: systemNamespace}}
	if err := member.client.Delete(t.Context(), namespace); err != nil {
		t.Fatal(err)
	}
}
