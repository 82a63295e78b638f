package cli_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	clusterv1alpha1 "github.com/namesake-io/namesake/api/cluster/v1alpha1"
	"github.com/namesake-io/namesake/internal/cli"
	"github.com/namesake-io/namesake/internal/cli/target"
)

const systemNamespace = clusterv1alpha1.SystemNamespace

// server is a real API server, without the controllers that usually stand
// beside it: nothing fills token Secrets and nothing empties namespaces.
type server struct {
	env        *envtest.Environment
	config     *rest.Config
	client     client.WithWatch
	kubeconfig string
}

// The two API servers of these tests. hub has the CRDs, member has not.
var hub, member server

// errServers is why they are not there; nil when they are.
var errServers error

// TestMain starts both. A test that needs them says so: needServers.
func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "namesakectl-test-")
	if err != nil {
		panic(err)
	}
	if os.Getenv(assets) != "" {
		errServers = startBoth(dir)
	}
	m.Run()
	hub.stop()
	member.stop()
	if err := os.RemoveAll(dir); err != nil {
		panic(err)
	}
}

// assets names the folder of the API server and its etcd.
const assets = "KUBEBUILDER_ASSETS"

func needServers(t *testing.T) {
	t.Helper()
	// Asked for here and not before: what a test reads decides whether its last
	// result may be reused.
	if os.Getenv(assets) == "" {
		t.Fatalf("this test needs a real API server (%s): run make test", assets)
	}
	if errServers != nil {
		t.Fatal(errServers)
	}
}

func startBoth(dir string) error {
	errs := make([]error, 2)
	var group sync.WaitGroup
	for i, s := range []*server{&hub, &member} {
		group.Go(func() { errs[i] = s.start(filepath.Join(dir, fmt.Sprintf("server%d.kubeconfig", i))) })
	}
	group.Wait()
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("starting the API servers: %w", err)
	}
	var out, errOut bytes.Buffer
	streams := genericiooptions.IOStreams{In: strings.NewReader(""), Out: &out, ErrOut: &errOut}
	if code := cli.Run(context.Background(), []string{"namesakectl", "install", "--kubeconfig", hub.kubeconfig}, streams); code != 0 {
		return fmt.Errorf("installing: %s%s", out.String(), errOut.String())
	}
	return nil
}

func (s *server) start(kubeconfig string) (err error) {
	s.env = &envtest.Environment{}
	if s.config, err = s.env.Start(); err != nil {
		return err
	}
	s.kubeconfig = kubeconfig
	if err := os.WriteFile(kubeconfig, s.env.KubeConfig, 0o600); err != nil {
		return err
	}
	scheme, err := target.Scheme()
	if err != nil {
		return err
	}
	s.client, err = client.NewWithWatch(s.config, client.Options{Scheme: scheme})
	return err
}

// url is that of the kubeconfig.
func (s *server) url() string { return strings.TrimSuffix(s.config.Host, "/") }

func (s *server) stop() {
	if s.env == nil {
		return
	}
	if err := s.env.Stop(); err != nil {
		fmt.Fprintln(os.Stderr, "stopping an API server:", err)
	}
}

// kubeconfigOf returns the kubeconfig of a new user, who may do what rules say.
func (s *server) kubeconfigOf(t *testing.T, user string, rules ...rbacv1.PolicyRule) string {
	t.Helper()
	u, err := s.env.AddUser(envtest.User{Name: user}, nil)
	if err != nil {
		t.Fatal(err)
	}
	data, err := u.KubeConfig()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), user+".kubeconfig")
	if err := os.WriteFile(file, data, 0o600); err != nil {
		t.Fatal(err)
	}
	if len(rules) == 0 {
		return file
	}
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: user}, Rules: rules}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: user},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: user},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	}
	for _, obj := range []client.Object{role, binding} {
		s.create(t, obj)
	}
	return file
}

func (s *server) create(t *testing.T, obj client.Object) {
	t.Helper()
	if err := s.client.Create(t.Context(), obj); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := client.IgnoreNotFound(s.client.Delete(context.Background(), obj)); err != nil {
			t.Error(err)
		}
		if _, ok := obj.(*corev1.Namespace); ok {
			s.finishNamespace(t, obj.GetName())
		}
	})
}

func (s *server) get(t *testing.T, obj client.Object) {
	t.Helper()
	if err := s.client.Get(t.Context(), client.ObjectKeyFromObject(obj), obj); err != nil {
		t.Fatal(err)
	}
}

// id is the UID of the server's kube-system namespace.
func (s *server) id(t *testing.T) string {
	t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "kube-system"}}
	s.get(t, namespace)
	return string(namespace.UID)
}

// finishNamespace does for an empty, deleted namespace what a
// controller-manager would.
func (s *server) finishNamespace(t *testing.T, name string) {
	t.Helper()
	ctx := context.Background()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	err := s.client.Get(ctx, client.ObjectKeyFromObject(namespace), namespace)
	if apierrors.IsNotFound(err) || err == nil && namespace.DeletionTimestamp == nil {
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	namespace.Spec.Finalizers = nil
	if err := s.client.SubResource("finalize").Update(ctx, namespace); err != nil {
		t.Fatal(err)
	}
	poll(t, "the end of namespace "+name, func() (bool, error) {
		err := s.client.Get(ctx, client.ObjectKeyFromObject(namespace), namespace)
		return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
	})
}

func poll(t *testing.T, what string, done func() (bool, error)) {
	t.Helper()
	err := wait.PollUntilContextTimeout(context.Background(), 20*time.Millisecond, 20*time.Second, true,
		func(context.Context) (bool, error) { return done() })
	if err != nil {
		t.Fatalf("waiting for %s: %v", what, err)
	}
}

// result is what a run of the program left.
type result struct {
	code     int
	out, err string
}

func (r result) String() string {
	return fmt.Sprintf("exit code %d\nstdout:\n%s\nstderr:\n%s", r.code, r.out, r.err)
}

// run runs the program as its user does, with the hub's kubeconfig unless
// another one is named.
func run(t *testing.T, args ...string) result {
	t.Helper()
	return runUntil(t.Context(), args...)
}

// runUntil is run, interrupted when ctx ends.
func runUntil(ctx context.Context, args ...string) result {
	if !slices.Contains(args, "--kubeconfig") {
		args = append([]string{"--kubeconfig", hub.kubeconfig}, args...)
	}
	var out, errOut bytes.Buffer
	streams := genericiooptions.IOStreams{In: strings.NewReader(""), Out: &out, ErrOut: &errOut}
	code := cli.Run(ctx, append([]string{"namesakectl"}, args...), streams)
	return result{code: code, out: out.String(), err: errOut.String()}
}

// succeed runs the program and ends the test when it fails.
func succeed(t *testing.T, args ...string) result {
	t.Helper()
	r := run(t, args...)
	if r.code != 0 {
		t.Fatalf("namesakectl %s: %s", strings.Join(args, " "), r)
	}
	return r
}

// join joins the member, without waiting for a controller that is not there,
// and lets it go when the test ends.
func join(t *testing.T, name string, more ...string) result {
	t.Helper()
	leaveAtEnd(t, name)
	return succeed(t, joinArgs(name, more...)...)
}

// joinArgs waits for nothing that these API servers do not have.
func joinArgs(name string, more ...string) []string {
	args := []string{"join", name, "--cluster-kubeconfig", member.kubeconfig, "--token-wait", "1ms", "--wait-timeout", "0"}
	return append(args, more...)
}

// leaveAtEnd takes everything back that a join of the member as name may leave.
func leaveAtEnd(t *testing.T, name string) {
	t.Helper()
	t.Cleanup(func() {
		var out, errOut bytes.Buffer
		streams := genericiooptions.IOStreams{In: strings.NewReader(""), Out: &out, ErrOut: &errOut}
		cli.Run(context.Background(), []string{
			"namesakectl", "--kubeconfig", hub.kubeconfig, "unjoin", name, "--cluster-kubeconfig", member.kubeconfig,
		}, streams)
		member.finishNamespace(t, systemNamespace)
		if left := leftInMember(t); len(left) > 0 {
			t.Errorf("an unjoin left in the member: %v\n%s%s", left, out.String(), errOut.String())
		}
		if left := leftOnHub(t, name); len(left) > 0 {
			t.Errorf("an unjoin left on the hub: %v\n%s%s", left, out.String(), errOut.String())
		}
	})
}

// leftInMember names what stands in the member of what joins make.
func leftInMember(t *testing.T) []string {
	t.Helper()
	return append(standing(t, &member, map[string]client.ObjectList{
		"ServiceAccount": &corev1.ServiceAccountList{},
		"Secret":         &corev1.SecretList{},
		"ConfigMap":      &corev1.ConfigMapList{},
	}, systemNamespace), standing(t, &member, map[string]client.ObjectList{
		"ClusterRole":        &rbacv1.ClusterRoleList{},
		"ClusterRoleBinding": &rbacv1.ClusterRoleBindingList{},
	}, "")...)
}

func leftOnHub(t *testing.T, name string) []string {
	t.Helper()
	left := append(standing(t, &hub, map[string]client.ObjectList{"Secret": &corev1.SecretList{}}, systemNamespace),
		standing(t, &hub, map[string]client.ObjectList{"Cluster": &clusterv1alpha1.ClusterList{}}, "")...)
	return slices.DeleteFunc(left, func(s string) bool { return !strings.HasSuffix(s, "/"+name) })
}

// standing lists objects as Kind/name, without those that every API server or
// these tests bring.
func standing(t *testing.T, s *server, lists map[string]client.ObjectList, namespace string) []string {
	t.Helper()
	var found []string
	for kind, list := range lists {
		if err := s.client.List(context.Background(), list, client.InNamespace(namespace)); err != nil {
			t.Fatal(err)
		}
		objects, err := meta.ExtractList(list)
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range objects {
			obj, ok := o.(client.Object)
			if !ok {
				t.Fatalf("%T is no object", o)
			}
			isRole := strings.HasPrefix(kind, "ClusterRole")
			if isRole && !strings.HasPrefix(obj.GetName(), "namesake") {
				continue
			}
			found = append(found, kind+"/"+obj.GetName())
		}
	}
	slices.Sort(found)
	return found
}

var durations = regexp.MustCompile(`(?:<1ms|\b[0-9.]+m?s)\b`)

// steady replaces what differs from run to run.
func steady(s string, replacements ...string) string {
	s = strings.NewReplacer(append([]string{
		hub.url(), "HUB", member.url(), "MEMBER",
		hub.kubeconfig, "HUB.kubeconfig", member.kubeconfig, "MEMBER.kubeconfig",
	}, replacements...)...).Replace(s)
	return durations.ReplaceAllString(s, "TIME")
}
