package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/namesake-io/namesake/api/cluster/v1alpha1"
	networkingv1alpha1 "github.com/namesake-io/namesake/api/networking/v1alpha1"
	workv1alpha1 "github.com/namesake-io/namesake/api/work/v1alpha1"
	workv1alpha2 "github.com/namesake-io/namesake/api/work/v1alpha2"
)

// Components of a fleet that tests stop and start.
const (
	hubManager = "controller-manager"
	hubName    = "hub"
)

// apiDown is the fault of a member whose API server is stopped.
const apiDown = "api-down"

// nodeName is the one Node of each member. Pods are bound to it.
const nodeName = "node"

// programs is where the programs under test are.
type programs string

// findPrograms returns the folder of the programs, or says how to make them.
func findPrograms() (programs, error) {
	dir := os.Getenv("NAMESAKE_BIN")
	if dir == "" {
		dir = filepath.Join("..", "..", "bin")
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("finding the programs: %w", err)
	}
	for _, name := range []string{"sandbox", "kubebox", "controller-manager", "agent", "namesakectl"} {
		if _, err := exec.LookPath(filepath.Join(dir, name)); err != nil {
			return "", fmt.Errorf("the end-to-end tests need the programs: run `make build`, or `make test-e2e` which says where they are: %w", err)
		}
	}
	return programs(dir), nil
}

// path of one program.
func (p programs) path(name string) string { return filepath.Join(string(p), name) }

// run runs a program to its end. The error has what it said.
func (p programs) run(ctx context.Context, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, p.path(name), args...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return stdout.String(), fmt.Errorf("%s %s: %w\n%s%s", name, strings.Join(args, " "), err, &stdout, &stderr)
	}
	return stdout.String(), nil
}

// cluster is one API server, as an administrator sees it.
type cluster struct {
	client.WithWatch
	name       string
	kubeconfig string
	config     *rest.Config
}

// fleet is a hub and its members.
type fleet struct {
	programs
	parent, dir string
	guard       *guard
	hub         *cluster
	members     map[string]*cluster
	// pull are the members that an agent stands in for.
	pull []string
}

// names of the members, in order.
func (f *fleet) names() []string {
	out := make([]string, len(f.members))
	for i := range out {
		out[i] = fmt.Sprintf("member%d", i+1)
	}
	return out
}

// clusters are the hub and the members.
func (f *fleet) clusters() []*cluster {
	out := []*cluster{f.hub}
	for _, name := range f.names() {
		out = append(out, f.members[name])
	}
	return out
}

// Environment variables that make another fleet of the usual one: members that an
// agent stands in for, by name, and how many members there are.
const (
	pullVariable    = "NAMESAKE_E2E_PULL"
	membersVariable = "NAMESAKE_E2E_MEMBERS"
)

// fleetOptions say what fleet to start.
type fleetOptions struct {
	members                int
	pull                   []string
	managerArgs, agentArgs []string
}

// mixed returns the options with what the environment says of agents.
func (o fleetOptions) mixed() fleetOptions {
	if names := os.Getenv(pullVariable); names != "" {
		o.pull = strings.Split(names, ",")
	}
	return o
}

// startFleet brings a fleet up. When this fails, or the process ends in any way,
// the fleet is taken down.
func startFleet(ctx context.Context, p programs, o fleetOptions) (_ *fleet, err error) {
	parent, err := os.MkdirTemp("", "e2e-")
	if err != nil {
		return nil, fmt.Errorf("making a folder for a fleet: %w", err)
	}
	f := &fleet{programs: p, parent: parent, dir: filepath.Join(parent, "fleet"), members: map[string]*cluster{}, pull: o.pull}
	if f.guard, err = startGuard(ctx, p, f.dir); err != nil {
		return nil, errors.Join(err, os.RemoveAll(parent))
	}
	defer func() {
		if err != nil {
			err = fmt.Errorf("%w\n%s", err, f.logTails())
			err = errors.Join(err, f.down())
		}
	}()

	args := []string{"up", "--dir", f.dir, "--members", fmt.Sprint(o.members), "--pull", strings.Join(o.pull, ",")}
	for _, arg := range o.managerArgs {
		args = append(args, "--controller-manager-arg", arg)
	}
	for _, arg := range o.agentArgs {
		args = append(args, "--agent-arg", arg)
	}
	if _, err := p.run(ctx, "sandbox", args...); err != nil {
		return nil, err
	}
	if f.hub, err = f.connect(hubName); err != nil {
		return nil, err
	}
	for i := range o.members {
		name := fmt.Sprintf("member%d", i+1)
		if f.members[name], err = f.connect(name); err != nil {
			return nil, err
		}
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: nodeName}}
		if err := f.members[name].Create(ctx, node); err != nil {
			return nil, fmt.Errorf("making the node of %s: %w", name, err)
		}
	}
	return f, nil
}

// down takes the fleet down and removes its folder.
func (f *fleet) down() error {
	if err := f.guard.end(); err != nil {
		return fmt.Errorf("taking the fleet down: %w", err)
	}
	return os.RemoveAll(f.parent)
}

// connect returns a client for a cluster.
func (f *fleet) connect(name string) (*cluster, error) {
	c := &cluster{name: name, kubeconfig: filepath.Join(f.dir, name+".kubeconfig")}
	var err error
	if c.config, err = clientcmd.BuildConfigFromFlags("", c.kubeconfig); err != nil {
		return nil, fmt.Errorf("reading the kubeconfig of %s: %w", name, err)
	}
	c.config.QPS = -1
	// What the API server has to say of deprecated fields is no news here.
	c.config.WarningHandler = rest.NoWarnings{}
	scheme, err := newScheme()
	if err != nil {
		return nil, err
	}
	if c.WithWatch, err = client.NewWithWatch(c.config, client.Options{Scheme: scheme}); err != nil {
		return nil, fmt.Errorf("connecting to %s: %w", name, err)
	}
	return c, nil
}

// newScheme returns the kinds that the tests use.
func newScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, clusterv1alpha1.AddToScheme, networkingv1alpha1.AddToScheme,
		workv1alpha1.AddToScheme, workv1alpha2.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("making a scheme: %w", err)
		}
	}
	return scheme, nil
}

// sandbox runs a command of the sandbox on the fleet.
func (f *fleet) sandbox(t *testing.T, command string, args ...string) string {
	t.Helper()
	out, err := f.run(context.WithoutCancel(t.Context()), "sandbox", append([]string{command, "--dir", f.dir}, args...)...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// fault brings a fault of a member about. It is taken away at the end of the
// test at the latest, and by the function that is returned.
func (f *fleet) fault(t *testing.T, member, fault string) (off func()) {
	t.Helper()
	f.sandbox(t, "fault", member, fault, "on")
	gone := false
	off = func() {
		if !gone {
			gone = true
			f.sandbox(t, "fault", member, fault, "off")
		}
	}
	t.Cleanup(func() {
		off()
		if fault == apiDown {
			f.settle(t, member)
		}
	})
	return off
}

// hang has a member's API server take requests and answer none. It goes on at the end
// of the test at the latest, and by the function that is returned.
func (f *fleet) hang(t *testing.T, member string) (goOn func()) {
	t.Helper()
	f.sandbox(t, "stop", member+"-apiserver")
	goesOn := false
	goOn = func() {
		if !goesOn {
			goesOn = true
			f.sandbox(t, "cont", member+"-apiserver")
		}
	}
	t.Cleanup(func() {
		goOn()
		f.settle(t, member)
	})
	return goOn
}

// settle waits until a member's own controllers work again, which may have backed
// off while their API server was down: the next test counts on them.
func (f *fleet) settle(t *testing.T, member string) {
	t.Helper()
	c := f.members[member]
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "settle-"}}
	if err := c.Create(context.WithoutCancel(t.Context()), ns); err != nil {
		t.Fatal(err)
	}
	// Their informers wait for half a minute between two tries in the end, and they
	// make no account before they have seen all that there are.
	within(t, 3*patience, member+" makes accounts", func(ctx context.Context) error {
		return c.Get(ctx, client.ObjectKey{Namespace: ns.Name, Name: "default"}, &corev1.ServiceAccount{})
	})
	if err := c.Delete(context.WithoutCancel(t.Context()), ns); err != nil {
		t.Fatal(err)
	}
	within(t, 3*patience, member+" removes namespaces", func(ctx context.Context) error {
		err := c.Get(ctx, client.ObjectKeyFromObject(ns), ns)
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("%s is there (%w)", ns.Name, err)
	})
}

// killManager ends the controller-manager with SIGKILL. It is started again at
// the end of the test at the latest, and by the function that is returned.
func (f *fleet) killManager(t *testing.T) (restart func()) {
	t.Helper()
	f.sandbox(t, "kill", hubManager)
	back := false
	restart = func() {
		if !back {
			back = true
			f.sandbox(t, "restart", hubManager)
		}
	}
	t.Cleanup(restart)
	return restart
}

// ctl runs namesakectl against the hub.
func (f *fleet) ctl(ctx context.Context, command string, args ...string) (string, error) {
	return f.run(ctx, "namesakectl", append([]string{command, "--kubeconfig", f.hub.kubeconfig}, args...)...)
}

// hubPath is the kubeconfig of a member on the path that faults can cut.
func (f *fleet) hubPath(member string) string {
	return filepath.Join(f.dir, "hub-paths", member+".kubeconfig")
}

// component is what the sandbox knows of a component.
type component struct {
	Name  string `json:"name"`
	PID   int    `json:"pid"`
	State string `json:"state"`
}

// component returns the state of a component.
func (f *fleet) component(t *testing.T, name string) component {
	t.Helper()
	var status struct {
		Components []component `json:"components"`
	}
	if err := json.Unmarshal([]byte(f.sandbox(t, "status", "-o", "json")), &status); err != nil {
		t.Fatal(err)
	}
	for _, c := range status.Components {
		if c.Name == name {
			return c
		}
	}
	t.Fatalf("the fleet has no component %s", name)
	return component{}
}

// logTails returns the end of each log of the fleet.
func (f *fleet) logTails() string {
	paths, _ := filepath.Glob(filepath.Join(f.dir, "logs", "*.log"))
	var out strings.Builder
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil || len(bytes.TrimSpace(data)) == 0 {
			continue
		}
		lines := 8
		if strings.HasPrefix(filepath.Base(path), hubManager) || strings.HasSuffix(path, "-agent.log") {
			lines = 40
		}
		all := strings.Split(strings.TrimSpace(string(data)), "\n")
		fmt.Fprintf(&out, "the end of %s:\n%s\n\n", filepath.Base(path), strings.Join(all[max(0, len(all)-lines):], "\n"))
	}
	return out.String()
}

// guard takes a fleet down when its standard input ends: when we say so, and
// when this process dies, however it does.
type guard struct {
	cmd   *exec.Cmd
	input io.Closer
	log   *os.File
}

// startGuard starts the guard of a fleet that need not exist yet.
func startGuard(ctx context.Context, p programs, dir string) (*guard, error) {
	log, err := os.Create(dir + "-down.log")
	if err != nil {
		return nil, fmt.Errorf("making a log: %w", err)
	}
	// It outlives whatever context there is.
	cmd := exec.CommandContext(context.WithoutCancel(ctx), "sh", "-c", `read -r _; exec "$0" down --dir "$1"`, p.path("sandbox"), dir)
	// Neither an interrupt from the terminal nor a pipe that we no longer read
	// must end it.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Stdout, cmd.Stderr = log, log
	input, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("starting a guard: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting a guard: %w", err)
	}
	return &guard{cmd: cmd, input: input, log: log}, nil
}

// end has the fleet taken down and waits for it.
func (g *guard) end() error {
	defer g.log.Close()
	_ = g.input.Close() // closed twice when called twice
	if err := g.cmd.Wait(); err != nil {
		said, _ := os.ReadFile(g.log.Name())
		return fmt.Errorf("%w\n%s", err, said)
	}
	return nil
}
