package dataplane

import (
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
)

// address of the same name for each member's loop.
func from(address string, who ...string) map[string]string {
	m := map[string]string{}
	for _, name := range who {
		m[name] = address
	}
	return m
}

// A pod that fails its readiness probe stops receiving requests from other
// clusters, and gets them again when it is well (C4).
func TestReadiness(t *testing.T) {
	s := newSite(t, "readiness")
	s.deploy("member1", 2, withReadiness)
	s.expose(serviceOf("echo", web()), []string{"member1"})
	all := s.pods("member1")
	for _, m := range members {
		s.mustSpread(m, "echo.readiness:80", all)
	}
	list, err := s.clusters["member1"].CoreV1().Pods(s.name).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	sick := list.Items[0]
	others := slices.DeleteFunc(slices.Clone(all), func(name string) bool { return name == "member1/"+sick.Name })
	tell := func(ready bool) {
		t.Helper()
		url := fmt.Sprintf("http://%s/set?ready=%t", net.JoinHostPort(sick.Status.PodIP, "8080"), ready)
		if out, err := s.exec(t.Context(), "member1", "curl", "-sS", "--max-time", "5", url); err != nil {
			t.Fatalf("curl: %q, %v", out, err)
		}
	}
	tell(false)
	s.mustBecome(others)
	tell(true)
	s.mustBecome(all)
}

// mustBecome wants every member to be answered by exactly these pods soon, the
// probe's period of a second included.
func (s *site) mustBecome(want []string) {
	s.t.Helper()
	begin := time.Now()
	for _, m := range members {
		s.eventually(prompt, m+" is answered by "+strings.Join(want, " and "), func() error {
			a, err := s.ask(m, "echo."+s.name+":80", "--count", "30", "--timeout", "2s")
			if err != nil {
				return err
			}
			if got := slices.Sorted(maps.Keys(a.By)); a.Failed > 0 || !slices.Equal(got, want) {
				return fmt.Errorf("%d failed, %v answered", a.Failed, got)
			}
			return nil
		})
	}
	s.t.Logf("all members are answered by %v after %s", want, time.Since(begin).Round(10*time.Millisecond))
}

// While the provider's Deployment is rolled over, no request from elsewhere
// fails that would not fail at home, counted in the same run.
func TestRollingUpdate(t *testing.T) {
	for name, linger := range map[string]string{"patient": "5s", "abrupt": "0s"} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t, "rollout-"+name)
			s.deploy("member1", 3, withReadiness, args("--linger="+linger))
			s.expose(serviceOf("echo", web()), []string{"member1"})
			before := s.pods("member1")
			address := "echo." + s.name + ":80"
			for _, m := range members {
				s.mustSpread(m, address, before)
			}
			counted := s.loop(from(address, members...), func() {
				s.change("member1", "echo", func(d *appsv1.Deployment) {
					d.Spec.Template.Annotations = map[string]string{"version": "2"}
					d.Spec.Strategy.RollingUpdate = &appsv1.RollingUpdateDeployment{MaxUnavailable: ptr.To(intstr.FromInt32(0)), MaxSurge: ptr.To(intstr.FromInt32(1))}
				})
				s.rolledOut("member1", "echo")
				// A call to a pod that has just ended may take a second: in the time that
				// the rollout takes some callers would meet no other.
				for _, m := range members {
					s.mustSpread(m, address, s.pods("member1"))
				}
			})
			home := counted["member1"]
			t.Logf("at home %d of %d failed %v", home.Failed, home.Asked, home.Errors)
			for _, m := range members[1:] {
				a := counted[m]
				t.Logf("from %s %d of %d failed %v", m, a.Failed, a.Asked, a.Errors)
				if a.Failed > home.Failed+allowance(linger, home.Failed) {
					t.Errorf("from %s %d requests failed, at home %d", m, a.Failed, home.Failed)
				}
				if a.Asked < 50 || len(a.By) < 4 { // a failure may take as long as fifty answers
					t.Errorf("from %s only %d requests were made, answered by %v", m, a.Asked, a.By)
				}
			}
		})
	}
}

// allowance is for servers that end at once: each call to the Service is sent to
// a pod by chance, at home too, until its kube-proxy has heard of the end, and a
// kube-proxy that has just worked waits for a second before it works again.
// Servers that linger for so long lose nothing, and get no allowance.
func allowance(linger string, atHome int) int {
	if linger == "0s" {
		return 4 + atHome/2
	}
	return 0
}

// mustNotFail wants every loop to have asked and none to have failed.
func mustNotFail(t *testing.T, counted map[string]answers) {
	t.Helper()
	for m, a := range counted {
		t.Logf("from %s %d of %d failed", m, a.Failed, a.Asked)
		if a.Failed > 0 || a.Asked < 100 {
			t.Errorf("from %s %d of %d requests failed: %v", m, a.Failed, a.Asked, a.Errors)
		}
	}
}

// The hub's death changes no working route.
func TestHubDead(t *testing.T) {
	s := newSite(t, "hub-dead")
	s.deploy("member1", 2)
	s.deploy("member2", 1)
	s.expose(serviceOf("echo", web()), nil)
	for _, m := range members {
		s.mustSpread(m, "echo.hub-dead:80", s.pods(members...))
	}
	mustNotFail(t, s.loop(from("echo.hub-dead:80", members...), func() {
		s.sandbox("kill", "controller-manager")
		s.sandbox("kill", "hub-apiserver")
		s.hold(time.Minute)
		s.sandbox("restart", "hub-apiserver")
		s.sandbox("restart", "controller-manager")
		s.hold(5 * time.Second) // what a hub does when it comes back is part of its death
	}))
}

// Nor does that of the API servers of provider and consumer.
func TestMemberAPIServerDown(t *testing.T) {
	s := newSite(t, "api-down")
	s.deploy("member1", 2)
	s.expose(serviceOf("echo", web()), nil)
	for _, m := range members {
		s.mustSpread(m, "echo.api-down:80", s.pods(members...))
	}
	mustNotFail(t, s.loop(from("echo.api-down:80", members...), func() {
		s.sandbox("fault", "member1", "api-down")
		s.sandbox("fault", "member2", "api-down")
		s.hold(20 * time.Second)
		s.sandbox("fault", "member2", "api-down", "off")
		s.sandbox("fault", "member1", "api-down", "off")
		s.hold(5 * time.Second)
	}))
	// Kubernetes' own controllers come back by themselves, but only when they
	// next try, which may be in half a minute.
	for _, m := range members[:2] {
		s.sandbox("restart", m+"-kube-controller-manager")
	}
}

// Scaled to zero in one provider, the other carries on.
func TestScaleToZero(t *testing.T) {
	s := newSite(t, "scale")
	s.deploy("member1", 1, args("--linger=3s"))
	s.deploy("member2", 1)
	s.expose(serviceOf("echo", web()), nil)
	for _, m := range members {
		s.mustSpread(m, "echo.scale:80", s.pods(members...))
	}
	mustNotFail(t, s.loop(from("echo.scale:80", members...), func() {
		s.change("member1", "echo", func(d *appsv1.Deployment) { d.Spec.Replicas = ptr.To[int32](0) })
		s.rolledOut("member1", "echo")
		s.hold(3 * time.Second)
	}))
	for _, m := range members {
		s.mustSpread(m, "echo.scale:80", s.pods("member2"))
	}
}

// A Service that is to be answered on the caller's node is never answered from
// another cluster, although its nodes have the same name (C13).
func TestInternalTrafficPolicyLocal(t *testing.T) {
	s := newSite(t, "node-local")
	s.deploy("member1", 2)
	s.deploy("member2", 1)
	service := serviceOf("echo", web())
	service.Spec.InternalTrafficPolicy = ptr.To(corev1.ServiceInternalTrafficPolicyLocal)
	s.expose(service, nil)
	for _, m := range members[:2] {
		s.mustSpread(m, "echo.node-local:80", s.pods(m))
	}
	s.clusterIPs("member3", "echo")
	a, err := s.ask("member3", "echo.node-local:80", "--count", "3", "--timeout", "1s")
	if err != nil || a.Failed != a.Asked {
		t.Errorf("a member without pods is answered: %+v, %v", a, err)
	}
}

// A Service that prefers its own zone keeps to the consumer's own pods, as it
// does without Namesake, and goes abroad where there are none (C13).
func TestPreferSameZone(t *testing.T) {
	s := newSite(t, "zone")
	s.deploy("member1", 2)
	s.deploy("member2", 1)
	service := serviceOf("echo", web())
	service.Spec.TrafficDistribution = ptr.To(corev1.ServiceTrafficDistributionPreferSameZone)
	s.expose(service, nil)
	for _, m := range members[:2] {
		s.mustSpread(m, "echo.zone:80", s.pods(m))
	}
	s.mustSpread("member3", "echo.zone:80", s.pods(members...))
}
