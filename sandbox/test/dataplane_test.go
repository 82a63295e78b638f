package test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/ptr"

	"github.com/namesake-io/namesake/sandbox/internal/netns"
)

func needRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("a data plane needs root")
	}
}

// checkNoNamespaces wants no network namespace that was not there before.
func checkNoNamespaces(t *testing.T, before []string) {
	t.Helper()
	after, err := netns.List("")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range after {
		// Those of other fleets come and go.
		if ours := fleetNamespaces[name]; ours && !slices.Contains(before, name) {
			t.Errorf("network namespace %s is left", name)
		}
	}
}

// fleetNamespaces are all that a fleet of these tests was seen to have.
var fleetNamespaces = map[string]bool{}

func noteNamespaces(t *testing.T, dir string) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, "network.json"))
	if err != nil {
		t.Fatal(err)
	}
	names, err := netns.List("nsk-")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if id := strings.Split(name, "-")[1]; strings.Contains(string(data), id) {
			fleetNamespaces[name] = true
		}
	}
}

func TestDataPlane(t *testing.T) {
	needRoot(t)
	dir := newDir(t)
	before, err := netns.List("")
	if err != nil {
		t.Fatal(err)
	}
	must(t, "up", "--dir", dir, "--bin-dir", binDir(t), "--members", "2", "--bare", "--data-plane")
	config, err := clientcmd.BuildConfigFromFlags("", filepath.Join(dir, "member1.kubeconfig"))
	if err != nil {
		t.Fatal(err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	ips := twoPods(t, client)
	noteNamespaces(t, dir)

	eventually(t, "curl by name", func() error {
		out, stderr, err := sandbox(t, "exec", "--dir", dir, "member1", "--", "curl", "-sS", "--max-time", "3", "http://echo.default")
		if err == nil && !strings.Contains(out, "cluster=member1 pod=echo-") {
			err = fmt.Errorf("answer %q", out)
		}
		if err != nil {
			return fmt.Errorf("%w: %s", err, stderr)
		}
		return nil
	})
	for _, ip := range ips {
		must(t, "exec", "--dir", dir, "member2", "--", "ping", "-c1", "-W2", ip)
	}
	if _, _, err := sandbox(t, "exec", "--dir", dir, "member2", "--", "sh", "-c", "exit 7"); exitCode(err) != 7 {
		t.Errorf("exit code 7 came back as %v", err)
	}
	mustFail(t, `unknown member "member9"`, "exec", "--dir", dir, "member9", "--", "true")

	must(t, "fault", "--dir", dir, "member1", "east-west-down")
	if _, _, err := sandbox(t, "exec", "--dir", dir, "member2", "--", "ping", "-c1", "-W1", ips[0]); err == nil {
		t.Error("a member without its link answers")
	}
	if got := status(t, dir).Members[0].Faults; !slices.Equal(got, []string{"east-west-down"}) {
		t.Errorf("status shows faults %v", got)
	}
	must(t, "fault", "--dir", dir, "member1", "east-west-down", "off")
	must(t, "exec", "--dir", dir, "member2", "--", "ping", "-c1", "-W2", ips[0])

	// A killed agent takes its pods along, the next one makes them anew.
	must(t, "kill", "--dir", dir, "member1-node")
	must(t, "restart", "--dir", dir, "member1-node")
	eventually(t, "pods are back", func() error {
		_, stderr, err := sandbox(t, "exec", "--dir", dir, "member2", "--", "curl", "-sS", "--max-time", "1", "http://"+ips[0])
		if err != nil {
			return fmt.Errorf("%w: %s", err, stderr)
		}
		return nil
	})
	must(t, "down", "--dir", dir)
	checkNothingRuns(t, dir)
	checkOnlyLogs(t, dir)
	checkNoNamespaces(t, before)
}

func exitCode(err error) int {
	var exit interface{ ExitCode() int }
	if errors.As(err, &exit) {
		return exit.ExitCode()
	}
	return 0
}

// twoPods makes a Deployment and its Service and returns an address of each
// family, of a ready pod.
func twoPods(t *testing.T, client kubernetes.Interface) []string {
	t.Helper()
	labels := map[string]string{"app": "echo"}
	ctx := t.Context()
	_, err := client.CoreV1().Services("default").Create(ctx, &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "echo"},
		Spec:       corev1.ServiceSpec{Selector: labels, Ports: []corev1.ServicePort{{Port: 80}}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = client.AppsV1().Deployments("default").Create(ctx, &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "echo"},
		Spec: appsv1.DeploymentSpec{
			Replicas: ptr.To[int32](2), Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "echo", Image: "echo"}}},
			},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var ips []string
	eventually(t, "pods are ready", func() error {
		list, err := client.CoreV1().Pods("default").List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		ips = nil
		for _, p := range list.Items {
			for _, c := range p.Status.Conditions {
				if c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue {
					for _, ip := range p.Status.PodIPs {
						ips = append(ips, ip.IP)
					}
				}
			}
		}
		if len(ips) != 4 {
			return fmt.Errorf("addresses of ready pods are %v", ips)
		}
		return nil
	})
	return ips[:2]
}

// An `up` that is killed at any moment leaves nothing that down does not find.
func TestDataPlaneKilledHalfWay(t *testing.T) {
	needRoot(t)
	dir := newDir(t)
	before, err := netns.List("")
	if err != nil {
		t.Fatal(err)
	}
	var out, errs output
	cmd := command(&out, &errs, "up", "--dir", dir, "--bin-dir", binDir(t), "--members", "2", "--bare", "--data-plane")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for !strings.Contains(errs.String(), "fabric ready") && ctx.Err() == nil {
		select {
		case <-time.After(10 * time.Millisecond):
		case <-ctx.Done():
		}
	}
	noteNamespaces(t, dir)
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // it was killed
	if err := os.Remove(filepath.Join(dir, "state.json")); err != nil {
		t.Fatal(err) // the worst case: nothing is on record
	}
	must(t, "down", "--dir", dir)
	checkNothingRuns(t, dir)
	checkNoNamespaces(t, before)
}
