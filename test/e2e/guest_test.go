package e2e

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	clusterv1alpha1 "github.com/namesake-io/namesake/api/cluster/v1alpha1"
	networkingv1alpha1 "github.com/namesake-io/namesake/api/networking/v1alpha1"
)

// guest is an API server that is no part of the fleet, and how it is joined: by
// hand, since namesakectl would see what is missing there.
type guest struct {
	client.Client
	t       *testing.T
	f       *fleet
	secret  *corev1.Secret
	cluster *clusterv1alpha1.Cluster
}

// startGuest starts an API server with flags of its own and joins it until the test
// ends.
func startGuest(t *testing.T, f *fleet, name string, flags map[string]string) client.Client {
	t.Helper()
	g := newGuest(t, f, name, flags)
	t.Cleanup(func() {
		cluster := &clusterv1alpha1.Cluster{}
		if err := f.hub.Get(context.WithoutCancel(t.Context()), client.ObjectKeyFromObject(g.cluster), cluster); err == nil && t.Failed() {
			t.Logf("cluster %s: %+v", name, cluster.Status)
		}
		g.leave()
		waitForgotten(t, f, name)
	})
	g.join()
	return g.Client
}

// newGuest starts an API server with flags of its own.
func newGuest(t *testing.T, f *fleet, name string, flags map[string]string) *guest {
	t.Helper()
	env := &envtest.Environment{BinaryAssetsDirectory: filepath.Join(string(f.programs), "assets")}
	for flag, value := range flags {
		env.ControlPlane.GetAPIServer().Configure().Append(flag, value)
	}
	config, err := env.Start()
	t.Cleanup(func() {
		if err := env.Stop(); err != nil {
			t.Error(err)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	scheme, err := newScheme()
	if err != nil {
		t.Fatal(err)
	}
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "namesake"}}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "namesake"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: account.Namespace, Name: account.Name}},
	}
	token := &authenticationv1.TokenRequest{}
	if err := errors.Join(c.Create(t.Context(), account), c.Create(t.Context(), binding),
		c.SubResource("token").Create(t.Context(), account, token)); err != nil {
		t.Fatal(err)
	}
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: clusterv1alpha1.SystemNamespace, Name: name},
		Data:       map[string][]byte{"token": []byte(token.Status.Token), "caBundle": config.CAData},
	}
	return &guest{Client: c, t: t, f: f, secret: secret, cluster: &clusterv1alpha1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: clusterv1alpha1.ClusterSpec{
			SyncMode: clusterv1alpha1.Push, APIEndpoint: strings.TrimSuffix(config.Host, "/"),
			SecretRef: &clusterv1alpha1.LocalSecretReference{Namespace: secret.Namespace, Name: secret.Name},
		},
	}}
}

// join makes the guest a member.
func (g *guest) join() {
	g.t.Helper()
	for _, obj := range []client.Object{g.secret.DeepCopy(), g.cluster.DeepCopy()} {
		if err := g.f.hub.Create(g.t.Context(), obj); err != nil {
			g.t.Fatal(err)
		}
	}
}

// rename gives the guest another name, for when it joins the next time.
func (g *guest) rename(name string) {
	g.secret.Name, g.cluster.Name, g.cluster.Spec.SecretRef.Name = name, name, name
}

// leave makes it none, and waits until it is. The Secret goes last: with it the hub
// cleans up.
func (g *guest) leave() {
	g.t.Helper()
	ctx := context.WithoutCancel(g.t.Context())
	cluster := g.cluster.DeepCopy()
	if err := client.IgnoreNotFound(g.f.hub.Delete(ctx, cluster)); err != nil {
		g.t.Error(err)
	}
	within(g.t, patience, "the cluster has left", func(ctx context.Context) error {
		err := g.f.hub.Get(ctx, client.ObjectKeyFromObject(cluster), cluster)
		if err == nil {
			err = errors.New("it is there")
		}
		return client.IgnoreNotFound(err)
	})
	if err := client.IgnoreNotFound(g.f.hub.Delete(ctx, g.secret.DeepCopy())); err != nil {
		g.t.Error(err)
	}
}

// C34: a member does not serve EndpointSlices. That is told, and what help there
// is; the others are served as ever.
func TestNoEndpointSlices_C34(t *testing.T) {
	f := alone(t)
	guest := startGuest(t, f, "guest", map[string]string{"runtime-config": "discovery.k8s.io/v1=false", "endpoint-reconciler-type": "none"})
	s := servedEverywhere(t, f, "foo")
	mcs := s.createMCS("foo", from("member1", "member2", "guest"), to("member2", "member3", "guest"))
	s.waitSpread(spread{service: "foo", providers: []string{"member1", "member2"}, consumers: []string{"member2", "member3"}})
	s.waitService("foo", theThree...)
	s.waitDescribed("foo", "api_missing")
	s.waitEvent(mcs.UID, networkingv1alpha1.EventAPIIncompatible, "discovery.k8s.io/v1")

	// A consumer that lacks them, and gives nothing, says so as well.
	s.changeMCS("foo", from("member1", "member2"))
	s.waitCluster("foo", "guest", networkingv1alpha1.ReasonAPIIncompatible)
	s.waitCondition("foo", networkingv1alpha1.ConditionEndpointSliceCollected, networkingv1alpha1.ReasonEndpointSliceCollectedSucceed, "2 of 2")

	s.changeMCS("foo", to("member2", "member3"))
	s.waitReady("foo")
	s.eventually("no Service is left in the guest", func(ctx context.Context) error {
		err := guest.Get(ctx, client.ObjectKey{Namespace: s.ns, Name: "foo"}, &corev1.Service{})
		if err == nil {
			err = errors.New("it is there")
		}
		return client.IgnoreNotFound(err)
	})
}

// labelled selects clusters by one label.
func labelled(key, value string) []networkingv1alpha1.ClusterSelector {
	return []networkingv1alpha1.ClusterSelector{{LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{key: value}}}}
}

// C27: clusters are selected by labels. What a Cluster is labelled with takes
// effect at once, in both directions.
func TestLabels_C27(t *testing.T) {
	f := together(t)
	s := servedEverywhere(t, f, "foo")
	gives, gets := "e2e.namesake.io/gives", "e2e.namesake.io/gets"
	label := func(member, key string, on bool) {
		t.Helper()
		cluster := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: member}}
		s.change(f.hub, cluster, func() {
			if cluster.Labels == nil {
				cluster.Labels = map[string]string{}
			}
			delete(cluster.Labels, key)
			if on {
				cluster.Labels[key] = s.ns
			}
		})
	}
	for _, member := range f.names() {
		t.Cleanup(func() {
			cluster := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: member}}
			patch := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"labels":{"`+gives+`":null,"`+gets+`":null}}}`))
			if err := f.hub.Patch(context.WithoutCancel(t.Context()), cluster, patch); err != nil {
				t.Error(err)
			}
		})
	}
	label("member1", gives, true)
	s.createMCS("foo", func(mcs *networkingv1alpha1.MultiClusterService) {
		mcs.Spec.ProviderClusters, mcs.Spec.ConsumerClusters = labelled(gives, s.ns), labelled(gets, s.ns)
	})
	s.waitCondition("foo", networkingv1alpha1.ConditionReady, networkingv1alpha1.ReasonClusterNotFound, "no joined cluster is selected as a consumer")

	label("member2", gets, true)
	sp := spread{service: "foo", providers: []string{"member1"}, consumers: []string{"member2"}}
	s.waitSpread(sp)
	s.waitCollected(sp)
	s.waitService("foo", "member1", "member2")
	s.waitReady("foo")

	label("member3", gives, true)
	label("member3", gets, true)
	sp = spread{service: "foo", providers: []string{"member1", "member3"}, consumers: []string{"member2", "member3"}}
	s.waitSpreadWithin(soon, sp)
	s.waitCollected(sp)
	s.waitService("foo", theThree...)

	label("member1", gives, false)
	label("member2", gets, false)
	sp = spread{service: "foo", providers: []string{"member3"}, consumers: []string{"member3"}}
	s.waitSpreadWithin(soon, sp)
	s.waitCollected(sp)
	s.waitNoService("foo", "member1")
	s.waitNoService("foo", "member2")
	s.waitService("foo", "member3")
	s.waitReady("foo")
}

// C27: a member joins while a wish for all stands. It becomes provider and
// consumer at once.
func TestJoinedLater_C27(t *testing.T) {
	f := alone(t)
	comeBack(t, f, "member3")
	_, err := f.ctl(t.Context(), "unjoin", "member3", "--cluster-kubeconfig", f.hubPath("member3"))
	if err != nil {
		t.Fatal(err)
	}
	s := f.newSite(t, nil)
	s.createService("foo", selectorless)
	for _, member := range []string{"member1", "member2"} {
		s.putSlice(member, "foo", "foo-a")
	}
	s.createNamespace("member3")
	s.putSlice("member3", "foo", "foo-a")
	s.createMCS("foo")
	before := allBut(f, "member3")
	s.waitSpread(spread{service: "foo", providers: before, consumers: before})
	s.waitReady("foo")

	join(t, f, "member3")
	s.waitSpreadWithin(soon, s.all("foo"))
	s.waitCollected(s.all("foo"))
	s.waitService("foo", f.names()...)
	s.waitReady("foo")
}
