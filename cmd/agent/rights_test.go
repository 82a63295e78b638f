package main

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/namesake-io/namesake/api/cluster/v1alpha1"
	networkingv1alpha1 "github.com/namesake-io/namesake/api/networking/v1alpha1"
	workv1alpha1 "github.com/namesake-io/namesake/api/work/v1alpha1"
	"github.com/namesake-io/namesake/internal/hub"
)

// as returns a client of the hub with a token.
func (s *site) as(t *testing.T, token string) client.Client {
	t.Helper()
	config := rest.AnonymousClientConfig(s.config)
	config.BearerToken, config.QPS = token, -1
	scheme, err := hub.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// credential is what a member's agent calls the hub with.
func (s *site) credential(t *testing.T) string {
	t.Helper()
	secret := &corev1.Secret{}
	key := client.ObjectKey{Namespace: clusterv1alpha1.SystemNamespace, Name: clusterv1alpha1.AgentName}
	if err := s.Get(t.Context(), key, secret); err != nil {
		t.Fatal(err)
	}
	return string(secret.Data[clusterv1alpha1.SecretTokenKey])
}

// at is where an object is.
func at(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name}
}

// attempt is one thing to try.
type attempt struct {
	what string
	do   func(context.Context, client.Client) error
}

func getting(obj client.Object) attempt {
	return attempt{"get " + nameOf(obj), func(ctx context.Context, c client.Client) error {
		return c.Get(ctx, client.ObjectKeyFromObject(obj), obj)
	}}
}

func listing(list client.ObjectList, opts ...client.ListOption) attempt {
	return attempt{fmt.Sprintf("list %T %v", list, opts), func(ctx context.Context, c client.Client) error { return c.List(ctx, list, opts...) }}
}

func creating(obj client.Object) attempt {
	return attempt{"create " + nameOf(obj), func(ctx context.Context, c client.Client) error { return c.Create(ctx, obj) }}
}

func deleting(obj client.Object) attempt {
	return attempt{"delete " + nameOf(obj), func(ctx context.Context, c client.Client) error { return c.Delete(ctx, obj) }}
}

func patching(obj client.Object, patch string) attempt {
	return attempt{"patch " + nameOf(obj) + " " + patch, func(ctx context.Context, c client.Client) error {
		return c.Patch(ctx, obj, client.RawPatch(types.MergePatchType, []byte(patch)))
	}}
}

func patchingStatus(obj client.Object, patch string) attempt {
	return attempt{"patch status of " + nameOf(obj), func(ctx context.Context, c client.Client) error {
		return c.Status().Patch(ctx, obj, client.RawPatch(types.MergePatchType, []byte(patch)))
	}}
}

func askingToken(namespace, account string) attempt {
	return attempt{"token of " + namespace + "/" + account, func(ctx context.Context, c client.Client) error {
		return c.SubResource("token").Create(ctx, &corev1.ServiceAccount{ObjectMeta: at(namespace, account)}, &authenticationv1.TokenRequest{})
	}}
}

func applying(apiVersion, kind, namespace, name string) attempt {
	return attempt{"apply " + kind + " " + namespace + "/" + name, func(ctx context.Context, c client.Client) error {
		obj := &unstructured.Unstructured{Object: map[string]any{"apiVersion": apiVersion, "kind": kind, "spec": map[string]any{}}}
		obj.SetNamespace(namespace)
		obj.SetName(name)
		return c.Apply(ctx, client.ApplyConfigurationFromUnstructured(obj), client.FieldOwner("test"))
	}}
}

func nameOf(obj client.Object) string {
	return fmt.Sprintf("%T %s/%s", obj, obj.GetNamespace(), obj.GetName())
}

// The agent of b may do what it has to in what is b's, and nothing else on the hub.
func TestAgentMayDoNothingElse(t *testing.T) {
	h, members := startSites(t, "b")
	h.create(t,
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: clusterv1alpha1.SystemNamespace}},
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "karmada-es-a"}},
		&clusterv1alpha1.Cluster{ObjectMeta: at("", "a"), Spec: clusterv1alpha1.ClusterSpec{SyncMode: clusterv1alpha1.Pull, ID: "a"}},
		&corev1.Secret{ObjectMeta: at(clusterv1alpha1.SystemNamespace, "a")},
	)
	register(t, h, members[0])
	agent := h.as(t, members[0].credential(t))

	work := func(namespace string) *workv1alpha1.Work {
		return &workv1alpha1.Work{ObjectMeta: at(namespace, "w")}
	}
	own := &clusterv1alpha1.Cluster{ObjectMeta: at("", "b")}
	for _, a := range []attempt{
		creating(work("karmada-es-b")),
		listing(&workv1alpha1.WorkList{}, client.InNamespace("karmada-es-b")),
		patchingStatus(work("karmada-es-b"), `{"status":{"conditions":[]}}`),
		deleting(work("karmada-es-b")),
		getting(own),
		listing(&clusterv1alpha1.ClusterList{}, client.MatchingFields{"metadata.name": "b"}),
		patchingStatus(own, `{"status":{"kubernetesVersion":"v1"}}`),
		applying("coordination.k8s.io/v1", "Lease", clusterv1alpha1.SystemNamespace, "b"),
		applying("coordination.k8s.io/v1", "Lease", clusterv1alpha1.SystemNamespace, "b"),
		askingToken("karmada-es-b", clusterv1alpha1.AgentName),
	} {
		if err := a.do(t.Context(), agent); err != nil {
			t.Errorf("the agent cannot %s: %v", a.what, err)
		}
	}

	other := &clusterv1alpha1.Cluster{ObjectMeta: at("", "a")}
	system := clusterv1alpha1.SystemNamespace
	for _, a := range []attempt{
		// What is another member's.
		listing(&workv1alpha1.WorkList{}),
		listing(&workv1alpha1.WorkList{}, client.InNamespace("karmada-es-a")),
		getting(work("karmada-es-a")), creating(work("karmada-es-a")), deleting(work("karmada-es-a")),
		patching(work("karmada-es-a"), `{}`), patchingStatus(work("karmada-es-a"), `{}`),
		getting(other), patchingStatus(other, `{"status":{}}`), deleting(other),
		listing(&clusterv1alpha1.ClusterList{}),
		applying("coordination.k8s.io/v1", "Lease", system, "a"),
		askingToken("karmada-es-a", clusterv1alpha1.AgentName),
		// What decides of itself: labels select providers.
		patching(&clusterv1alpha1.Cluster{ObjectMeta: at("", "b")}, `{"metadata":{"labels":{"role":"provider"}}}`),
		patching(&clusterv1alpha1.Cluster{ObjectMeta: at("", "b")}, `{"spec":{"taints":[]}}`),
		creating(&clusterv1alpha1.Cluster{ObjectMeta: at("", "c"), Spec: clusterv1alpha1.ClusterSpec{SyncMode: clusterv1alpha1.Pull}}),
		applying("cluster.karmada.io/v1alpha1", "Cluster", "", "b"), applying("cluster.karmada.io/v1alpha1", "Cluster", "", "c"),
		deleting(&clusterv1alpha1.Cluster{ObjectMeta: at("", "b")}),
		// What is the hub's.
		applying("coordination.k8s.io/v1", "Lease", system, "namesake-controller-manager"),
		getting(&coordinationv1.Lease{ObjectMeta: at(system, "namesake-controller-manager")}),
		creating(&coordinationv1.Lease{ObjectMeta: at(system, "b2")}),
		listing(&coordinationv1.LeaseList{}, client.InNamespace(system)),
		getting(&corev1.Secret{ObjectMeta: at(system, "a")}), listing(&corev1.SecretList{}, client.InNamespace(system)),
		getting(&corev1.Secret{ObjectMeta: at("karmada-es-b", "x")}), creating(&corev1.Secret{ObjectMeta: at("karmada-es-b", "x")}),
		listing(&corev1.SecretList{}), listing(&corev1.ConfigMapList{}), listing(&corev1.NamespaceList{}),
		creating(&corev1.Namespace{ObjectMeta: at("", "karmada-es-c")}), deleting(&corev1.Namespace{ObjectMeta: at("", "karmada-es-b")}),
		listing(&networkingv1alpha1.MultiClusterServiceList{}), creating(wish("foo")),
		listing(&corev1.ServiceList{}), listing(&discoveryv1.EndpointSliceList{}),
		creating(&corev1.Event{ObjectMeta: at(system, "e")}), creating(&corev1.Event{ObjectMeta: at("default", "e")}),
		// What would give it more.
		askingToken("karmada-es-b", "namesake-register"), askingToken("karmada-es-b", "default"), askingToken("kube-system", "default"),
		creating(&corev1.ServiceAccount{ObjectMeta: at("karmada-es-b", "x")}),
		creating(&rbacv1.RoleBinding{ObjectMeta: at("karmada-es-b", "x"), RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"}}),
		listing(&rbacv1.RoleList{}, client.InNamespace("karmada-es-b")),
		creating(&authorizationv1.SubjectAccessReview{}),
	} {
		if err := a.do(t.Context(), agent); !apierrors.IsForbidden(err) {
			t.Errorf("the agent may %s: error %v, want that it is forbidden", a.what, err)
		}
	}
	impersonating := rest.AnonymousClientConfig(h.config)
	impersonating.BearerToken, impersonating.Impersonate.UserName = members[0].credential(t), "system:admin"
	c, err := client.New(impersonating, client.Options{Scheme: h.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.List(t.Context(), &corev1.SecretList{}); !apierrors.IsForbidden(err) {
		t.Errorf("the agent may impersonate: error %v", err)
	}
}

// A token registers the cluster that it was made for, once, and does nothing else.
func TestTokenRegistersOnce(t *testing.T) {
	h, members := startSites(t, "b")
	file := filepath.Join(t.TempDir(), "token")
	h.ctl(t, "token", "create", "b", "--write", file)
	config, err := clientcmd.BuildConfigFromFlags("", file)
	if err != nil {
		t.Fatal(err)
	}
	if said := h.ctl(t, "token", "list"); !strings.Contains(said, "b ") {
		t.Errorf("token list says:\n%s", said)
	}
	registrar := h.as(t, config.BearerToken)
	for _, a := range []attempt{
		creating(&clusterv1alpha1.Cluster{ObjectMeta: at("", "c"), Spec: clusterv1alpha1.ClusterSpec{SyncMode: clusterv1alpha1.Pull}}),
		applying("cluster.karmada.io/v1alpha1", "Cluster", "", "c"),
		listing(&clusterv1alpha1.ClusterList{}), listing(&workv1alpha1.WorkList{}, client.InNamespace("karmada-es-b")),
		listing(&corev1.SecretList{}), listing(&corev1.NamespaceList{}),
		askingToken("karmada-es-b", "namesake-register"),
		deleting(&corev1.Secret{ObjectMeta: at("karmada-es-b", "x")}),
	} {
		if err := a.do(t.Context(), registrar); !apierrors.IsForbidden(err) {
			t.Errorf("the token allows to %s: error %v", a.what, err)
		}
	}
	refused := func(want string, args ...string) {
		t.Helper()
		code, said := h.try(t, args...)
		if code == 0 || !strings.Contains(said, want) {
			t.Errorf("%s: exit code %d, want a refusal that has %q:\n%s", strings.Join(args, " "), code, want, said)
		}
		if strings.Contains(said, config.BearerToken) {
			t.Errorf("%s tells the token", strings.Join(args, " "))
		}
	}
	refused("for another name", "register", "c", "--hub-kubeconfig", file, "--cluster-kubeconfig", members[0].kubeconfig)
	h.ctl(t, "register", "b", "--hub-kubeconfig", file, "--cluster-kubeconfig", members[0].kubeconfig)
	// The hub's API server may know a token by heart for ten seconds.
	eventually(t, "the token is used up", func(ctx context.Context) string {
		if err := registrar.Get(ctx, client.ObjectKey{Name: "b"}, &clusterv1alpha1.Cluster{}); !apierrors.IsUnauthorized(err) {
			return fmt.Sprintf("error %v", err)
		}
		return ""
	})
	refused("has been used", "register", "b", "--hub-kubeconfig", file, "--cluster-kubeconfig", members[0].kubeconfig)
	if said := h.ctl(t, "token", "list"); strings.Contains(said, "b ") {
		t.Errorf("token list still says:\n%s", said)
	}

	// A second one for that name renews the credential, of the same cluster only.
	before := members[0].credential(t)
	h.ctl(t, "token", "create", "b", "--write", file)
	refused("another cluster", "register", "b", "--hub-kubeconfig", file, "--cluster-kubeconfig", h.kubeconfig)
	h.ctl(t, "register", "b", "--hub-kubeconfig", file, "--cluster-kubeconfig", members[0].kubeconfig)
	if members[0].credential(t) == before {
		t.Error("the credential is the one of before")
	}
	h.ctl(t, "token", "create", "d", "--write", file)
	h.ctl(t, "token", "delete", "d") // before anybody has used it
	refused("does not take the token", "register", "d", "--hub-kubeconfig", file, "--cluster-kubeconfig", members[0].kubeconfig)
	gone(t, h, &rbacv1.ClusterRole{ObjectMeta: at("", "namesake-agent-d")})
	refused("no token", "token", "delete", "d")
	refused("own lease", "token", "create", "namesake-controller-manager")
}

// What a member says of services that it does not provide, and of namespaces that
// are not the service's, goes nowhere.
func TestMemberCannotPose(t *testing.T) {
	h, members := startSites(t, "a", "b")
	a, b := members[0], members[1]
	runHub(t, h)
	h.create(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: clusterv1alpha1.SystemNamespace}})
	h.ctl(t, "join", "a", "--cluster-kubeconfig", a.kubeconfig, "--token-wait", "100ms")
	register(t, h, b) // no agent runs: the test is a bad one
	agent := h.as(t, b.credential(t))
	shop(t, h, "foo", "bar")
	providedBy := func(name networkingv1alpha1.ClusterName) func(*networkingv1alpha1.MultiClusterServiceSpec) {
		return func(spec *networkingv1alpha1.MultiClusterServiceSpec) {
			spec.ProviderClusters = []networkingv1alpha1.ClusterSelector{{Name: name}}
		}
	}
	h.create(t, wish("foo", providedBy("a")), wish("bar", providedBy("b")))
	eventually(t, "namespace in a", func(ctx context.Context) string {
		if err := a.Get(ctx, client.ObjectKey{Name: "shop"}, &corev1.Namespace{}); err != nil {
			return err.Error()
		}
		return ""
	})

	slice := func(namespace, service, name string, edits ...func(*discoveryv1.EndpointSlice)) *discoveryv1.EndpointSlice {
		out := providerSlice(name, "10.9.0.1")
		out.TypeMeta = metav1.TypeMeta{APIVersion: "discovery.k8s.io/v1", Kind: "EndpointSlice"}
		out.Namespace, out.Labels[discoveryv1.LabelServiceName] = namespace, service
		for _, edit := range edits {
			edit(out)
		}
		return out
	}
	collected := func(work, service string, holds *discoveryv1.EndpointSlice) {
		t.Helper()
		raw, err := json.Marshal(holds)
		if err != nil {
			t.Fatal(err)
		}
		suspended := true
		obj := &workv1alpha1.Work{ObjectMeta: at("karmada-es-b", work)}
		obj.Labels = map[string]string{
			networkingv1alpha1.NameKey: service, networkingv1alpha1.NamespaceKey: "shop",
			networkingv1alpha1.CollectedByLabel: networkingv1alpha1.ClaimedByMultiClusterService,
		}
		obj.Spec.SuspendDispatching = &suspended
		obj.Spec.Workload.Manifests = []workv1alpha1.Manifest{{RawExtension: runtime.RawExtension{Raw: raw}}}
		if err := agent.Create(t.Context(), obj); err != nil {
			t.Fatal(err)
		}
	}
	collected("not-its-service", "foo", slice("shop", "foo", "foo-b"))
	collected("another-service", "bar", slice("shop", "foo", "bar-1"))
	collected("another-namespace", "bar", slice("kube-system", "bar", "bar-2"))
	collected("a-dispatched-one", "bar", slice("shop", "bar", "bar-3", func(s *discoveryv1.EndpointSlice) {
		s.Annotations = map[string]string{networkingv1alpha1.ProvisionClusterAnnotation: "a"}
	}))
	collected("not-wished-for", "nobody", slice("shop", "nobody", "nobody-1"))
	a.create(t, providerSlice("foo-a", "10.0.0.1"))
	// What it does provide arrives, and nothing else does.
	collected("its-own", "bar", slice("shop", "bar", "bar-4"))
	a.holds(t, "b-bar-4", "foo-a")
	tick(t, time.Second)
	a.holds(t, "b-bar-4", "foo-a")
	list := &discoveryv1.EndpointSliceList{}
	if err := a.List(t.Context(), list, client.MatchingLabels{discoveryv1.LabelManagedBy: networkingv1alpha1.DispatchedManagedBy}); err != nil {
		t.Fatal(err)
	}
	if len(list.Items) != 1 {
		t.Errorf("a holds %d dispatched slices in all, want 1", len(list.Items))
	}
}
