package test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// TestFleet goes through the life of one fleet; its parts build on each other.
func TestFleet(t *testing.T) {
	dir := newDir(t)
	begin := time.Now()
	must(t, "up", "--bare", "--dir", dir, "--members", "2", "--bin-dir", binDir(t))
	t.Logf("up took %v", time.Since(begin))

	t.Run("files", func(t *testing.T) { testFiles(t, dir) })
	t.Run("control planes", func(t *testing.T) { testControlPlanes(t, dir) })
	t.Run("credentials", func(t *testing.T) { testCredentials(t, dir) })
	t.Run("slices", func(t *testing.T) { testSlices(t, dir) })
	t.Run("refusals", func(t *testing.T) { testRefusals(t, dir) })
	t.Run("api-down", func(t *testing.T) { testAPIDown(t, dir) })
	t.Run("api-unreachable", func(t *testing.T) { testAPIUnreachable(t, dir) })
	t.Run("api-slow", func(t *testing.T) { testAPISlow(t, dir) })
	t.Run("components", func(t *testing.T) { testComponents(t, dir) })

	must(t, "down", "--dir", dir)
	checkNothingRuns(t, dir)
	checkOnlyLogs(t, dir)
	must(t, "down", "--dir", dir)
	mustFail(t, "no fleet in "+dir, "status", "--dir", dir)
	mustFail(t, "no fleet in "+dir, "kill", "--dir", dir, "etcd")
}

func config(t *testing.T, path, contextName string) *rest.Config {
	t.Helper()
	c, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(
		&clientcmd.ClientConfigLoadingRules{ExplicitPath: path},
		&clientcmd.ConfigOverrides{CurrentContext: contextName},
	).ClientConfig()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func client(t *testing.T, c *rest.Config) *kubernetes.Clientset {
	t.Helper()
	set, err := kubernetes.NewForConfig(c)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

func readyz(ctx context.Context, set *kubernetes.Clientset) error {
	return set.RESTClient().Get().AbsPath("/readyz").Do(ctx).Error()
}

// hubPath is the configuration that goes to a member as the hub does. It waits
// for an answer no longer than the given time.
func hubPath(t *testing.T, dir, member string, wait time.Duration) *rest.Config {
	t.Helper()
	c := config(t, filepath.Join(dir, "hub-paths", member+".kubeconfig"), "")
	c.Timeout = wait
	return c
}

func testFiles(t *testing.T, dir string) {
	err := filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		if others := info.Mode().Perm() & 0o077; others != 0 && entry.Type()&os.ModeSocket == 0 {
			t.Errorf("%s is open to others: %v", path, info.Mode())
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range status(t, dir).Components {
		if _, err := os.Stat(c.Log); err != nil || c.Log != filepath.Join(dir, "logs", c.Name+".log") {
			t.Errorf("log of %s: %s, %v", c.Name, c.Log, err)
		}
		if c.State != "running" {
			t.Errorf("%s is %s", c.Name, c.State)
		}
	}
}

func testControlPlanes(t *testing.T, dir string) {
	for _, name := range []string{"hub", "member1", "member2"} {
		own := config(t, filepath.Join(dir, name+".kubeconfig"), "")
		if len(own.CAData) == 0 || own.Insecure {
			t.Errorf("kubeconfig of %s does not verify its server", name)
		}
		shared := config(t, filepath.Join(dir, "kubeconfig"), name)
		if own.Host != shared.Host || !strings.HasPrefix(own.Host, "https://127.0.0.1:") {
			t.Errorf("%s is at %s and at %s", name, own.Host, shared.Host)
		}
		if err := readyz(t.Context(), client(t, shared)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	version, err := client(t, config(t, filepath.Join(dir, "hub.kubeconfig"), "")).Discovery().ServerVersion()
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(version.GitVersion, "v1.") {
		t.Errorf("the hub's version is %s: kubebox was built without its version", version.GitVersion)
	}
}

// A credential of one cluster must be nothing in another.
func testCredentials(t *testing.T, dir string) {
	member1 := config(t, filepath.Join(dir, "member1.kubeconfig"), "")
	member2 := config(t, filepath.Join(dir, "member2.kubeconfig"), "")
	ctx := t.Context()
	namespaces := func(c *rest.Config) error {
		_, err := client(t, c).CoreV1().Namespaces().List(ctx, metav1.ListOptions{})
		return err
	}

	crossed := rest.CopyConfig(member1)
	crossed.Host = member2.Host
	if err := namespaces(crossed); !apierrors.IsUnauthorized(err) {
		t.Errorf("member1's certificate at member2: %v, want Unauthorized", err)
	}

	token, err := client(t, member1).CoreV1().ServiceAccounts("default").CreateToken(ctx, "default", &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	bearer := rest.AnonymousClientConfig(member1)
	bearer.BearerToken = token.Status.Token
	if err := namespaces(bearer); !apierrors.IsForbidden(err) {
		t.Errorf("member1's token at member1: %v, want it known and Forbidden", err)
	}
	bearer.Host = member2.Host
	if err := namespaces(bearer); !apierrors.IsUnauthorized(err) {
		t.Errorf("member1's token at member2: %v, want Unauthorized", err)
	}

	if err := namespaces(rest.AnonymousClientConfig(member1)); !apierrors.IsForbidden(err) {
		t.Errorf("nobody at member1: %v, want Forbidden", err)
	}
	unverified := rest.CopyConfig(member1)
	unverified.CAData = nil
	if err := namespaces(unverified); err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("without the sandbox's authority: %v, want the server's certificate refused", err)
	}
}

// A member makes slices for its ready pods; the hub makes none.
func testSlices(t *testing.T, dir string) {
	ctx := t.Context()
	for _, name := range []string{"member1", "hub"} {
		set := client(t, config(t, filepath.Join(dir, name+".kubeconfig"), ""))
		labels := map[string]string{"app": "web"}
		// A pod on a node that does not exist is left out of slices.
		if _, err := set.CoreV1().Nodes().Create(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node"}}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		pod, err := set.CoreV1().Pods("default").Create(ctx, &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: "web", Labels: labels},
			Spec:       corev1.PodSpec{NodeName: "node", Containers: []corev1.Container{{Name: "web", Image: "web"}}},
		}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		pod.Status = corev1.PodStatus{
			Phase: corev1.PodRunning, PodIP: "198.18.0.9", PodIPs: []corev1.PodIP{{IP: "198.18.0.9"}},
			Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
		}
		if _, err := set.CoreV1().Pods("default").UpdateStatus(ctx, pod, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		if _, err := set.CoreV1().Services("default").Create(ctx, &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Name: "web"},
			Spec:       corev1.ServiceSpec{Selector: labels, Ports: []corev1.ServicePort{{Port: 80}}},
		}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	member := client(t, config(t, filepath.Join(dir, "member1.kubeconfig"), ""))
	eventually(t, "waiting for member1's slice", func() error {
		slices, err := member.DiscoveryV1().EndpointSlices("default").List(ctx, metav1.ListOptions{LabelSelector: "kubernetes.io/service-name=web"})
		if err != nil {
			return err
		}
		for _, s := range slices.Items {
			for _, e := range s.Endpoints {
				if e.Addresses[0] == "198.18.0.9" {
					return nil
				}
			}
		}
		return fmt.Errorf("%d slices, none with the pod", len(slices.Items))
	})
	hub := client(t, config(t, filepath.Join(dir, "hub.kubeconfig"), ""))
	slices, err := hub.DiscoveryV1().EndpointSlices("default").List(ctx, metav1.ListOptions{LabelSelector: "kubernetes.io/service-name=web"})
	if err != nil || len(slices.Items) > 0 {
		t.Errorf("the hub has %d slices of a Service (%v)", len(slices.Items), err)
	}
}

func testRefusals(t *testing.T, dir string) {
	bin := binDir(t)
	mustFail(t, "a fleet is running in "+dir, "up", "--bare", "--dir", dir, "--bin-dir", bin)
	mustFail(t, `unknown component "kubelet"; components are etcd, hub-apiserver,`, "restart", "--dir", dir, "kubelet")
	mustFail(t, `unknown member "member9"; members are member1, member2`, "fault", "--dir", dir, "member9", "api-down")
	mustFail(t, `unknown member "hub"`, "fault", "--dir", dir, "hub", "api-down")
	mustFail(t, `unknown fault "api-gone"; faults are api-down, api-unreachable, api-slow=200ms`, "fault", "--dir", dir, "member1", "api-gone")
	mustFail(t, `needs a duration`, "fault", "--dir", dir, "member1", "api-slow=soon")
	mustFail(t, `a fault is on or off, not "maybe"`, "fault", "--dir", dir, "member1", "api-down", "maybe")
	mustFail(t, `give MEMBER, FAULT`, "fault", "--dir", dir, "member1")
	mustFail(t, `--dir is required`, "status")
	mustFail(t, `unknown output "yaml"`, "status", "--dir", dir, "-o", "yaml")
	if got := status(t, dir).Members[0].Faults; len(got) > 0 {
		t.Errorf("refused faults are recorded: %v", got)
	}
}

func wantFaults(t *testing.T, dir, member string, want ...string) {
	t.Helper()
	for _, m := range status(t, dir).Members {
		if m.Name == member && strings.Join(m.Faults, ",") != strings.Join(want, ",") {
			t.Errorf("status shows faults %v of %s, want %v", m.Faults, member, want)
		}
	}
	human := must(t, "status", "--dir", dir)
	for _, w := range want {
		if !strings.Contains(human, w) {
			t.Errorf("status does not show %s:\n%s", w, human)
		}
	}
}

func testAPIDown(t *testing.T, dir string) {
	before := component(t, dir, "member1-apiserver")
	set := client(t, config(t, filepath.Join(dir, "member1.kubeconfig"), ""))
	for range 2 { // saying it twice changes nothing
		must(t, "fault", "--dir", dir, "member1", "api-down")
	}
	if got := component(t, dir, "member1-apiserver").State; got != "dead" {
		t.Errorf("member1-apiserver is %s", got)
	}
	wantFaults(t, dir, "member1", "api-down")
	if err := readyz(t.Context(), set); err == nil {
		t.Error("member1 answers although its API server is down")
	}
	if err := readyz(t.Context(), client(t, config(t, filepath.Join(dir, "member2.kubeconfig"), ""))); err != nil {
		t.Errorf("member2 suffers from member1's fault: %v", err)
	}
	mustFail(t, "held down by a fault", "restart", "--dir", dir, "member1-apiserver")
	for range 2 {
		must(t, "fault", "--dir", dir, "member1", "api-down", "off")
	}
	if err := readyz(t.Context(), set); err != nil {
		t.Errorf("member1 after the fault: %v", err)
	}
	wantFaults(t, dir, "member1")
	after := component(t, dir, "member1-apiserver")
	if after.Port != before.Port || after.PID == before.PID {
		t.Errorf("was %+v, is %+v; want another process on the same port", before, after)
	}
}

func isTimeout(err error) bool {
	var timeout net.Error
	return errors.As(err, &timeout) && timeout.Timeout() || errors.Is(err, context.DeadlineExceeded)
}

func testAPIUnreachable(t *testing.T, dir string) {
	ctx := t.Context()
	direct := client(t, config(t, filepath.Join(dir, "member1.kubeconfig"), ""))
	existing := client(t, hubPath(t, dir, "member1", 0))
	watcher, err := existing.CoreV1().ConfigMaps("default").Watch(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer watcher.Stop()
	create := func(name string) {
		t.Helper()
		_, err := direct.CoreV1().ConfigMaps("default").Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
	}
	receive := func(name string) {
		t.Helper()
		for {
			select {
			case e, ok := <-watcher.ResultChan():
				if !ok {
					t.Fatal("the watch broke, want it to hang and go on")
				}
				if m, ok := e.Object.(*corev1.ConfigMap); ok && e.Type == watch.Added && m.Name == name {
					return
				}
			case <-time.After(time.Minute):
				t.Fatalf("the watch does not see %s", name)
			}
		}
	}
	create("before")
	receive("before")

	must(t, "fault", "--dir", dir, "member1", "api-unreachable", "on")
	wantFaults(t, dir, "member1", "api-unreachable")
	create("during") // the server itself is fine
	select {
	case e := <-watcher.ResultChan():
		t.Errorf("the watch received %v over a cut path", e)
	case <-time.After(300 * time.Millisecond):
	}
	if err := readyz(ctx, client(t, hubPath(t, dir, "member1", 300*time.Millisecond))); !isTimeout(err) {
		t.Errorf("a new connection over a cut path: %v, want a time-out", err)
	}
	if err := readyz(ctx, client(t, hubPath(t, dir, "member2", time.Minute))); err != nil {
		t.Errorf("member2 suffers from member1's fault: %v", err)
	}

	// A relay that was killed comes back with the faults it had.
	must(t, "fault", "--dir", dir, "member2", "api-unreachable")
	wantFaults(t, dir, "member2", "api-unreachable")
	must(t, "fault", "--dir", dir, "member1", "api-unreachable", "off")
	receive("during")
	must(t, "kill", "--dir", dir, "relay")
	mustFail(t, "the relay is dead: `sandbox restart", "fault", "--dir", dir, "member1", "api-unreachable")
	wantFaults(t, dir, "member1")
	must(t, "restart", "--dir", dir, "relay")
	if err := readyz(ctx, client(t, hubPath(t, dir, "member1", time.Minute))); err != nil {
		t.Errorf("member1 after the fault: %v", err)
	}
	if err := readyz(ctx, client(t, hubPath(t, dir, "member2", 300*time.Millisecond))); !isTimeout(err) {
		t.Errorf("member2 over a relay that was restarted: %v, want a time-out", err)
	}
	must(t, "fault", "--dir", dir, "member2", "api-unreachable", "off")
}

func testAPISlow(t *testing.T, dir string) {
	set := client(t, hubPath(t, dir, "member1", time.Minute))
	fastest := func() time.Duration {
		t.Helper()
		best := time.Hour
		for range 5 {
			begin := time.Now()
			if err := readyz(t.Context(), set); err != nil {
				t.Fatal(err)
			}
			best = min(best, time.Since(begin))
		}
		return best
	}
	must(t, "fault", "--dir", dir, "member1", "api-slow=100ms")
	must(t, "fault", "--dir", dir, "member1", "api-slow=200ms") // replaces it
	wantFaults(t, dir, "member1", "api-slow=200ms")
	if got := fastest(); got < 200*time.Millisecond {
		t.Errorf("a request took %v over a path slowed by 200ms", got)
	}
	must(t, "fault", "--dir", dir, "member1", "api-slow", "off")
	// On a busy machine a request may take long for other reasons, but not all.
	eventually(t, "asking over a path that is slow no more", func() error {
		if got := fastest(); got >= 200*time.Millisecond {
			return fmt.Errorf("the fastest of five requests took %v", got)
		}
		return nil
	})
	wantFaults(t, dir, "member1")
}

func testComponents(t *testing.T, dir string) {
	const name = "member2-apiserver"
	set := client(t, config(t, filepath.Join(dir, "member2.kubeconfig"), ""))
	short := config(t, filepath.Join(dir, "member2.kubeconfig"), "")
	short.Timeout = 300 * time.Millisecond

	must(t, "stop", "--dir", dir, name)
	if got := component(t, dir, name).State; got != "stopped" {
		t.Errorf("%s is %s after stop", name, got)
	}
	if err := readyz(t.Context(), client(t, short)); !isTimeout(err) {
		t.Errorf("a stopped server: %v, want a time-out", err)
	}
	must(t, "cont", "--dir", dir, name)
	// It needs a moment to find its own connections whole again.
	eventually(t, "waiting for a continued server", func() error { return readyz(t.Context(), set) })

	must(t, "kill", "--dir", dir, name)
	if got := component(t, dir, name).State; got != "dead" {
		t.Errorf("%s is %s after kill", name, got)
	}
	mustFail(t, "is dead: start it with `sandbox restart", "stop", "--dir", dir, name)
	must(t, "restart", "--dir", dir, name)
	if err := readyz(t.Context(), set); err != nil {
		t.Errorf("after restart: %v", err)
	}

	// What was stored is still there when etcd comes back.
	must(t, "restart", "--dir", dir, "etcd")
	patient := config(t, filepath.Join(dir, "member1.kubeconfig"), "")
	patient.Timeout = 5 * time.Second // one request that hangs is not to use up the time of all
	member1 := client(t, patient)
	eventually(t, "reading what was stored before etcd restarted", func() error {
		_, err := member1.CoreV1().ConfigMaps("default").Get(t.Context(), "before", metav1.GetOptions{})
		return err
	})
}
