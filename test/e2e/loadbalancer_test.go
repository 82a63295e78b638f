package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	discoveryv1 "k8s.io/api/discovery/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	networkingv1alpha1 "github.com/namesake-io/namesake/api/networking/v1alpha1"
	workv1alpha1 "github.com/namesake-io/namesake/api/work/v1alpha1"
)

// loadBalancer makes a wish one for a load balancer.
func loadBalancer(mcs *networkingv1alpha1.MultiClusterService) {
	mcs.Spec.Types = []networkingv1alpha1.ExposureType{networkingv1alpha1.ExposureTypeLoadBalancer}
}

// endpointsForLoadBalancer reads what docs/loadbalancer.md says that a load
// balancer reads: by execution namespace, the addresses of all collected slices.
func (s *site) endpointsForLoadBalancer(ctx context.Context, service string) (map[string][]string, error) {
	works := &workv1alpha1.WorkList{}
	if err := s.hub.List(ctx, works, client.HasLabels{"endpointslice.karmada.io/managed-by"}, client.MatchingLabels{
		"multiclusterservice.karmada.io/namespace": s.ns, "multiclusterservice.karmada.io/name": service,
	}); err != nil {
		return nil, err
	}
	out := map[string][]string{}
	for i := range works.Items {
		for _, m := range works.Items[i].Spec.Workload.Manifests {
			slice := &discoveryv1.EndpointSlice{}
			if err := json.Unmarshal(m.Raw, slice); err != nil {
				return nil, err
			}
			if slice.Labels[discoveryv1.LabelServiceName] != service || slice.Namespace != s.ns {
				return nil, fmt.Errorf("%s holds slice %s/%s of %s", works.Items[i].Name, slice.Namespace, slice.Name, slice.Labels[discoveryv1.LabelServiceName])
			}
			for _, e := range slice.Endpoints {
				out[works.Items[i].Namespace] = append(out[works.Items[i].Namespace], e.Addresses...)
			}
		}
	}
	return out, nil
}

// A LoadBalancer's endpoints are collected and go to no other member, and the
// object says where they are. A service of the same name in another namespace is
// shared across clusters, and neither disturbs the other.
func TestLoadBalancer(t *testing.T) {
	f := together(t)
	s, other := f.newSite(t, nil), f.newSite(t, nil)
	want := map[string][]string{}
	for _, site := range []*site{s, other} {
		site.createService("foo", selectorless)
		for _, member := range f.names() {
			slice := site.putSlice(member, "foo", "foo-a")
			if site == s && (member == "member1" || member == "member2") {
				want["karmada-es-"+member] = slice.Endpoints[0].Addresses
			}
		}
	}
	s.createMCS("foo", loadBalancer, from("member1", "member2"))
	other.createMCS("foo")
	inFront := spread{service: "foo", providers: []string{"member1", "member2"}}
	both := func() {
		t.Helper()
		s.waitCollected(inFront)
		s.waitSpread()
		s.waitService("foo", "member1", "member2")
		s.waitNoService("foo", "member3")
		s.eventually("a load balancer finds its endpoints", func(ctx context.Context) error {
			got, err := s.endpointsForLoadBalancer(ctx, "foo")
			if err == nil && !cmp.Equal(want, got) {
				err = errors.New(cmp.Diff(want, got))
			}
			return err
		})
	}
	both()
	s.waitCondition("foo", networkingv1alpha1.ConditionReady, networkingv1alpha1.ReasonAllReady, "multiclusterservice.karmada.io/name=foo")
	s.waitCondition("foo", networkingv1alpha1.ConditionEndpointSliceCollected, networkingv1alpha1.ReasonEndpointSliceCollectedSucceed, "2 of 2")
	mcs, err := get(t.Context(), s, f.hub, "foo", &networkingv1alpha1.MultiClusterService{})
	s.must(err)
	for _, c := range mcs.Status.Conditions {
		if c.Type == networkingv1alpha1.ConditionEndpointSliceDispatched {
			t.Errorf("nothing is dispatched for a load balancer, but: %v", c)
		}
	}
	other.waitSpread(other.all("foo"))
	other.waitCollected(other.all("foo"))
	other.waitReady("foo")

	// A change reaches the load balancer; the other one goes, and takes its own.
	want["karmada-es-member2"] = []string{s.changeSlice("member2", "foo-a")}
	other.must(f.hub.Delete(t.Context(), &networkingv1alpha1.MultiClusterService{ObjectMeta: other.meta("foo")}))
	for _, member := range f.names() {
		other.eventually("nothing is left in "+member, func(ctx context.Context) error { return other.checkNothingLeft(ctx, member, "foo") })
	}
	other.waitCollected()
	both()

	other.createMCS("foo")
	other.waitSpread(other.all("foo"))
	s.must(f.hub.Delete(t.Context(), &networkingv1alpha1.MultiClusterService{ObjectMeta: s.meta("foo")}))
	s.waitCollected()
	for _, member := range f.names() {
		s.eventually("nothing is left in "+member, func(ctx context.Context) error { return s.checkNothingLeft(ctx, member, "foo") })
	}
	other.must(other.checkSpread(t.Context(), other.all("foo")))
	other.waitCollected(other.all("foo"))
	other.waitReady("foo")
}
