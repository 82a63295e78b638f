package chaos

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

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
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

const (
	hubName    = "hub"
	hubManager = "controller-manager"
)

// cluster is one API server, as an administrator sees it.
type cluster struct {
	client.WithWatch
	name, kubeconfig string
	rest             *rest.RESTClient
}

// fleet is a hub and its members.
type fleet struct {
	bin, parent, dir string
	guard            *exec.Cmd
	guardInput       io.Closer
	hub              *cluster
	members          []*cluster
}

// startFleet brings a fleet up. When this process ends in any way, it is taken
// down.
func startFleet(ctx context.Context, members int) (_ *fleet, err error) {
	bin := os.Getenv("NAMESAKE_BIN")
	if bin == "" {
		bin = filepath.Join("..", "..", "bin")
	}
	if bin, err = filepath.Abs(bin); err != nil {
		return nil, fmt.Errorf("finding the programs: %w", err)
	}
	parent, err := os.MkdirTemp("", "chaos-")
	if err != nil {
		return nil, fmt.Errorf("making a folder for a fleet: %w", err)
	}
	f := &fleet{bin: bin, parent: parent, dir: filepath.Join(parent, "fleet")}
	if err := f.startGuard(ctx); err != nil {
		return nil, errors.Join(err, os.RemoveAll(parent))
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, f.down())
		}
	}()
	args := []string{"up", "--dir", f.dir, "--members", fmt.Sprint(members)}
	for _, arg := range []string{
		// A wish must be heard of while the hub is dead, too.
		"--webhook-bind-address=0",
		"--cluster-failure-threshold=4s", "--cluster-success-threshold=1s",
	} {
		args = append(args, "--controller-manager-arg", arg)
	}
	if _, err := f.run(ctx, "sandbox", args...); err != nil {
		return nil, fmt.Errorf("%w (the programs are made by `make build`)", err)
	}
	if f.hub, err = f.connect(hubName); err != nil {
		return nil, err
	}
	for i := range members {
		m, err := f.connect(fmt.Sprintf("member%d", i+1))
		if err != nil {
			return nil, err
		}
		f.members = append(f.members, m)
	}
	return f, f.withoutWebhooks(ctx)
}

// startGuard starts a process that takes the fleet down when its input ends: when
// we say so, and when this process dies, however it does.
func (f *fleet) startGuard(ctx context.Context) (err error) {
	f.guard = exec.CommandContext(context.WithoutCancel(ctx), "sh", "-c", `read -r _; exec "$0" down --dir "$1"`, f.program("sandbox"), f.dir)
	f.guard.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // an interrupt is not for it
	if f.guardInput, err = f.guard.StdinPipe(); err != nil {
		return fmt.Errorf("starting a guard: %w", err)
	}
	if err := f.guard.Start(); err != nil {
		return fmt.Errorf("starting a guard: %w", err)
	}
	return nil
}

// down takes the fleet down and removes its folder.
func (f *fleet) down() error {
	if err := errors.Join(f.guardInput.Close(), f.guard.Wait()); err != nil {
		return fmt.Errorf("taking the fleet down: %w", err)
	}
	return os.RemoveAll(f.parent)
}

func (f *fleet) program(name string) string { return filepath.Join(f.bin, name) }

// run runs a program to its end. The error has what it said.
func (f *fleet) run(ctx context.Context, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, f.program(name), args...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return stdout.String(), fmt.Errorf("%s %s: %w\n%s%s", name, strings.Join(args, " "), err, &stdout, &stderr)
	}
	return stdout.String(), nil
}

// sandbox runs a command of the sandbox on the fleet.
func (f *fleet) sandbox(ctx context.Context, command string, args ...string) error {
	_, err := f.run(ctx, "sandbox", append([]string{command, "--dir", f.dir}, args...)...)
	return err
}

// ctl runs namesakectl against the hub, for a member on the path that faults cut.
func (f *fleet) ctl(ctx context.Context, command, member string, args ...string) error {
	path := filepath.Join(f.dir, "hub-paths", member+".kubeconfig")
	_, err := f.run(ctx, "namesakectl", append([]string{command, member, "--kubeconfig", f.hub.kubeconfig, "--cluster-kubeconfig", path}, args...)...)
	return err
}

// connect returns a client for a cluster.
func (f *fleet) connect(name string) (*cluster, error) {
	c := &cluster{name: name, kubeconfig: filepath.Join(f.dir, name+".kubeconfig")}
	config, err := clientcmd.BuildConfigFromFlags("", c.kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("reading the kubeconfig of %s: %w", name, err)
	}
	config.QPS, config.WarningHandler = -1, rest.NoWarnings{}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, clusterv1alpha1.AddToScheme, networkingv1alpha1.AddToScheme,
		workv1alpha1.AddToScheme, workv1alpha2.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("making a scheme: %w", err)
		}
	}
	if c.WithWatch, err = client.NewWithWatch(config, client.Options{Scheme: scheme}); err != nil {
		return nil, fmt.Errorf("connecting to %s: %w", name, err)
	}
	if c.rest, err = rest.UnversionedRESTClientFor(unversioned(config)); err != nil {
		return nil, fmt.Errorf("connecting to %s: %w", name, err)
	}
	return c, nil
}

// unversioned is how paths beside the API are asked for.
func unversioned(config *rest.Config) *rest.Config {
	out := rest.CopyConfig(config)
	out.NegotiatedSerializer = clientgoscheme.Codecs.WithoutConversion()
	return out
}

// ready asks an API server whether it is.
func (c *cluster) ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, soon)
	defer cancel()
	if err := c.rest.Get().AbsPath("/readyz").Do(ctx).Error(); err != nil {
		return fmt.Errorf("asking %s whether it is ready: %w", c.name, err)
	}
	return nil
}

// member returns a member by name.
func (f *fleet) member(name string) *cluster {
	for _, m := range f.members {
		if m.name == name {
			return m
		}
	}
	return nil
}

// clusters are the hub and the members.
func (f *fleet) clusters() []*cluster { return append([]*cluster{f.hub}, f.members...) }

// status is what the sandbox says of the fleet.
type status struct {
	Components []struct {
		Name  string `json:"name"`
		State string `json:"state"`
	} `json:"components"`
}

// managerState returns the state of the controller-manager.
func (f *fleet) managerState(ctx context.Context) (string, error) {
	out, err := f.run(ctx, "sandbox", "status", "--dir", f.dir, "-o", "json")
	if err != nil {
		return "", err
	}
	var s status
	if err := json.Unmarshal([]byte(out), &s); err != nil {
		return "", fmt.Errorf("reading the status of the fleet: %w", err)
	}
	for _, c := range s.Components {
		if c.Name == hubManager {
			return c.State, nil
		}
	}
	return "", errors.New("the fleet has no " + hubManager)
}

// withoutWebhooks takes the webhooks' registration back: nobody answers them.
func (f *fleet) withoutWebhooks(ctx context.Context) error {
	name := metav1.ObjectMeta{Name: "namesake"}
	return errors.Join(
		client.IgnoreNotFound(f.hub.Delete(ctx, &admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: name})),
		client.IgnoreNotFound(f.hub.Delete(ctx, &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: name})),
	)
}

// managerLog returns the last lines of the controller-manager's log.
func (f *fleet) managerLog(lines int) string {
	text, err := os.ReadFile(filepath.Join(f.dir, "logs", hubManager+".log"))
	if err != nil {
		return err.Error()
	}
	all := strings.Split(strings.TrimSpace(string(text)), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}
