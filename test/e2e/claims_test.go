package e2e

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	networkingv1alpha1 "github.com/namesake-io/namesake/api/networking/v1alpha1"
	workv1alpha2 "github.com/namesake-io/namesake/api/work/v1alpha2"
)

// claimedByPolicy returns a binding of a Service as a PropagationPolicy makes it.
func (s *site) claimedByPolicy(svc *corev1.Service, clusters ...string) *workv1alpha2.ResourceBinding {
	rb := &workv1alpha2.ResourceBinding{ObjectMeta: s.meta(workv1alpha2.BindingName("service", svc.Name))}
	rb.Labels = map[string]string{"propagationpolicy.karmada.io/permanent-id": "e2e"}
	rb.Spec.Resource = workv1alpha2.ObjectReference{APIVersion: "v1", Kind: "Service", Namespace: s.ns, Name: svc.Name, UID: svc.UID}
	for _, name := range clusters {
		rb.Spec.Clusters = append(rb.Spec.Clusters, workv1alpha2.TargetCluster{Name: name})
	}
	return rb
}

// waitWorks waits until just these members are given the Service, each by one Work.
func (s *site) waitWorks(service string, members ...string) {
	s.t.Helper()
	want := map[string][]string{}
	for _, name := range members {
		want["karmada-es-"+name] = []string{"Service " + service}
	}
	s.eventually("one Work in each of "+fmt.Sprint(members), func(ctx context.Context) error {
		_, works, err := s.worksOf(ctx)
		if err != nil {
			return err
		}
		for ns, list := range works {
			if list = without(list, "Namespace "+s.ns); len(list) == 0 {
				delete(works, ns)
			} else {
				works[ns] = list
			}
		}
		if diff := cmp.Diff(want, works); diff != "" {
			return errors.New(diff)
		}
		return nil
	})
}

// without returns the items that are not the given one.
func without(items []string, item string) (out []string) {
	for _, i := range items {
		if i != item {
			out = append(out, i)
		}
	}
	return out
}

// A Service is claimed by a policy's binding, and by a wish beside it: members
// hold the union, and each claim that ends takes only what no other wants.
func TestClaims(t *testing.T) {
	f := together(t)
	s := f.newSite(t, nil)
	rb := s.claimedByPolicy(s.createService("foo", selectorless), "member1", "member2")
	s.must(f.hub.Create(t.Context(), rb))
	s.waitWorks("foo", "member1", "member2")
	s.waitService("foo", "member1", "member2")

	for _, member := range []string{"member2", "member3"} {
		s.putSlice(member, "foo", "foo-a")
	}
	mcs := s.createMCS("foo", from("member2"), to("member3"))
	s.waitWorks("foo", "member1", "member2", "member3")
	s.waitService("foo", theThree...)
	s.waitSpread(spread{service: "foo", providers: []string{"member2"}, consumers: []string{"member3"}})
	s.waitReady("foo")

	// The other claimant's part of the binding is as it was.
	now, err := get(t.Context(), s, f.hub, rb.Name, &workv1alpha2.ResourceBinding{})
	s.must(err)
	if diff := cmp.Diff(rb.Labels, now.Labels); diff != "" {
		t.Errorf("labels of the other's binding (- before, + now):\n%s", diff)
	}
	if diff := cmp.Diff(rb.Spec.Clusters, now.Spec.Clusters); diff != "" {
		t.Errorf("clusters of the other's binding (- before, + now):\n%s", diff)
	}
	want := []workv1alpha2.BindingSnapshot{{Namespace: s.ns, Name: "foo", Clusters: []workv1alpha2.TargetCluster{{Name: "member2"}, {Name: "member3"}}}}
	if diff := cmp.Diff(want, now.Spec.RequiredBy); diff != "" {
		t.Errorf("our claim (- wanted, + found):\n%s", diff)
	}

	s.must(f.hub.Delete(t.Context(), mcs))
	s.waitWorks("foo", "member1", "member2")
	s.waitNoService("foo", "member3")
	s.waitSpread()
	s.waitService("foo", "member1", "member2")
	now, err = get(t.Context(), s, f.hub, rb.Name, &workv1alpha2.ResourceBinding{})
	s.must(err)
	if len(now.Spec.RequiredBy) > 0 {
		t.Errorf("claims that are left: %v", now.Spec.RequiredBy)
	}
	s.eventually("the wish is gone", func(ctx context.Context) error {
		_, err := get(ctx, s, f.hub, "foo", &networkingv1alpha1.MultiClusterService{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("it is there (%w)", err)
	})

	// The other way round: another's claim stands beside ours, and outlives it.
	s.must(f.hub.Delete(t.Context(), now))
	s.waitWorks("foo")
	ours := s.createMCS("foo", from("member2"), to("member3"))
	s.waitWorks("foo", "member2", "member3")
	s.change(f.hub, rb, func() {
		rb.Spec.RequiredBy = []workv1alpha2.BindingSnapshot{{Namespace: s.ns, Name: "shop", Clusters: []workv1alpha2.TargetCluster{{Name: "member1"}, {Name: "member2"}}}}
	})
	s.waitWorks("foo", "member1", "member2", "member3")
	s.must(f.hub.Delete(t.Context(), ours))
	s.waitWorks("foo", "member1", "member2")
	s.waitNoService("foo", "member3")
	s.waitService("foo", "member1", "member2")
}
