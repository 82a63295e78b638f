package dataplane

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	networkingv1alpha1 "github.com/namesake-io/namesake/api/networking/v1alpha1"
)

const interrupt = syscall.SIGINT

// TCP, UDP and HTTP, by ClusterIP and by name, from every consumer to every
// provider; requests spread over all ready pods. member1 and member2 have pods
// and call, member3 only calls.
func TestEveryConsumerReachesEveryProvider(t *testing.T) {
	s := newSite(t, "reach")
	s.deploy("member1", 2)
	s.deploy("member2", 1)
	raw := intstr.FromInt32(7000)
	s.expose(serviceOf("echo", web(), tcp("tcp", 53, raw), udp("udp", 53, raw)), []string{"member1", "member2"})
	want := s.pods(members...)
	if len(want) != 3 {
		t.Fatalf("pods are %v", want)
	}
	for _, m := range members {
		ip := s.clusterIPs(m, "echo")[0]
		for _, host := range []string{ip, "echo.reach", "echo.reach.svc.cluster.local"} {
			s.mustSpread(m, host+":80", want)
			s.mustSpread(m, host+":53", want, "--protocol", "tcp")
			s.mustSpread(m, host+":53", want, "--protocol", "udp")
		}
		out, err := s.exec(t.Context(), m, "curl", "-sS", "--max-time", "5", "http://echo.reach")
		if err != nil || !strings.Contains(out, "pod=echo-") {
			t.Errorf("curl: %q, %v", out, err)
		}
	}
}

// A provider that is no consumer, and a member that is neither: the one's pods
// answer elsewhere, the other is left alone, pods of that name or not.
func TestProviderOnly(t *testing.T) {
	s := newSite(t, "provider-only")
	s.deploy("member1", 1)
	s.deploy("member2", 1)
	s.expose(serviceOf("echo", web()), []string{"member1"}, func(wish *networkingv1alpha1.MultiClusterService) {
		wish.Spec.ConsumerClusters = []networkingv1alpha1.ClusterSelector{{Name: "member3"}}
	})
	s.mustSpread("member3", "echo.provider-only:80", s.pods("member1"))
	if _, err := s.clusters["member2"].CoreV1().Services(s.name).Get(t.Context(), "echo", metav1.GetOptions{}); err == nil {
		t.Error("a member that neither provides nor consumes has the Service")
	}
}

func statefulSet(s *site, member, name string, replicas int32) {
	s.t.Helper()
	set := &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: appsv1.StatefulSetSpec{
			ServiceName: name, Replicas: &replicas,
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": name}},
			Template: s.template(name, nil),
		},
	}
	api := s.clusters[member].AppsV1().StatefulSets(s.name)
	s.eventually(patience, "stateful set in "+member, func() error {
		if _, err := api.Create(s.t.Context(), set, metav1.CreateOptions{}); err != nil && !strings.Contains(err.Error(), "already exists") {
			return err
		}
		got, err := api.Get(s.t.Context(), name, metav1.GetOptions{})
		if err == nil && got.Status.ReadyReplicas != replicas {
			err = fmt.Errorf("%d of %d replicas ready", got.Status.ReadyReplicas, replicas)
		}
		return err
	})
}

// podAddresses lists addresses of one family of all pods of an app.
func (s *site) podAddresses(app string, v6 bool, of ...string) []string {
	s.t.Helper()
	var list []string
	for _, m := range of {
		found, err := s.clusters[m].CoreV1().Pods(s.name).List(s.t.Context(), metav1.ListOptions{LabelSelector: "app=" + app})
		if err != nil {
			s.t.Fatal(err)
		}
		for _, p := range found.Items {
			for _, ip := range p.Status.PodIPs {
				if strings.Contains(ip.IP, ":") == v6 {
					list = append(list, net.ParseIP(ip.IP).String())
				}
			}
		}
	}
	slices.Sort(list)
	return list
}

// mustResolve wants a name to have exactly these addresses in a member.
func (s *site) mustResolve(member, database, name string, want []string) {
	s.t.Helper()
	s.eventually(patience, fmt.Sprintf("%s looks %s up (%s)", member, name, database), func() error {
		out, err := s.exec(s.t.Context(), member, "getent", database, name)
		if err != nil {
			return err
		}
		var got []string
		for line := range strings.Lines(out) {
			if f := strings.Fields(line); len(f) > 0 && !slices.Contains(got, f[0]) {
				got = append(got, f[0])
			}
		}
		slices.Sort(got)
		if !slices.Equal(got, want) {
			return fmt.Errorf("found %v, want %v", got, want)
		}
		return nil
	})
}

// A headless Service has the pods of all providers, and a pod of a StatefulSet
// is found by its own name from another cluster (C12). Where two providers have
// a pod of one name, the name has the addresses of both.
func TestHeadless(t *testing.T) {
	s := newSite(t, "headless")
	statefulSet(s, "member1", "web", 2)
	service := serviceOf("web", web())
	service.Spec.ClusterIP = corev1.ClusterIPNone
	service.Spec.IPFamilyPolicy = ptr.To(corev1.IPFamilyPolicyPreferDualStack)
	s.expose(service, nil)

	for _, m := range members {
		s.mustResolve(m, "ahostsv4", "web.headless.svc.cluster.local", s.podAddresses("web", false, "member1"))
		s.mustResolve(m, "ahostsv6", "web.headless.svc.cluster.local", s.podAddresses("web", true, "member1"))
		for _, pod := range []string{"web-0", "web-1"} {
			s.mustSpread(m, pod+".web.headless.svc.cluster.local:8080", []string{"member1/" + pod})
		}
	}
	statefulSet(s, "member2", "web", 1)
	for _, m := range members {
		s.mustResolve(m, "ahostsv4", "web.headless.svc.cluster.local", s.podAddresses("web", false, "member1", "member2"))
		s.mustSpread(m, "web-1.web.headless.svc.cluster.local:8080", []string{"member1/web-1"})
		s.mustSpread(m, "web-0.web.headless.svc.cluster.local:8080", []string{"member1/web-0", "member2/web-0"})
	}
}

// Both families answer where the Service has both.
func TestDualStack(t *testing.T) {
	s := newSite(t, "dual-stack")
	s.deploy("member1", 2)
	service := serviceOf("echo", web())
	service.Spec.IPFamilyPolicy = ptr.To(corev1.IPFamilyPolicyRequireDualStack)
	s.expose(service, nil)
	want := s.pods(members...)
	for _, m := range members {
		ips := s.clusterIPs(m, "echo")
		if len(ips) != 2 {
			t.Errorf("%s: addresses of the Service are %v", m, ips)
		}
		for _, ip := range ips {
			s.mustSpread(m, net.JoinHostPort(ip, "80"), want)
		}
		for _, family := range []string{"-4", "-6"} {
			if out, err := s.exec(t.Context(), m, "curl", family, "-sS", "--max-time", "5", "http://echo.dual-stack"); err != nil {
				t.Errorf("curl %s: %q, %v", family, out, err)
			}
		}
	}
}

// A named target port has each provider's own number (C1).
func TestNamedPorts(t *testing.T) {
	s := newSite(t, "named-ports")
	s.deploy("member1", 1, args("--http=8080"), port("http", 8080, corev1.ProtocolTCP))
	s.deploy("member2", 1, args("--http=9090"), port("http", 9090, corev1.ProtocolTCP))
	s.expose(serviceOf("echo", tcp("http", 80, intstr.FromString("http"))), nil)
	for _, m := range members {
		s.mustSpread(m, "echo.named-ports:80", s.pods(members...))
	}
}

// One port number for TCP and UDP (C23) survives an update of the Service.
func TestTwoProtocolsOnOnePort(t *testing.T) {
	s := newSite(t, "protocols")
	s.deploy("member1", 1)
	s.expose(serviceOf("echo", tcp("tcp", 53, intstr.FromInt32(7000)), udp("udp", 53, intstr.FromInt32(7000))), nil)
	check := func() {
		t.Helper()
		for _, m := range members {
			for _, protocol := range []string{"tcp", "udp"} {
				s.mustSpread(m, "echo.protocols:53", s.pods("member1"), "--protocol", protocol)
			}
		}
	}
	check()
	api := s.clusters["hub"].CoreV1().Services(s.name)
	s.eventually(patience, "updating the service", func() error {
		o, err := api.Get(t.Context(), "echo", metav1.GetOptions{})
		if err != nil {
			return err
		}
		o.Spec.Ports = append(o.Spec.Ports, web())
		_, err = api.Update(t.Context(), o, metav1.UpdateOptions{})
		return err
	})
	for _, m := range members {
		s.mustSpread(m, "echo.protocols:80", s.pods("member1"))
	}
	check()
}

// A filter of ports closes the others (C11).
func TestPortsFilter(t *testing.T) {
	s := newSite(t, "ports-filter")
	s.deploy("member1", 1)
	s.expose(serviceOf("echo", web(), tcp("raw", 7000, intstr.FromInt32(7000)), tcp("other", 8080, intstr.FromInt32(8080))), []string{"member1"},
		func(wish *networkingv1alpha1.MultiClusterService) {
			wish.Spec.Ports = []networkingv1alpha1.ExposurePort{{Name: "http", Port: 80}}
		})
	for _, m := range []string{"member2", "member3"} {
		s.mustSpread(m, "echo.ports-filter:80", s.pods("member1"))
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		for _, closed := range []string{"7000", "8080"} {
			if out, err := s.exec(ctx, m, "curl", "-sS", "--max-time", "2", "http://echo.ports-filter:"+closed); err == nil {
				t.Errorf("%s: port %s answers %q", m, closed, out)
			}
		}
		cancel()
	}
}
