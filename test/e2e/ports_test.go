package e2e

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	networkingv1alpha1 "github.com/namesake-io/namesake/api/networking/v1alpha1"
)

// exposes lists ports of a wish.
func exposes(ports ...networkingv1alpha1.ExposurePort) func(*networkingv1alpha1.MultiClusterService) {
	return func(mcs *networkingv1alpha1.MultiClusterService) { mcs.Spec.Ports = ports }
}

// threePorts gives a Service http, grpc and admin.
func threePorts(svc *corev1.Service) {
	svc.Spec.Ports = []corev1.ServicePort{
		{Name: "http", Port: 80, TargetPort: intstr.FromInt32(8080)},
		{Name: "grpc", Port: 9000, TargetPort: intstr.FromInt32(9090)},
		{Name: "admin", Port: 9001, TargetPort: intstr.FromInt32(9091)},
	}
}

// checkPorts compares the ports of a consumer: of its Service, and of each slice
// that was dispatched there, as names.
func (s *site) checkPorts(ctx context.Context, consumer, service string, want ...string) error {
	svc, err := get(ctx, s, s.members[consumer], service, &corev1.Service{})
	if err != nil {
		return err
	}
	var names []string
	for _, p := range svc.Spec.Ports {
		names = append(names, p.Name)
	}
	var errs []error
	if diff := cmp.Diff(want, names); diff != "" {
		errs = append(errs, fmt.Errorf("Service in %s (- wanted, + found):\n%s", consumer, diff))
	}
	_, dispatched, err := s.slicesIn(ctx, consumer, service)
	if err != nil {
		return err
	}
	if len(dispatched) == 0 {
		errs = append(errs, fmt.Errorf("nothing is dispatched to %s", consumer))
	}
	want = slices.Sorted(slices.Values(want))
	for name, slice := range dispatched {
		var names []string
		for _, p := range slice.Ports {
			names = append(names, *p.Name)
		}
		slices.Sort(names)
		if diff := cmp.Diff(want, names); diff != "" {
			errs = append(errs, fmt.Errorf("slice %s in %s (- wanted, + found):\n%s", name, consumer, diff))
		}
	}
	return errors.Join(errs...)
}

// C11: a wish exposes one of three ports. Callers see that one; the provider
// keeps its own Service whole. A port that is not there is named.
func TestPorts_C11(t *testing.T) {
	s := together(t).newSite(t, nil)
	s.createService("foo", threePorts)
	mcs := s.createMCS("foo", from("member1"), to("member2"), exposes(networkingv1alpha1.ExposurePort{Name: "grpc", Port: 9000}))
	s.runPods("member1", "foo", 1)
	seen := func(want ...string) {
		t.Helper()
		s.eventually("ports of member2", func(ctx context.Context) error { return s.checkPorts(ctx, "member2", "foo", want...) })
	}
	seen("grpc")
	s.waitReady("foo")
	s.waitService("foo", "member1")

	s.changeMCS("foo", exposes(networkingv1alpha1.ExposurePort{Port: 80}, networkingv1alpha1.ExposurePort{Name: "admin", Port: 9001}))
	seen("http", "admin")

	// One that the Service does not have, beside one that it has.
	s.changeMCS("foo", exposes(networkingv1alpha1.ExposurePort{Name: "grpc", Port: 9000}, networkingv1alpha1.ExposurePort{Name: "metrics", Port: 7}))
	seen("grpc")
	s.waitCondition("foo", networkingv1alpha1.ConditionReady, networkingv1alpha1.ReasonPortNotFound, "metrics:7")

	// The Service gets it: nothing else has to be done.
	svc := &corev1.Service{ObjectMeta: s.meta("foo")}
	s.change(s.hub, svc, func() {
		svc.Spec.Ports = append(svc.Spec.Ports, corev1.ServicePort{Name: "metrics", Port: 7, TargetPort: intstr.FromInt32(7777)})
	})
	seen("grpc", "metrics")
	s.waitReady("foo")

	// No list: all.
	s.changeMCS("foo", exposes())
	seen("http", "grpc", "admin", "metrics")
	s.waitSpread(spread{service: "foo", providers: []string{"member1"}, consumers: []string{"member2"}})
	s.must(s.hub.Delete(t.Context(), mcs))
}

// C17: the template's node port is taken in one member, and another was given one
// of its own. Each member keeps its own.
func TestNodePort_C17(t *testing.T) {
	f := together(t)
	s := f.newSite(t, nil)
	nodePort := func(svc *corev1.Service) { svc.Spec.Type = corev1.ServiceTypeNodePort }
	template := s.createService("foo", nodePort)
	taken := template.Spec.Ports[0].NodePort
	other := s.newService("other", nodePort, func(svc *corev1.Service) { svc.Spec.Ports[0].NodePort = taken })
	s.eventually("the namespace is in member2", func(ctx context.Context) error { return f.members["member2"].Create(ctx, other) })

	s.createMCS("foo")
	s.waitService("foo", f.names()...)
	s.waitReady("foo")
	before := map[string]*corev1.Service{}
	for _, member := range f.names() {
		svc, err := get(t.Context(), s, f.members[member], "foo", &corev1.Service{})
		s.must(err)
		if svc.Spec.Type != corev1.ServiceTypeNodePort || svc.Spec.Ports[0].NodePort == 0 {
			t.Errorf("%s: type %s, ports %v", member, svc.Spec.Type, svc.Spec.Ports)
		}
		before[member] = svc
	}
	if before["member2"].Spec.Ports[0].NodePort == taken {
		t.Errorf("member2 has node port %d twice", taken)
	}

	// An update of the template leaves them what they have.
	s.change(f.hub, template, func() {
		template.Spec.Ports[0].TargetPort = intstr.FromInt32(8888)
		template.Spec.SessionAffinity = corev1.ServiceAffinityClientIP
	})
	s.waitService("foo", f.names()...)
	for _, member := range f.names() {
		now, err := get(t.Context(), s, f.members[member], "foo", &corev1.Service{})
		s.must(err)
		was := before[member]
		if now.UID != was.UID || now.Spec.ClusterIP != was.Spec.ClusterIP || now.Spec.Ports[0].NodePort != was.Spec.Ports[0].NodePort {
			t.Errorf("%s: was %s %s %v, is %s %s %v", member,
				was.UID, was.Spec.ClusterIP, was.Spec.Ports, now.UID, now.Spec.ClusterIP, now.Spec.Ports)
		}
		if now.Spec.SessionAffinity != corev1.ServiceAffinityClientIP {
			t.Errorf("%s: session affinity %s", member, now.Spec.SessionAffinity)
		}
	}
}
