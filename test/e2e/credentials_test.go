package e2e

import (
	"context"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/namesake-io/namesake/api/cluster/v1alpha1"
)

// waitTold waits until a Cluster's condition has this reason, and returns when it
// was seen.
func waitTold(t *testing.T, f *fleet, name, condition, reason string) time.Time {
	t.Helper()
	within(t, patience, fmt.Sprintf("%s of %s says %s", condition, name, reason), func(ctx context.Context) error {
		cluster := &clusterv1alpha1.Cluster{}
		if err := f.hub.Get(ctx, client.ObjectKey{Name: name}, cluster); err != nil {
			return err
		}
		got := meta.FindStatusCondition(cluster.Status.Conditions, condition)
		if got == nil || got.Reason != reason {
			return fmt.Errorf("it is %+v", got)
		}
		return nil
	})
	return time.Now()
}

// C30: the token of a member is renewed, and the old one revoked, while changes
// come from it and go to it. Each arrives, and nothing is withdrawn.
func TestRotatedToken_C30(t *testing.T) {
	f := alone(t)
	s := servedEverywhere(t, f, "foo")
	s.createMCS("foo")
	s.waitSpread(s.all("foo"))
	seen := s.watch(f.members["member2"], &discoveryv1.EndpointSliceList{})
	for range 3 {
		join(t, f, "member1")
		s.changeSlice("member1", "foo-a")
		s.changeSlice("member2", "foo-a")
		s.waitSpreadWithin(soon, s.all("foo"))
	}
	if gone := seen.deleted(); len(gone) > 0 {
		t.Errorf("%v disappeared", gone)
	}
	waitTold(t, f, "member1", clusterv1alpha1.ConditionReady, clusterv1alpha1.ReasonClusterReady)
}

// A token that is not taken any more is told within seconds, and costs nobody an
// endpoint. Joining again heals.
func TestExpiredToken(t *testing.T) {
	f := alone(t)
	s := servedEverywhere(t, f, "foo")
	s.createMCS("foo")
	s.waitSpread(s.all("foo"))
	seen := s.watch(f.members["member2"], &discoveryv1.EndpointSliceList{})
	t.Cleanup(func() { join(t, f, "member1") })

	begun := time.Now()
	for _, name := range []string{"namesake-token", "namesake-token-2"} { // a token is worth what its Secret is
		s.must(client.IgnoreNotFound(f.members["member1"].Delete(t.Context(), &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-cluster", Name: name},
		})))
	}
	told := waitTold(t, f, "member1", clusterv1alpha1.ConditionReady, clusterv1alpha1.ReasonCredentialRejected)
	t.Logf("told after %s", told.Sub(begun).Round(10*time.Millisecond))
	s.changeSlice("member3", "foo-a")
	s.waitAmong("member1", "foo")

	join(t, f, "member1")
	begun = time.Now()
	s.waitSpread(s.all("foo"))
	t.Logf("with a new token all is right after %s", time.Since(begun).Round(10*time.Millisecond))
	waitTold(t, f, "member1", clusterv1alpha1.ConditionReady, clusterv1alpha1.ReasonClusterReady)
	if gone := seen.deleted(); len(gone) > 0 {
		t.Errorf("%v disappeared", gone)
	}
}

// The hub's rights in a member are taken away. Its API server says that it is
// ready all the same; that it tells nothing of its slices is told.
func TestRightsTakenAway(t *testing.T) {
	f := alone(t)
	s := servedEverywhere(t, f, "foo")
	s.createMCS("foo")
	s.waitSpread(s.all("foo"))
	seen := s.watch(f.members["member2"], &discoveryv1.EndpointSliceList{})
	t.Cleanup(func() { join(t, f, "member1") })
	waitTold(t, f, "member1", clusterv1alpha1.ConditionSlicesWatched, clusterv1alpha1.ReasonWatchEstablished)

	s.must(f.members["member1"].Delete(t.Context(), &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "namesake-hub"}}))
	// Rights are looked at when a watch begins: it begins anew after an outage.
	off := f.fault(t, "member1", "api-unreachable")
	waitTold(t, f, "member1", clusterv1alpha1.ConditionReady, clusterv1alpha1.ReasonClusterNotReachable)
	off()
	waitTold(t, f, "member1", clusterv1alpha1.ConditionSlicesWatched, clusterv1alpha1.ReasonWatchForbidden)
	waitTold(t, f, "member1", clusterv1alpha1.ConditionReady, clusterv1alpha1.ReasonClusterReady)

	join(t, f, "member1")
	s.changeSlice("member1", "foo-a")
	s.waitSpread(s.all("foo"))
	waitTold(t, f, "member1", clusterv1alpha1.ConditionSlicesWatched, clusterv1alpha1.ReasonWatchEstablished)
	if gone := seen.deleted(); len(gone) > 0 {
		t.Errorf("%v disappeared", gone)
	}
}
