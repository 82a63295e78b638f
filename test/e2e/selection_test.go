package e2e

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	networkingv1alpha1 "github.com/namesake-io/namesake/api/networking/v1alpha1"
)

// servedEverywhere makes a selector-less service with a slice in every member.
func servedEverywhere(t *testing.T, f *fleet, services ...string) *site {
	t.Helper()
	s := f.newSite(t, nil)
	for _, name := range services {
		s.createService(name, selectorless)
		for _, member := range f.names() {
			s.putSlice(member, name, name+"-a")
		}
	}
	return s
}

// waitNoService waits until a member does not have a Service.
func (s *site) waitNoService(name, member string) {
	s.t.Helper()
	s.eventually(fmt.Sprintf("no Service %s in %s", name, member), func(ctx context.Context) error {
		_, err := get(ctx, s, s.members[member], name, &corev1.Service{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("it is there (%w)", err)
	})
}

// C33: who is on the lists takes part, who is taken off loses exactly what the
// list gave.
func TestLists_C33(t *testing.T) {
	s := servedEverywhere(t, together(t), "foo")
	s.createMCS("foo", from("member1", "member2"), to("member2", "member3"))
	sp := spread{service: "foo", providers: []string{"member1", "member2"}, consumers: []string{"member2", "member3"}}
	s.waitSpread(sp)
	s.waitCollected(sp)
	s.waitService("foo", "member1", "member2", "member3")
	s.waitReady("foo")

	// A consumer goes, which is nothing else.
	s.changeMCS("foo", to("member2"))
	sp.consumers = []string{"member2"}
	s.waitSpread(sp)
	s.waitNoService("foo", "member3")
	s.waitService("foo", "member1", "member2")
	s.waitReady("foo")

	// A provider goes that is also a consumer.
	s.changeMCS("foo", from("member1"))
	sp.providers = []string{"member1"}
	s.waitSpread(sp)
	s.waitCollected(sp)
	s.waitService("foo", "member1", "member2")

	// Another one comes.
	s.changeMCS("foo", from("member1", "member3"))
	sp.providers = []string{"member1", "member3"}
	s.waitSpread(sp)
	s.waitCollected(sp)
	s.waitService("foo", "member1", "member2", "member3")

	// No lists: everybody.
	s.changeMCS("foo", from(), to())
	s.waitSpread(s.all("foo"))
	s.waitCollected(s.all("foo"))
	s.waitReady("foo")
}

// The deprecated lists count when the new ones are empty.
func TestDeprecatedLists(t *testing.T) {
	s := servedEverywhere(t, together(t), "old", "older", "both")
	s.createMCS("old", func(mcs *networkingv1alpha1.MultiClusterService) {
		mcs.Spec.ServiceProvisionClusters = []networkingv1alpha1.ClusterName{"member1"}
		mcs.Spec.ServiceConsumptionClusters = []networkingv1alpha1.ClusterName{"member2"}
	})
	s.createMCS("older", from("member3"), func(mcs *networkingv1alpha1.MultiClusterService) {
		mcs.Spec.Range = &networkingv1alpha1.ExposureRange{ClusterNames: []networkingv1alpha1.ClusterName{"member1"}}
	})
	s.createMCS("both", from("member2"), to("member3"), func(mcs *networkingv1alpha1.MultiClusterService) {
		mcs.Spec.ServiceProvisionClusters = []networkingv1alpha1.ClusterName{"member1"}
		mcs.Spec.ServiceConsumptionClusters = []networkingv1alpha1.ClusterName{"member2"}
		mcs.Spec.Range = &networkingv1alpha1.ExposureRange{ClusterNames: []networkingv1alpha1.ClusterName{"member1"}}
	})
	spreads := []spread{
		{service: "old", providers: []string{"member1"}, consumers: []string{"member2"}},
		{service: "older", providers: []string{"member3"}, consumers: []string{"member1"}},
		{service: "both", providers: []string{"member2"}, consumers: []string{"member3"}},
	}
	s.waitSpread(spreads...)
	s.waitCollected(spreads...)
}

// C28: a cluster on the list that has not joined is named, and the rest works.
func TestUnknownCluster_C28(t *testing.T) {
	s := servedEverywhere(t, together(t), "till")
	mcs := s.createMCS("till", from("member1", "ghost"), to("member2", "spook"))
	s.waitSpread(spread{service: "till", providers: []string{"member1"}, consumers: []string{"member2"}})
	s.waitService("till", "member1", "member2")
	for _, name := range []string{"ghost", "spook"} {
		s.waitCondition("till", networkingv1alpha1.ConditionReady, networkingv1alpha1.ReasonClusterNotFound, name)
		s.waitEvent(mcs.UID, networkingv1alpha1.EventClusterNotFound, name)
	}
	s.changeMCS("till", from("member1"), to("member2"))
	s.waitReady("till")
}
