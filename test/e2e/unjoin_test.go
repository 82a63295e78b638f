package e2e

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/namesake-io/namesake/api/cluster/v1alpha1"
)

// forceLimit is how long an unjoin by force of a dead member may take.
const forceLimit = 30 * time.Second

// C29: a live member leaves. Nothing of ours is left in it, nothing of it
// elsewhere; under the same name it can come back.
func TestUnjoin_C29(t *testing.T) {
	f := alone(t)
	s := servedEverywhere(t, f, "foo", "bar")
	for _, name := range []string{"foo", "bar"} {
		s.createMCS(name)
		s.waitService(name, f.names()...)
	}
	s.waitSpread(s.all("foo"), s.all("bar"))
	s.waitReady("foo")
	comeBack(t, f, "member3")

	start := time.Now()
	_, err := f.ctl(t.Context(), "unjoin", "member3", "--cluster-kubeconfig", f.hubPath("member3"))
	s.must(err)
	t.Logf("unjoined in %s", time.Since(start).Round(time.Millisecond))
	s.must(checkClean(t.Context(), s, "member3"))
	for _, member := range []string{"member1", "member2"} {
		_, dispatched, err := s.slicesIn(t.Context(), member, "foo")
		s.must(err)
		for name := range dispatched {
			if strings.HasPrefix(name, "member3-") {
				t.Errorf("%s still has slice %s", member, name)
			}
		}
	}
	waitForgotten(t, f, "member3")
	own := &discoveryv1.EndpointSlice{}
	if err := f.members["member3"].Get(t.Context(), client.ObjectKey{Namespace: s.ns, Name: "foo-a"}, own); err != nil {
		t.Errorf("its own slice: %v", err)
	}
	s.waitReady("foo")

	join(t, f, "member3")
	s.waitSpread(s.all("foo"), s.all("bar"))
	s.waitService("foo", f.names()...)
	s.waitCollected(s.all("foo"), s.all("bar"))
	s.waitReady("foo")
}

// C29: a dead member leaves by force, in bounded time, and can come back.
func TestUnjoinDeadMember_C29(t *testing.T) {
	f := alone(t)
	s := servedEverywhere(t, f, "foo")
	s.createMCS("foo")
	s.waitSpread(s.all("foo"))
	s.waitService("foo", f.names()...)
	comeBack(t, f, "member3")

	off := f.fault(t, "member3", apiDown)
	start := time.Now()
	said, err := f.ctl(t.Context(), "unjoin", "member3", "--force")
	took := time.Since(start)
	s.must(err)
	t.Logf("unjoined by force in %s:\n%s", took.Round(time.Millisecond), said)
	if took > forceLimit {
		t.Errorf("%s is more than %s", took, forceLimit)
	}
	// At least ours: other tests may have left services of theirs.
	for _, want := range []string{` [1-9]\d* Service \(`, `; ([2-9]|[1-9]\d+) EndpointSlice \(`, `kubectl delete endpointslices `} {
		if !regexp.MustCompile(want).MatchString(said) {
			t.Errorf("it does not say %q", want)
		}
	}
	waitForgotten(t, f, "member3")
	for _, member := range []string{"member1", "member2"} {
		s.eventually("nothing of member3 is in "+member, func(ctx context.Context) error {
			_, dispatched, err := s.slicesIn(ctx, member, "foo")
			if err == nil && dispatched["member3-foo-a"] != nil {
				err = errors.New("its slice is")
			}
			return err
		})
	}

	off()
	join(t, f, "member3")
	s.waitSpread(s.all("foo"))
	s.waitService("foo", f.names()...)
	s.waitReady("foo")
}

// join joins a member over the path that faults can cut, or registers it and
// starts its agent. flags are for a member that is joined.
func join(t *testing.T, f *fleet, member string, flags ...string) {
	t.Helper()
	if slices.Contains(f.pull, member) {
		f.register(t, member)
		return
	}
	args := append([]string{member, "--cluster-kubeconfig", f.hubPath(member)}, flags...)
	if _, err := f.ctl(context.WithoutCancel(t.Context()), "join", args...); err != nil {
		t.Fatal(err)
	}
}

// register registers a member by a token of the hub and starts its agent anew.
func (f *fleet) register(t *testing.T, member string) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	token := filepath.Join(t.TempDir(), "token")
	before := filepath.Join(f.dir, "pki", member+"-token.kubeconfig")
	hub, err := clientcmd.LoadFromFile(before)
	if err != nil {
		t.Fatal(err)
	}
	args := []string{"create", member, "--write", token, "--hub-server", hub.Clusters[hub.Contexts[hub.CurrentContext].Cluster].Server}
	if _, err := f.ctl(ctx, "token", args...); err != nil {
		t.Fatal(err)
	}
	if _, err := f.run(ctx, "namesakectl", "register", member, "--hub-kubeconfig", token,
		"--cluster-kubeconfig", f.members[member].kubeconfig,
		"--agent-kubeconfig", filepath.Join(f.dir, "pki", member+"-agent.kubeconfig")); err != nil {
		t.Fatal(err)
	}
	f.sandbox(t, "restart", member+"-agent")
}

// comeBack joins a member again at the end of the test, if it has not been.
func comeBack(t *testing.T, f *fleet, member string) {
	t.Cleanup(func() {
		err := f.hub.Get(context.WithoutCancel(t.Context()), client.ObjectKey{Name: member}, &clusterv1alpha1.Cluster{})
		if apierrors.IsNotFound(err) {
			join(t, f, member)
		}
	})
}

// checkClean finds what is left of the hub in a member.
func checkClean(ctx context.Context, s *site, member string) error {
	c := s.members[member]
	left := &discoveryv1.EndpointSliceList{}
	if err := c.List(ctx, left); err != nil {
		return err
	}
	for i := range left.Items {
		if s.isDispatched(&left.Items[i]) {
			return fmt.Errorf("slice %s/%s is left", left.Items[i].Namespace, left.Items[i].Name)
		}
	}
	services := &corev1.ServiceList{}
	if err := c.List(ctx, services, client.MatchingLabels{"karmada.io/managed": "true"}); err != nil {
		return err
	}
	for i := range services.Items {
		return fmt.Errorf("Service %s/%s is left", services.Items[i].Namespace, services.Items[i].Name)
	}
	for _, list := range []client.ObjectList{
		&rbacv1.ClusterRoleList{}, &rbacv1.ClusterRoleBindingList{}, &corev1.ServiceAccountList{}, &corev1.SecretList{},
	} {
		if err := c.List(ctx, list, client.MatchingLabels{"karmada.io/system": "true"}); err != nil {
			return err
		}
		if n := meta.LenList(list); n > 0 {
			return fmt.Errorf("%d of %T are left", n, list)
		}
	}
	err := c.Get(ctx, client.ObjectKey{Name: clusterv1alpha1.SystemNamespace}, &corev1.Namespace{})
	if err == nil {
		accounts := &corev1.ServiceAccountList{}
		if err := c.List(ctx, accounts, client.InNamespace(clusterv1alpha1.SystemNamespace)); err != nil {
			return err
		}
		for i := range accounts.Items {
			if accounts.Items[i].Name != "default" {
				return fmt.Errorf("account %s is left", accounts.Items[i].Name)
			}
		}
		return nil
	}
	return client.IgnoreNotFound(err)
}

// waitForgotten waits until the hub has nothing of a member.
func waitForgotten(t *testing.T, f *fleet, member string) {
	t.Helper()
	within(t, patience, "the hub has forgotten "+member, func(ctx context.Context) error {
		for _, obj := range []client.Object{
			&clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: member}},
			&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: clusterv1alpha1.ExecutionNamespace(member)}},
			&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: clusterv1alpha1.SystemNamespace, Name: member}},
		} {
			if err := f.hub.Get(ctx, client.ObjectKeyFromObject(obj), obj); !apierrors.IsNotFound(err) {
				return fmt.Errorf("%T %s is there (%w)", obj, obj.GetName(), err)
			}
		}
		return nil
	})
}
