package dataplane

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	networkingv1alpha1 "github.com/namesake-io/namesake/api/networking/v1alpha1"
)

const (
	// patience is for what is made; controllers may still be waiting for an API
	// server that a test before had stopped.
	patience = time.Minute
	// prompt is how soon a change must have reached every consumer's packets.
	prompt = 5 * time.Second
)

// site is a namespace of one test, in every cluster.
type site struct {
	*fleet
	t    *testing.T
	name string
}

func newSite(t *testing.T, name string) *site {
	t.Helper()
	if shared == nil {
		t.Skip("a data plane needs root")
	}
	s := &site{fleet: shared, t: t, name: name}
	for cluster, c := range s.clusters {
		_, err := c.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
		if err != nil && cluster == "hub" {
			t.Fatal(err) // members may have it from the hub by now
		}
	}
	t.Cleanup(func() {
		// The namespaces stay: what matters is that their pods give way.
		for _, m := range members {
			policy := metav1.DeletePropagationForeground
			options := metav1.DeleteOptions{PropagationPolicy: &policy, GracePeriodSeconds: ptr.To[int64](0)}
			apps := s.clusters[m].AppsV1()
			_ = apps.Deployments(name).DeleteCollection(context.Background(), options, metav1.ListOptions{})
			_ = apps.StatefulSets(name).DeleteCollection(context.Background(), options, metav1.ListOptions{})
		}
	})
	return s
}

// eventually tries until it succeeds.
func (s *site) eventually(within time.Duration, what string, try func() error) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), within)
	defer cancel()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		err := try()
		if err == nil {
			return
		}
		select {
		case <-ctx.Done():
			s.t.Fatalf("%s: not within %s: %v", what, within, err)
		case <-tick.C:
		}
	}
}

// hold lets time pass in which something is to go on undisturbed.
func (s *site) hold(d time.Duration) {
	select {
	case <-time.After(d):
	case <-s.t.Context().Done():
	}
}

// pods changes the template of a workload.
type pods func(*corev1.PodTemplateSpec)

func args(list ...string) pods {
	return func(t *corev1.PodTemplateSpec) { t.Spec.Containers[0].Args = list }
}

func port(name string, number int32, protocol corev1.Protocol) pods {
	return func(t *corev1.PodTemplateSpec) {
		c := &t.Spec.Containers[0]
		c.Ports = append(c.Ports, corev1.ContainerPort{Name: name, ContainerPort: number, Protocol: protocol})
	}
}

// withReadiness asks the echo server, which can be told to say no.
func withReadiness(t *corev1.PodTemplateSpec) {
	t.Spec.Containers[0].ReadinessProbe = &corev1.Probe{
		ProbeHandler:  corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/readyz", Port: intstr.FromInt32(8080)}},
		PeriodSeconds: 1, FailureThreshold: 1,
	}
}

func (s *site) template(app string, changes []pods) corev1.PodTemplateSpec {
	t := corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": app}},
		Spec: corev1.PodSpec{
			TerminationGracePeriodSeconds: ptr.To[int64](15),
			Containers:                    []corev1.Container{{Name: "echo", Image: "echo"}},
		},
	}
	for _, change := range changes {
		change(&t)
	}
	return t
}

// deploy makes a Deployment of echo servers and returns when all are ready.
func (s *site) deploy(member string, replicas int32, changes ...pods) {
	s.t.Helper()
	const app = "echo"
	d := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: app},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas,
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}},
			Template: s.template(app, changes),
		},
	}
	api := s.clusters[member].AppsV1().Deployments(s.name)
	s.eventually(patience, "creating a deployment in "+member, func() error {
		_, err := api.Create(s.t.Context(), d, metav1.CreateOptions{})
		return err
	})
	s.rolledOut(member, app)
}

// rolledOut returns when every pod of the Deployment's last version is ready.
func (s *site) rolledOut(member, app string) {
	s.t.Helper()
	s.eventually(patience, "deployment in "+member, func() error {
		d, err := s.clusters[member].AppsV1().Deployments(s.name).Get(s.t.Context(), app, metav1.GetOptions{})
		if err != nil {
			return err
		}
		want := *d.Spec.Replicas
		if st := d.Status; st.ObservedGeneration < d.Generation || st.UpdatedReplicas != want || st.ReadyReplicas != want || st.Replicas != want {
			return fmt.Errorf("%d of %d replicas ready, %d updated, %d in all", st.ReadyReplicas, want, st.UpdatedReplicas, st.Replicas)
		}
		return nil
	})
}

func (s *site) change(member, app string, change func(*appsv1.Deployment)) {
	s.t.Helper()
	api := s.clusters[member].AppsV1().Deployments(s.name)
	s.eventually(patience, "changing a deployment", func() error {
		d, err := api.Get(s.t.Context(), app, metav1.GetOptions{})
		if err != nil {
			return err
		}
		change(d)
		_, err = api.Update(s.t.Context(), d, metav1.UpdateOptions{})
		return err
	})
}

func tcp(name string, number int32, target intstr.IntOrString) corev1.ServicePort {
	return corev1.ServicePort{Name: name, Port: number, TargetPort: target, Protocol: corev1.ProtocolTCP}
}

func udp(name string, number int32, target intstr.IntOrString) corev1.ServicePort {
	return corev1.ServicePort{Name: name, Port: number, TargetPort: target, Protocol: corev1.ProtocolUDP}
}

// web is the port that echo servers have HTTP on.
func web() corev1.ServicePort { return tcp("http", 80, intstr.FromInt32(8080)) }

// expose makes a Service and its MultiClusterService on the hub.
func (s *site) expose(service *corev1.Service, providers []string, change ...func(*networkingv1alpha1.MultiClusterService)) {
	s.t.Helper()
	if service.Spec.Selector == nil {
		service.Spec.Selector = map[string]string{"app": service.Name}
	}
	hub := s.clusters["hub"]
	if _, err := hub.CoreV1().Services(s.name).Create(s.t.Context(), service, metav1.CreateOptions{}); err != nil {
		s.t.Fatal(err)
	}
	wish := &networkingv1alpha1.MultiClusterService{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.name, Name: service.Name},
		Spec:       networkingv1alpha1.MultiClusterServiceSpec{Types: []networkingv1alpha1.ExposureType{networkingv1alpha1.ExposureTypeCrossCluster}},
	}
	for _, p := range providers {
		wish.Spec.ProviderClusters = append(wish.Spec.ProviderClusters, networkingv1alpha1.ClusterSelector{Name: networkingv1alpha1.ClusterName(p)})
	}
	for _, c := range change {
		c(wish)
	}
	if err := hub.client.Create(s.t.Context(), wish); err != nil {
		s.t.Fatal(err)
	}
}

func serviceOf(name string, ports ...corev1.ServicePort) *corev1.Service {
	return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.ServiceSpec{Ports: ports}}
}

// pods lists the pods of the Deployments, as member/name, without those that end.
func (s *site) pods(of ...string) []string {
	s.t.Helper()
	var names []string
	for _, m := range of {
		list, err := s.clusters[m].CoreV1().Pods(s.name).List(s.t.Context(), metav1.ListOptions{LabelSelector: "app=echo"})
		if err != nil {
			s.t.Fatal(err)
		}
		for _, p := range list.Items {
			if p.DeletionTimestamp == nil {
				names = append(names, m+"/"+p.Name)
			}
		}
	}
	slices.Sort(names)
	return names
}

// exec runs a command in a member's client pod.
func (s *site) exec(ctx context.Context, member string, command ...string) (string, error) {
	cmd := exec.CommandContext(ctx, s.program(), append([]string{"exec", "--dir", s.dir, member, "--"}, command...)...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return stdout.String(), fmt.Errorf("in %s: %s: %w: %s", member, strings.Join(command, " "), err, strings.TrimSpace(stderr.String()))
	}
	return stdout.String(), nil
}

type answers struct {
	Asked, Failed int
	By            map[string]int
	Errors        []string
}

// ask asks echo servers from a member's client pod; options are those of
// `sandbox ask`.
func (s *site) ask(member, address string, options ...string) (answers, error) {
	var a answers
	ctx, cancel := context.WithTimeout(context.WithoutCancel(s.t.Context()), 3*time.Minute)
	defer cancel()
	out, err := s.exec(ctx, member, slices.Concat([]string{s.program(), "ask"}, options, []string{address})...)
	if err != nil {
		return a, err
	}
	return a, json.Unmarshal([]byte(out), &a)
}

// mustSpread wants exactly these pods to answer, all of them within a bounded
// number of questions, and no question to fail.
func (s *site) mustSpread(member, address string, want []string, options ...string) {
	s.t.Helper()
	s.eventually(patience, fmt.Sprintf("%s asks %s %v", member, address, options), func() error {
		a, err := s.ask(member, address, append(options, "--count", fmt.Sprint(20*len(want)), "--timeout", "2s")...)
		if err != nil {
			return err
		}
		var got []string
		for who := range a.By {
			got = append(got, who)
		}
		slices.Sort(got)
		if a.Failed > 0 || !slices.Equal(got, want) {
			return fmt.Errorf("%d of %d failed %v; %v answered, want %v", a.Failed, a.Asked, a.Errors, a.By, want)
		}
		return nil
	})
}

// loop asks at a steady pace from each of the members while fn runs, and
// returns what came of it, by member.
func (s *site) loop(address map[string]string, fn func()) map[string]answers {
	s.t.Helper()
	ctx, cancel := context.WithCancel(s.t.Context())
	defer cancel()
	var (
		wg     sync.WaitGroup
		mu     sync.Mutex
		result = map[string]answers{}
	)
	for m, a := range address {
		wg.Go(func() {
			cmd := exec.CommandContext(context.WithoutCancel(ctx), s.program(), "exec", "--dir", s.dir, m, "--",
				s.program(), "ask", "--for", "10m", "--interval", "20ms", "--timeout", "3s", a)
			var out bytes.Buffer
			cmd.Stdout = &out
			if err := cmd.Start(); err != nil {
				s.t.Error(err)
				return
			}
			<-ctx.Done()
			_ = cmd.Process.Signal(interrupt) // makes it tell what it has counted
			if err := cmd.Wait(); err != nil {
				s.t.Errorf("loop in %s: %v", m, err)
				return
			}
			var counted answers
			if err := json.Unmarshal(out.Bytes(), &counted); err != nil {
				s.t.Errorf("loop in %s: %v in %q", m, err, out.String())
			}
			mu.Lock()
			defer mu.Unlock()
			result[m] = counted
		})
	}
	s.hold(time.Second) // some answers from before
	fn()
	s.hold(time.Second) // and some from after
	cancel()
	wg.Wait()
	return result
}

// clusterIP returns the Service's addresses in a member.
func (s *site) clusterIPs(member, service string) []string {
	s.t.Helper()
	var ips []string
	s.eventually(patience, "service in "+member, func() error {
		o, err := s.clusters[member].CoreV1().Services(s.name).Get(s.t.Context(), service, metav1.GetOptions{})
		if err == nil {
			ips = o.Spec.ClusterIPs
		}
		return err
	})
	return ips
}

// sandbox runs a command of the sandbox on the fleet.
func (s *site) sandbox(command string, args ...string) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	out, err := exec.CommandContext(ctx, s.program(), append([]string{command, "--dir", s.dir}, args...)...).CombinedOutput()
	if err != nil {
		s.t.Fatalf("sandbox %s %v: %v\n%s", command, args, err, out)
	}
}
