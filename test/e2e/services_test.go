package e2e

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	networkingv1alpha1 "github.com/namesake-io/namesake/api/networking/v1alpha1"
)

// C16: the template is deleted and made again, with another clusterIP; a
// member's own Service is deleted by hand.
func TestServiceMadeAgain_C16(t *testing.T) {
	f := together(t)
	s := servedEverywhere(t, f, "foo")
	s.createMCS("foo")
	s.waitSpread(s.all("foo"))
	s.waitService("foo", f.names()...)
	s.waitReady("foo")

	before, err := get(t.Context(), s, f.members["member2"], "foo", &corev1.Service{})
	s.must(err)
	s.must(f.members["member2"].Delete(t.Context(), before))
	s.eventually("member2 has the Service again", func(ctx context.Context) error {
		after, err := get(ctx, s, f.members["member2"], "foo", &corev1.Service{})
		if err == nil && after.UID == before.UID {
			err = errors.New("it is the old one")
		}
		return err
	})
	s.waitService("foo", f.names()...)

	s.must(f.hub.Delete(t.Context(), &corev1.Service{ObjectMeta: s.meta("foo")}))
	s.waitCondition("foo", networkingv1alpha1.ConditionReady, networkingv1alpha1.ReasonServiceNotFound, s.ns+"/foo")
	s.createService("foo", selectorless)
	s.waitService("foo", f.names()...)
	s.waitSpread(s.all("foo"))
	s.waitCollected(s.all("foo"))
	s.waitReady("foo")
}

// C18: a Service of that name, with its own selector, already stands in a
// consumer. It is kept as it is, callers reach the remote backends through it,
// and it stays when the wish goes.
func TestForeignService_C18(t *testing.T) {
	f := together(t)
	s := f.newSite(t, nil)
	foreign := s.newService("foo", func(svc *corev1.Service) {
		svc.Labels = map[string]string{"team": "shop"}
		svc.Spec.Selector = map[string]string{"app": "theirs"}
		svc.Spec.Ports = []corev1.ServicePort{{Name: "http", Port: 80, TargetPort: intstr.FromInt32(9090)}}
	})
	s.eventually("the namespace is in member2", func(ctx context.Context) error {
		return f.members["member2"].Create(ctx, foreign)
	})
	s.createService("foo")
	s.putSlice("member1", "foo", "foo-a")
	s.runPods("member3", "foo", 1)
	s.createMCS("foo")
	s.waitOwn("member3", "foo", 1)
	s.waitSpread(s.all("foo"))
	s.waitService("foo", "member1", "member3")
	s.waitReady("foo")
	unchanged := func() {
		t.Helper()
		now, err := get(t.Context(), s, f.members["member2"], "foo", &corev1.Service{})
		s.must(err)
		if diff := cmp.Diff(foreign.Spec, now.Spec); diff != "" {
			t.Errorf("spec of the Service that was there (- before, + now):\n%s", diff)
		}
		if foreign.UID != now.UID || now.Labels["team"] != "shop" {
			t.Errorf("the Service that was there: uid %s, labels %v; now uid %s, labels %v", foreign.UID, foreign.Labels, now.UID, now.Labels)
		}
	}
	unchanged()

	s.must(f.hub.Delete(t.Context(), &networkingv1alpha1.MultiClusterService{ObjectMeta: s.meta("foo")}))
	s.eventually("the wish is gone", func(ctx context.Context) error {
		_, err := get(ctx, s, f.hub, "foo", &networkingv1alpha1.MultiClusterService{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("it is there (%w)", err)
	})
	for _, member := range []string{"member1", "member3"} {
		s.must(s.checkNothingLeft(t.Context(), member, "foo"))
	}
	s.must(s.checkNothingLeft(t.Context(), "member2"))
	unchanged()
}

// A foreign Service is refused, or replaced, where the wish says so (C18).
func TestForeignService_resolutions_C18(t *testing.T) {
	f := together(t)
	s := f.newSite(t, nil)
	for _, name := range []string{"abort", "overwrite"} {
		foreign := s.newService(name, func(svc *corev1.Service) { svc.Spec.Selector = map[string]string{"app": "theirs"} })
		s.eventually("the namespace is in member2", func(ctx context.Context) error {
			return f.members["member2"].Create(ctx, foreign)
		})
		s.createService(name, selectorless)
	}
	s.createMCS("abort", func(mcs *networkingv1alpha1.MultiClusterService) {
		mcs.Spec.ConflictResolution = networkingv1alpha1.ConflictAbort
	})
	s.createMCS("overwrite", func(mcs *networkingv1alpha1.MultiClusterService) {
		mcs.Spec.ConflictResolution = networkingv1alpha1.ConflictOverwrite
	})
	s.waitService("overwrite", f.names()...)
	s.waitReady("overwrite")
	s.waitCondition("abort", networkingv1alpha1.ConditionServiceApplied, networkingv1alpha1.ReasonServiceAppliedFailed, "member2")
	svc, err := get(t.Context(), s, f.members["member2"], "abort", &corev1.Service{})
	s.must(err)
	if diff := cmp.Diff(map[string]string{"app": "theirs"}, svc.Spec.Selector); diff != "" {
		t.Errorf("selector of the refused Service (- before, + now):\n%s", diff)
	}
}

// C22: a wish without a Service says what is missing, and heals at once.
func TestServiceLater_C22(t *testing.T) {
	f := together(t)
	s := f.newSite(t, nil)
	s.createMCS("foo")
	s.putSlice("member1", "foo", "foo-a")
	s.waitCondition("foo", networkingv1alpha1.ConditionReady, networkingv1alpha1.ReasonServiceNotFound, s.ns+"/foo")
	s.waitCondition("foo", networkingv1alpha1.ConditionServiceApplied, networkingv1alpha1.ReasonServiceAppliedFailed, s.ns+"/foo")
	s.createService("foo", selectorless)
	start := time.Now()
	s.waitService("foo", f.names()...)
	t.Logf("the Service stands everywhere after %s", time.Since(start).Round(time.Millisecond))
	s.waitSpread(s.all("foo"))
	s.waitReady("foo")
}

// C23: TCP 53 and UDP 53 in one Service both survive every update.
func TestTwoProtocols_C23(t *testing.T) {
	f := together(t)
	s := f.newSite(t, nil)
	svc := s.createService("dns", func(svc *corev1.Service) {
		svc.Spec.Ports = []corev1.ServicePort{
			{Name: "tcp", Port: 53, Protocol: corev1.ProtocolTCP, TargetPort: intstr.FromInt32(5353)},
			{Name: "udp", Port: 53, Protocol: corev1.ProtocolUDP, TargetPort: intstr.FromInt32(5353)},
		}
	})
	s.createMCS("dns")
	s.runPods("member1", "dns", 1)
	s.waitService("dns", f.names()...)
	s.waitOwn("member1", "dns", 1)
	s.waitSpread(s.all("dns"))

	// Merge patches of a list by port number alone lose one of two here.
	svc.ManagedFields = nil
	for _, change := range []func(*corev1.Service){
		func(svc *corev1.Service) { svc.Spec.Ports[1].TargetPort = intstr.FromInt32(5454) },
		func(svc *corev1.Service) { svc.Spec.Ports[0].TargetPort = intstr.FromString("dns-tcp") },
		func(svc *corev1.Service) {
			svc.Spec.Ports[0], svc.Spec.Ports[1] = svc.Spec.Ports[1], svc.Spec.Ports[0]
		},
		func(svc *corev1.Service) { svc.Spec.Type = corev1.ServiceTypeNodePort },
	} {
		s.must(f.hub.Get(t.Context(), client.ObjectKeyFromObject(svc), svc))
		change(svc)
		s.must(f.hub.Update(t.Context(), svc))
		s.waitService("dns", f.names()...)
	}
	s.waitSpread(s.all("dns"))
	for _, member := range f.names() {
		now, err := get(t.Context(), s, f.members[member], "dns", &corev1.Service{})
		s.must(err)
		protocols := sets.New[corev1.Protocol]()
		for _, p := range now.Spec.Ports {
			protocols.Insert(p.Protocol)
		}
		if len(now.Spec.Ports) != 2 || len(protocols) != 2 {
			t.Errorf("%s: ports %v", member, servicePorts(now))
		}
	}
}

// C19: the namespace is missing in the members and comes later. Each is told to
// wait, and is right within seconds.
func TestNamespaceLater_C19(t *testing.T) {
	f := together(t)
	s := f.newSite(t, map[string]string{skipNamespace: "true"})
	s.createService("foo", selectorless)
	s.createMCS("foo")
	s.createNamespace("member1")
	s.putSlice("member1", "foo", "foo-a")
	s.waitCollected(spread{service: "foo", providers: []string{"member1"}})
	s.waitCondition("foo", networkingv1alpha1.ConditionServiceApplied, networkingv1alpha1.ReasonServiceAppliedFailed, "namespace "+s.ns)
	for _, member := range []string{"member2", "member3"} {
		s.waitCluster("foo", member, networkingv1alpha1.ReasonNamespaceNotFound)
	}
	s.createNamespace("member2")
	within(t, soon, "member2 is right", func(ctx context.Context) error {
		return errors.Join(s.checkFrom(ctx, "foo", "member2", []string{"member1"}), s.checkService(ctx, "foo", "member2"))
	})
	s.waitCluster("foo", "member2", networkingv1alpha1.ReasonAllReady)
	for _, member := range f.names()[2:] {
		s.createNamespace(member)
	}
	s.waitSpreadWithin(soon, s.all("foo"))
	s.waitReady("foo")
}

// createNamespace makes the site's namespace in a member.
func (s *site) createNamespace(member string) {
	s.t.Helper()
	s.must(s.members[member].Create(s.t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.ns}}))
}

// allBut are the members but one.
func allBut(f *fleet, but string) []string {
	return slices.DeleteFunc(f.names(), func(name string) bool { return name == but })
}

// hold keeps a namespace from going: what is in it goes, it does not.
func (s *site) hold(c *cluster) (release func()) {
	s.t.Helper()
	held := &corev1.ConfigMap{ObjectMeta: s.meta("held")}
	held.Finalizers = []string{"e2e.namesake.io/held"}
	s.must(c.Create(s.t.Context(), held))
	return func() {
		s.t.Helper()
		s.change(c, held, func() { held.Finalizers = nil })
	}
}

// waitNamespaceGone waits until a namespace that was deleted is gone.
func (s *site) waitNamespaceGone(c *cluster, was *corev1.Namespace) {
	s.t.Helper()
	s.eventually("the namespace is gone from "+c.name, func(ctx context.Context) error {
		now := &corev1.Namespace{}
		err := c.Get(ctx, client.ObjectKey{Name: s.ns}, now)
		if apierrors.IsNotFound(err) || err == nil && now.UID != was.UID {
			return nil
		}
		return fmt.Errorf("%v, finalizers %v (%w)", now.Status.Phase, now.Spec.Finalizers, err)
	})
}

// C20: the namespace is deleted in a member, and hangs. Nothing of ours keeps it,
// nobody turns in circles, and when it has gone everything comes back.
func TestNamespaceTerminating_in_member_C20(t *testing.T) {
	f := together(t)
	s := servedEverywhere(t, f, "foo")
	s.createMCS("foo")
	s.waitSpread(s.all("foo"))
	s.waitService("foo", f.names()...)
	s.waitReady("foo")

	c := f.members["member2"]
	release := s.hold(c)
	ns := &corev1.Namespace{}
	s.must(c.Get(t.Context(), client.ObjectKey{Name: s.ns}, ns))
	s.must(c.Delete(t.Context(), ns))
	s.waitCluster("foo", "member2", networkingv1alpha1.ReasonNamespaceNotFound)
	s.waitAmong("member2", "foo")
	s.eventually("nothing is left in member2, and nothing of it elsewhere", func(ctx context.Context) error {
		list := &discoveryv1.EndpointSliceList{}
		if err := c.List(ctx, list, client.InNamespace(s.ns)); err != nil {
			return err
		}
		if len(list.Items) > 0 {
			return fmt.Errorf("there are %d slices", len(list.Items))
		}
		return s.checkSpread(ctx, spread{service: "foo", providers: f.names(), consumers: allBut(f, "member2")})
	})
	checkCalm(t, c)
	release()
	s.waitNamespaceGone(c, ns)
	s.waitService("foo", f.names()...)
	s.putSlice("member2", "foo", "foo-b")
	s.waitSpread(s.all("foo"))
	s.waitReady("foo")
}

// checkCalm finds that something is tried over and over that is refused.
func checkCalm(t *testing.T, c *cluster) {
	t.Helper()
	const listen, limit = 3 * time.Second, 6
	before, err := countRequests(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	timer := time.NewTimer(listen)
	defer timer.Stop()
	<-timer.C
	after, err := countRequests(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	if tries := after.writesSince(before).refused(); tries > limit {
		t.Errorf("%s refused %g writes within %s", c.name, tries, listen)
	}
}

// C20: the namespace is deleted on the hub. The wish goes with all it gave, and
// nothing keeps the namespace.
func TestNamespaceTerminating_on_hub_C20(t *testing.T) {
	f := together(t)
	s := servedEverywhere(t, f, "foo")
	s.createMCS("foo")
	s.waitSpread(s.all("foo"))
	s.waitService("foo", f.names()...)

	ns := &corev1.Namespace{}
	s.must(f.hub.Get(t.Context(), client.ObjectKey{Name: s.ns}, ns))
	s.must(f.hub.Delete(t.Context(), ns))
	s.waitNamespaceGone(f.hub, ns)
	for _, member := range f.names() {
		s.eventually("nothing is left in "+member, func(ctx context.Context) error {
			return s.checkNothingLeft(ctx, member, "foo")
		})
	}
	s.eventually("no Work is left", func(ctx context.Context) error {
		collected, others, err := s.worksOf(ctx)
		if err == nil && len(collected)+len(others) > 0 {
			err = fmt.Errorf("there are %v and %v", collected, others)
		}
		return err
	})
}
