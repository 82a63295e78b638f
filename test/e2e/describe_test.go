package e2e

import (
	"bytes"
	"context"
	"errors"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	networkingv1alpha1 "github.com/namesake-io/namesake/api/networking/v1alpha1"
	workv1alpha1 "github.com/namesake-io/namesake/api/work/v1alpha1"
)

// What people are told in situations that come about by themselves in a fleet of
// three. Two of each kind are one too many: the golden files are to be read.
func TestDescribe(t *testing.T) {
	f := together(t)
	for _, tc := range []struct {
		name string
		make func(*site)
	}{
		{"all_well", func(s *site) { s.createMCS("foo", from("member1", "member2"), to("member3")) }},
		{"cluster_missing", func(s *site) { s.createMCS("foo", from("member1", "ghost"), to("member2")) }},
		{"service_missing", func(s *site) {
			s.createMCS("foo", from("member1"), to("member2"))
			s.waitReady("foo")
			s.must(f.hub.Delete(t.Context(), &corev1.Service{ObjectMeta: s.meta("foo")}))
		}},
		{"port_missing", func(s *site) {
			s.createMCS("foo", from("member1"), to("member2"),
				exposes(networkingv1alpha1.ExposurePort{Port: 80}, networkingv1alpha1.ExposurePort{Name: "grpc", Port: 9000}))
		}},
		{"conflict_ports", func(s *site) {
			s.must(f.members["member2"].Create(t.Context(), s.newService("foo", func(svc *corev1.Service) { svc.Spec.Ports[0].Name = "web" })))
			s.createMCS("foo", from("member1"), to("member2"))
		}},
		{"conflict_abort", func(s *site) {
			s.must(f.members["member2"].Create(t.Context(), s.newService("foo")))
			s.createMCS("foo", from("member1"), to("member2"), func(mcs *networkingv1alpha1.MultiClusterService) {
				mcs.Spec.ConflictResolution = networkingv1alpha1.ConflictAbort
			})
		}},
		{"addresses_overlap", func(s *site) {
			for _, member := range []string{"member1", "member2"} {
				slice := &discoveryv1.EndpointSlice{ObjectMeta: s.meta("foo-a")}
				s.change(f.members[member], slice, func() { slice.Endpoints[0].Addresses = []string{"198.19.255.1"} })
			}
			s.createMCS("foo", from("member1", "member2"), to("member3"))
		}},
		{"being_deleted", func(s *site) {
			mcs := s.createMCS("foo", from("member1"), to("member2"))
			s.waitReady("foo")
			s.holdWork("karmada-es-member1")
			s.must(f.hub.Delete(t.Context(), mcs))
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			s := f.newSite(t, nil)
			s.createService("foo", selectorless)
			for _, member := range []string{"member1", "member2"} {
				s.putSlice(member, "foo", "foo-a")
			}
			tc.make(s)
			s.waitDescribed("foo", tc.name)
		})
	}
}

// holdWork keeps a Work that puts the site's Service into a member from going.
func (s *site) holdWork(namespace string) {
	s.t.Helper()
	works := &workv1alpha1.WorkList{}
	s.must(s.hub.List(s.t.Context(), works))
	for i := range works.Items {
		work := &works.Items[i]
		if work.Namespace == namespace && work.Labels[networkingv1alpha1.NamespaceKey] == s.ns && work.Spec.SuspendDispatching == nil {
			s.change(s.hub, work, func() { work.Finalizers = append(work.Finalizers, "e2e.namesake.io/held") })
			s.t.Cleanup(func() {
				ctx := context.WithoutCancel(s.t.Context())
				if err := s.hub.Get(ctx, client.ObjectKeyFromObject(work), work); err == nil {
					work.Finalizers = nil
					if err := s.hub.Update(ctx, work); err != nil {
						s.t.Error(err)
					}
				}
			})
			return
		}
	}
	s.t.Fatalf("no Work of %s in %s", s.ns, namespace)
}

// A cluster does not answer: that is told, and a wish that goes, and comes anew,
// waits for it nowhere else (C26).
func TestDescribe_cluster_unreachable_C26(t *testing.T) {
	f := alone(t)
	s := f.newSite(t, nil)
	s.createService("foo", selectorless)
	for _, member := range theThree {
		s.putSlice(member, "foo", "foo-a")
	}
	mcs := s.createMCS("foo", from(theThree...), to(theThree...))
	s.waitSpread(spread{service: "foo", providers: theThree, consumers: theThree})
	s.waitReady("foo")
	off := f.fault(t, "member3", "api-down")
	s.waitDescribed("foo", "cluster_unreachable")

	gone := func() {
		t.Helper()
		s.eventually("the wish is gone", func(ctx context.Context) error {
			_, err := get(ctx, s, f.hub, "foo", &networkingv1alpha1.MultiClusterService{})
			if apierrors.IsNotFound(err) {
				return nil
			}
			return errors.Join(errors.New("it is there"), err)
		})
	}
	s.must(f.hub.Delete(t.Context(), mcs))
	gone()
	s.createMCS("foo", from("member1", "member2"), to("member1", "member2"))
	s.waitService("foo", "member1", "member2")
	for _, consumer := range []string{"member1", "member2"} {
		s.eventually("slices in "+consumer, func(ctx context.Context) error {
			return s.checkFrom(ctx, "foo", consumer, []string{"member1", "member2"})
		})
	}
	s.waitReady("foo")

	off()
	s.waitSpread(spread{service: "foo", providers: []string{"member1", "member2"}, consumers: []string{"member1", "member2"}})
	s.waitNoService("foo", "member3")
}

// The feature gate is off: what stands stays as it is, and who makes a new object
// is told.
func TestDescribe_gate_off(t *testing.T) {
	f := alone(t)
	s := servedEverywhere(t, f, "foo", "bar")
	s.createMCS("foo", from(theThree...), to(theThree...))
	s.waitSpread(spread{service: "foo", providers: theThree, consumers: theThree})
	s.waitService("foo", theThree...)
	s.waitReady("foo")

	args, health := makeRoom(t, f)
	args = append(args, "--feature-gates=MultiClusterService=false")
	cmd := exec.CommandContext(t.Context(), args[0], args[1:]...)
	var log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &log, &log
	s.must(cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM) // ends it, if it runs
		_ = cmd.Wait()
		if t.Failed() {
			t.Log(log.String())
		}
	})
	s.eventually("the manager is ready", func(ctx context.Context) error { return probe(ctx, "http://"+health+"/readyz") })

	s.waitGolden("gate_off", func(ctx context.Context) (string, error) {
		bar := &networkingv1alpha1.MultiClusterService{ObjectMeta: s.meta("bar")}
		bar.Spec.Types = []networkingv1alpha1.ExposureType{networkingv1alpha1.ExposureTypeCrossCluster}
		err := f.hub.Create(ctx, bar)
		if err == nil {
			return "", errors.Join(errors.New("a new object is accepted"), f.hub.Delete(ctx, bar))
		}
		told, describeErr := describeMCS(ctx, s, "foo")
		return "A new one is refused:\n  " + strings.ReplaceAll(err.Error(), s.ns, "shop") + "\n\n" + told, describeErr
	})
	s.must(s.checkSpread(t.Context(), spread{service: "foo", providers: theThree, consumers: theThree}))
	s.must(s.checkService(t.Context(), "foo", theThree...))
}
