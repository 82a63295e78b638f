package cli_test

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/namesake-io/namesake/api/cluster/v1alpha1"
	"github.com/namesake-io/namesake/internal/cli/membership"
)

// reportOn writes a Ready condition for the named cluster once it exists, as the
// controller does.
func reportOn(t *testing.T, name string, ready metav1.Condition) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	watcher, err := hub.client.Watch(ctx, &clusterv1alpha1.ClusterList{})
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	t.Cleanup(func() {
		cancel()
		<-done
	})
	go func() {
		defer close(done)
		defer watcher.Stop()
		for event := range watcher.ResultChan() {
			cluster, ok := event.Object.(*clusterv1alpha1.Cluster)
			if !ok || cluster.Name != name || len(cluster.Status.Conditions) > 0 || event.Type == "DELETED" {
				continue
			}
			ready.Type = clusterv1alpha1.ConditionReady
			ready.LastTransitionTime = metav1.Now()
			cluster.Status.KubernetesVersion = "v1.0.0-reported"
			cluster.Status.Conditions = []metav1.Condition{ready}
			if err := hub.client.Status().Update(ctx, cluster); err != nil && ctx.Err() == nil {
				t.Errorf("reporting on %s: %v", name, err)
			}
		}
	}()
}

func TestJoin(t *testing.T) {
	needServers(t)
	leaveAtEnd(t, "m1")
	reportOn(t, "m1", metav1.Condition{Status: metav1.ConditionTrue, Reason: clusterv1alpha1.ReasonClusterReady})
	r := succeed(t, "join", "m1", "--cluster-kubeconfig", member.kubeconfig, "--token-wait", "1ms",
		"--wait-timeout", "20s", "--provider", "acme", "--region", "north", "--zone", "a,b", "-v", "7")

	want := `Joining m1 (MEMBER) to the hub HUB
  ✓ hub answers: 0 joined (TIME)
  ✓ member answers: VERSION, id ID (TIME)
  ✓ permissions in the member: all (TIME)
  ✓ permissions on the hub: all (TIME)
  ✓ account in the member: karmada-cluster/namesake with role namesake-hub (TIME)
  ✓ credential: a token until DAY, since the member filled no Secret within TIME; join again before that day (TIME)
  ✓ credential works: it lists slices (TIME)
  ✓ registration on the hub: Cluster m1, Secret karmada-cluster/m1 (TIME)
  ✓ Ready: v1.0.0-reported (TIME)
m1 has joined in TIME
`
	version := serverVersion(t, &member)
	day := time.Now().UTC().Add(10 * 365 * 24 * time.Hour).Format(time.DateOnly)
	if diff := cmp.Diff(want, steady(r.out, member.id(t), "ID", day, "DAY", version, "VERSION")); diff != "" {
		t.Errorf("stdout (-want +got):\n%s", diff)
	}

	cluster := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "m1"}}
	hub.get(t, cluster)
	wantSpec := clusterv1alpha1.ClusterSpec{
		ID:          member.id(t),
		SyncMode:    clusterv1alpha1.Push,
		APIEndpoint: member.url(),
		SecretRef:   &clusterv1alpha1.LocalSecretReference{Namespace: systemNamespace, Name: "m1"},
		Provider:    "acme", Region: "north", Zones: []string{"a", "b"},
	}
	if diff := cmp.Diff(wantSpec, cluster.Spec); diff != "" {
		t.Errorf("Cluster.spec (-want +got):\n%s", diff)
	}
	secret := hubSecret(t, "m1")
	if got := secret.Labels["karmada.io/system"]; got != "true" {
		t.Errorf("label karmada.io/system of the hub's Secret = %q, want true", got)
	}
	if diff := cmp.Diff(string(member.config.CAData), string(secret.Data["caBundle"])); diff != "" {
		t.Errorf("caBundle (-want +got):\n%s", diff)
	}
	token := string(secret.Data["token"])
	if token == "" {
		t.Fatal("the hub's Secret has no token")
	}
	for _, secret := range []string{token, member.config.BearerToken, string(member.config.KeyData)} {
		if secret != "" && strings.Contains(r.out+r.err, secret) {
			t.Error("the output, at -v 7, holds a credential")
		}
	}
	if !strings.Contains(r.err, "/apis/cluster.karmada.io/v1alpha1/clusters") {
		t.Errorf("-v 7 does not log requests:\n%s", r.err)
	}
}

func serverVersion(t *testing.T, s *server) string {
	t.Helper()
	d, err := discovery.NewDiscoveryClientForConfig(s.config)
	if err != nil {
		t.Fatal(err)
	}
	version, err := d.ServerVersion()
	if err != nil {
		t.Fatal(err)
	}
	return version.GitVersion
}

func hubSecret(t *testing.T, name string) *corev1.Secret {
	t.Helper()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: systemNamespace, Name: name}}
	hub.get(t, secret)
	return secret
}

// asHub returns a client of the member with the credential that the hub got.
func asHub(t *testing.T, name string) client.Client {
	t.Helper()
	secret := hubSecret(t, name)
	c, err := client.New(&rest.Config{
		Host:            member.url(),
		BearerToken:     string(secret.Data["token"]),
		TLSClientConfig: rest.TLSClientConfig{CAData: secret.Data["caBundle"]},
	}, client.Options{Scheme: member.client.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestCredentialHasTheLeastRights(t *testing.T) {
	needServers(t)
	join(t, "least")
	c := asHub(t, "least")
	ctx := t.Context()

	if err := c.List(ctx, &discoveryv1.EndpointSliceList{}); err != nil {
		t.Errorf("listing slices: %v", err)
	}
	for _, list := range []client.ObjectList{&corev1.SecretList{}, &corev1.PodList{}, &corev1.ConfigMapList{}, &rbacv1.ClusterRoleList{}} {
		if err := c.List(ctx, list); !apierrors.IsForbidden(err) {
			t.Errorf("listing %T: %v, want Forbidden", list, err)
		}
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "default"}}
	if err := c.Delete(ctx, namespace, client.DryRunAll); !apierrors.IsForbidden(err) {
		t.Errorf("deleting a namespace: %v, want Forbidden", err)
	}

	// What the API server says of the credential, less what it grants to
	// everybody who is somebody.
	review := &authorizationv1.SelfSubjectRulesReview{Spec: authorizationv1.SelfSubjectRulesReviewSpec{Namespace: systemNamespace}}
	if err := c.Create(ctx, review); err != nil {
		t.Fatal(err)
	}
	got := map[string][]string{}
	for _, rule := range review.Status.ResourceRules {
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				if !strings.HasPrefix(resource, "selfsubject") && resource != "clustertrustbundles" {
					got[resource+"."+group] = append(got[resource+"."+group], rule.Verbs...)
				}
			}
		}
	}
	write := []string{"get", "list", "watch", "create", "update", "patch", "delete"}
	want := map[string][]string{
		"services.":                       write,
		"endpointslices.discovery.k8s.io": write,
		"namespaces.":                     {"get", "list", "watch", "create"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("rights (-want +got):\n%s", diff)
	}
}

func TestJoinAgainRenewsTheCredential(t *testing.T) {
	needServers(t)
	join(t, "again", "--region", "north")
	before := hubSecret(t, "again")
	uid := clusterUID(t, "again")

	for range 3 { // the two names of the token's Secret take turns
		r := join(t, "again")
		if !strings.Contains(r.out, "renewed the credential (") {
			t.Errorf("stdout does not say that the credential was renewed:\n%s", r.out)
		}
		after := hubSecret(t, "again")
		if string(before.Data["token"]) == string(after.Data["token"]) {
			t.Error("the token has not changed")
		}
		if err := asHub(t, "again").List(t.Context(), &discoveryv1.EndpointSliceList{}); err != nil {
			t.Errorf("the new token: %v", err)
		}
		// The old token dies with its Secret, ten seconds later at the latest.
		used := after.Annotations["cluster.namesake.io/token-secret"]
		if used == before.Annotations["cluster.namesake.io/token-secret"] {
			t.Errorf("the new token lives in the Secret of the old one, %s", used)
		}
		tokens := slices.DeleteFunc(leftInMember(t), func(s string) bool { return !strings.HasPrefix(s, "Secret/") })
		if diff := cmp.Diff([]string{"Secret/" + used}, tokens); diff != "" {
			t.Errorf("Secrets in the member (-want +got):\n%s", diff)
		}
		before = after
	}
	if got := clusterUID(t, "again"); got != uid {
		t.Errorf("the Cluster was made anew: UID %s, want %s", got, uid)
	}
	cluster := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "again"}}
	hub.get(t, cluster)
	if cluster.Spec.Region != "north" {
		t.Errorf("region = %q, want the one of the first join", cluster.Spec.Region)
	}
	if cluster.Generation != 1 {
		t.Errorf("the Cluster was written %d times, want once", cluster.Generation)
	}
}

func clusterUID(t *testing.T, name string) string {
	t.Helper()
	cluster := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
	hub.get(t, cluster)
	return string(cluster.UID)
}

func TestJoinUsesASecretThatTheMemberFills(t *testing.T) {
	needServers(t)
	// The member has no controller-manager: the test fills the Secret with a
	// token that it asked for, as that would.
	leaveAtEnd(t, "filled")
	ctx, cancel := context.WithCancel(t.Context())
	watcher, err := member.client.Watch(ctx, &corev1.SecretList{}, client.InNamespace(systemNamespace))
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	t.Cleanup(func() { cancel(); <-done })
	go func() {
		defer close(done)
		defer watcher.Stop()
		for event := range watcher.ResultChan() {
			secret, ok := event.Object.(*corev1.Secret)
			if !ok || event.Type != "ADDED" || len(secret.Data["token"]) > 0 {
				continue
			}
			token, err := requestToken(ctx)
			if err != nil {
				t.Errorf("asking for a token: %v", err)
				return
			}
			secret.Data = map[string][]byte{"token": []byte(token)}
			if err := member.client.Update(ctx, secret); err != nil {
				t.Errorf("filling the Secret: %v", err)
			}
		}
	}()
	r := succeed(t, joinArgs("filled", "--token-wait", "20s")...)
	if want := "a token that does not expire, in Secret karmada-cluster/namesake-token ("; !strings.Contains(r.out, want) {
		t.Errorf("stdout does not hold %q:\n%s", want, r.out)
	}
}

func TestJoinElsewhere(t *testing.T) {
	needServers(t)
	join(t, "here")
	marker := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: systemNamespace, Name: membership.MarkerName}}
	member.get(t, marker)
	marker.Data["hubID"], marker.Data["hubURL"], marker.Data["cluster"] = "another", "https://10.0.0.9:6443", "there"
	if err := member.client.Update(t.Context(), marker); err != nil {
		t.Fatal(err)
	}

	r := run(t, joinArgs("here")...)
	want := `error: this cluster has already joined another hub, https://10.0.0.9:6443, as "there"
hint:  run there: namesakectl unjoin there --cluster-kubeconfig MEMBER.kubeconfig; or, if that hub is gone, join with --force
`
	if diff := cmp.Diff(want, steady(r.err)); r.code != 1 || diff != "" {
		t.Errorf("exit code %d; stderr (-want +got):\n%s", r.code, diff)
	}

	succeed(t, joinArgs("here", "--force")...)
	member.get(t, marker)
	if marker.Data["hubID"] != hub.id(t) || marker.Data["cluster"] != "here" {
		t.Errorf("after --force the marker says %v", marker.Data)
	}
}

func TestJoinWaitsForReady(t *testing.T) {
	needServers(t)
	for name, tc := range map[string]struct {
		condition *metav1.Condition
		want      string
	}{
		"no controller": {
			want: `error: waiting has joined, but nothing has reported on it within TIME
hint:  is the controller-manager running against the hub? waiting becomes Ready once it does; ` +
				`to take the join back: namesakectl unjoin waiting --cluster-kubeconfig MEMBER.kubeconfig
`,
		},
		"not reachable from the hub": {
			condition: &metav1.Condition{
				Status: metav1.ConditionFalse, Reason: clusterv1alpha1.ReasonClusterNotReachable, Message: "dial tcp: no route to host",
			},
			want: `error: waiting has joined, but is not Ready after TIME: False (ClusterNotReachable): dial tcp: no route to host
hint:  can the hub reach MEMBER? If it knows the member under another address, join again with --api-endpoint URL; ` +
				`to take the join back: namesakectl unjoin waiting --cluster-kubeconfig MEMBER.kubeconfig
`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			leaveAtEnd(t, "waiting")
			if tc.condition != nil {
				reportOn(t, "waiting", *tc.condition)
			}
			r := run(t, joinArgs("waiting", "--wait-timeout", "1s")...)
			if diff := cmp.Diff(tc.want, steady(r.err)); r.code != 1 || diff != "" {
				t.Errorf("exit code %d; stderr (-want +got):\n%s", r.code, diff)
			}
			hub.get(t, &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "waiting"}})
		})
	}
}

func TestJoinLeavesForeignObjectsAlone(t *testing.T) {
	needServers(t)
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: systemNamespace, Name: "foreign"},
		Data:       map[string][]byte{"token": []byte("somebody's")},
	}
	hub.create(t, secret)
	r := run(t, joinArgs("foreign")...)
	member.finishNamespace(t, systemNamespace)
	want := `error: Secret karmada-cluster/foreign stands in the hub HUB ` +
		`and was not made by Namesake (it lacks the label karmada.io/system=true)
hint:  remove or rename it, or give it that label if it is ours after all
`
	if diff := cmp.Diff(want, steady(r.err)); r.code != 1 || diff != "" {
		t.Errorf("exit code %d; stderr (-want +got):\n%s", r.code, diff)
	}
	if !strings.Contains(r.out, "took back what this call had made (6 objects)") {
		t.Errorf("stdout does not say what was taken back:\n%s", r.out)
	}
	if left := leftInMember(t); len(left) > 0 {
		t.Errorf("left in the member: %v", left)
	}
	if got := string(hubSecret(t, "foreign").Data["token"]); got != "somebody's" {
		t.Error("the foreign Secret has changed")
	}
}

// TestJoinTakesBack lets the first, second, third … write fail, each as a
// refusal and as a lost answer, until none is left to fail: nothing may stay.
func TestJoinTakesBack(t *testing.T) {
	needServers(t)
	for _, mode := range []faultMode{refuse, loseAnswer} {
		for n := 1; ; n++ {
			faults := &faults{mode: mode, at: n}
			hubProxy, memberProxy := proxy(t, &hub, faults), proxy(t, &member, faults)
			r := run(t, joinArgs("fault", "--kubeconfig", hubProxy, "--cluster-kubeconfig", memberProxy)...)
			member.finishNamespace(t, systemNamespace)
			if !faults.happened() {
				if n < 8 {
					t.Errorf("%v: only %d writes were seen", mode, n-1)
				}
				if r.code != 0 {
					t.Errorf("%v: without a fault: %s", mode, r)
				}
				succeed(t, "unjoin", "fault", "--cluster-kubeconfig", member.kubeconfig)
				member.finishNamespace(t, systemNamespace)
				break
			}
			left := append(leftInMember(t), leftOnHub(t, "fault")...)
			if r.code == 0 {
				// Only the answer about the Cluster may get lost without harm.
				if mode != loseAnswer || !slices.Contains(left, "Cluster/fault") {
					t.Errorf("%v write %d (%s): exit code 0 with %v", mode, n, faults.what, left)
				}
				succeed(t, "unjoin", "fault", "--cluster-kubeconfig", member.kubeconfig)
				member.finishNamespace(t, systemNamespace)
				continue
			}
			if len(left) > 0 {
				t.Fatalf("%v write %d (%s): left behind: %v\n%s", mode, n, faults.what, left, r)
			}
			if !strings.HasPrefix(r.err, "error: ") || strings.Count(r.err, "\n") > 2 {
				t.Errorf("%v write %d (%s): stderr is no error of a line and a hint:\n%s", mode, n, faults.what, r.err)
			}
		}
	}
}

func TestJoinInterruptedTakesBack(t *testing.T) {
	needServers(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	// The interrupt comes while the member makes the Secret of the token.
	kubeconfig := proxy(t, &member, &faults{onRequest: func(r *http.Request) {
		if r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/secrets") {
			cancel()
		}
	}})
	r := runUntil(ctx, joinArgs("interrupted", "--cluster-kubeconfig", kubeconfig)...)
	member.finishNamespace(t, systemNamespace)
	if r.code != 1 || !strings.HasPrefix(r.err, "error: interrupted: ") {
		t.Errorf("got %s\nwant exit code 1 and an error that says: interrupted", r)
	}
	if left := append(leftInMember(t), leftOnHub(t, "interrupted")...); len(left) > 0 {
		t.Errorf("left behind: %v\n%s", left, r)
	}
}

func TestJoinWaitsForANamespaceThatIsGoing(t *testing.T) {
	needServers(t)
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: systemNamespace}}
	if err := member.client.Create(t.Context(), namespace); err != nil {
		t.Fatal(err)
	}
	if err := member.client.Delete(t.Context(), namespace); err != nil {
		t.Fatal(err)
	}
	leaveAtEnd(t, "patient")
	// The join looks at the namespace for the first time, and only then it goes.
	seen := make(chan struct{}, 1)
	kubeconfig := proxy(t, &member, &faults{onRequest: func(r *http.Request) {
		if r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/namespaces/"+systemNamespace) {
			select {
			case seen <- struct{}{}:
			default:
			}
		}
	}})
	done := make(chan result, 1)
	go func() { done <- run(t, joinArgs("patient", "--cluster-kubeconfig", kubeconfig)...) }()
	<-seen
	member.finishNamespace(t, systemNamespace)
	if r := <-done; r.code != 0 {
		t.Error(r)
	}
}
