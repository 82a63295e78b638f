package dataplane

import (
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
	"time"

	"k8s.io/client-go/kubernetes"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	networkingv1alpha1 "github.com/namesake-io/namesake/api/networking/v1alpha1"
)

var members = []string{"member1", "member2", "member3"}

// cluster is one API server.
type cluster struct {
	kubernetes.Interface
	client client.Client
}

// fleet is the one that all tests share.
type fleet struct {
	bin, dir string
	clusters map[string]*cluster
}

// shared is nil without root.
var shared *fleet

func TestMain(m *testing.M) {
	os.Exit(run(m))
}

func run(m *testing.M) (code int) {
	if os.Geteuid() != 0 {
		return m.Run() // each test says why it is skipped
	}
	f, err := start()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	shared = f.fleet
	if err := readNamespacePrefix(f.fleet); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	defer func() {
		if err := errors.Join(f.end(), checkNothingLeft(f.dir)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
		if code == 0 {
			_ = os.RemoveAll(f.parent) // logs are of no use any more
		}
	}()
	return max(code, m.Run())
}

// guarded is a fleet that is taken down when this process ends, however it does:
// the guard waits for the end of its input.
type guarded struct {
	*fleet
	parent string
	guard  *exec.Cmd
	input  io.Closer
}

func start() (*guarded, error) {
	bin := os.Getenv("NAMESAKE_BIN")
	if bin == "" {
		bin = filepath.Join("..", "..", "..", "bin")
	}
	bin, err := filepath.Abs(bin)
	if err != nil {
		return nil, err
	}
	parent, err := os.MkdirTemp("", "e2e-dataplane-")
	if err != nil {
		return nil, err
	}
	g := &guarded{fleet: &fleet{bin: bin, dir: filepath.Join(parent, "fleet"), clusters: map[string]*cluster{}}, parent: parent}
	g.guard = exec.CommandContext(context.Background(), "sh", "-c", `read -r _; exec "$0" down --dir "$1"`, g.program(), g.dir)
	g.guard.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Ctrl-C is not for it
	if g.input, err = g.guard.StdinPipe(); err != nil {
		return nil, err
	}
	if err := g.guard.Start(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	if out, err := exec.CommandContext(ctx, g.program(), "up", "--dir", g.dir, "--members", fmt.Sprint(len(members)), "--data-plane").CombinedOutput(); err != nil {
		return nil, errors.Join(fmt.Errorf("starting the fleet: %w\n%s", err, out), g.end())
	}
	for _, name := range append([]string{"hub"}, members...) {
		if g.clusters[name], err = connect(filepath.Join(g.dir, name+".kubeconfig")); err != nil {
			return nil, errors.Join(err, g.end())
		}
	}
	return g, nil
}

func (g *guarded) end() error {
	if err := g.input.Close(); err != nil {
		return err
	}
	if err := g.guard.Wait(); err != nil {
		return fmt.Errorf("taking the fleet down: %w", err)
	}
	return nil
}

func connect(kubeconfig string) (*cluster, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, err
	}
	config.QPS = -1
	config.WarningHandler = rest.NoWarnings{}
	clientset, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	if err := networkingv1alpha1.AddToScheme(clientgoscheme.Scheme); err != nil {
		return nil, err
	}
	c, err := client.New(config, client.Options{Scheme: clientgoscheme.Scheme})
	return &cluster{Interface: clientset, client: c}, err
}

// program is the path of the sandbox.
func (f *fleet) program() string { return filepath.Join(f.bin, "sandbox") }

// networkNamespaces lists the machine's named network namespaces.
func networkNamespaces() ([]string, error) {
	entries, err := os.ReadDir("/run/netns")
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names, err
}

// checkNothingLeft wants no process, namespace, link, table or mount of the
// fleet that was in dir.
func checkNothingLeft(dir string) error {
	var errs []error
	processes, err := filepath.Glob("/proc/[0-9]*/environ")
	errs = append(errs, err)
	for _, p := range processes {
		data, err := os.ReadFile(p)
		if err == nil && strings.Contains(string(data), "NAMESAKE_SANDBOX_DIR="+dir+"\x00") {
			errs = append(errs, fmt.Errorf("process left: %s", p))
		}
	}
	names, err := networkNamespaces()
	errs = append(errs, err)
	for _, n := range names {
		if prefix := namespacePrefix; prefix != "" && strings.HasPrefix(n, prefix) {
			errs = append(errs, fmt.Errorf("network namespace left: %s", n))
		}
	}
	mounts, err := os.ReadFile("/proc/self/mounts")
	errs = append(errs, err)
	if strings.Contains(string(mounts), dir) || namespacePrefix != "" && strings.Contains(string(mounts), namespacePrefix) {
		errs = append(errs, fmt.Errorf("mount left in:\n%s", mounts))
	}
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		errs = append(errs, err)
	}
	for _, e := range entries {
		if e.Name() != "logs" {
			errs = append(errs, fmt.Errorf("file left: %s", e.Name()))
		}
	}
	return errors.Join(errs...)
}

// namespacePrefix begins the names of the fleet's network namespaces; a test
// reads it while the fleet is up.
var namespacePrefix string

// readNamespacePrefix learns how the fleet's namespaces are called.
func readNamespacePrefix(f *fleet) error {
	data, err := os.ReadFile(filepath.Join(f.dir, "network.json"))
	if err != nil {
		return err
	}
	var network struct {
		Fabric string `json:"fabric"`
	}
	if err := json.Unmarshal(data, &network); err != nil {
		return err
	}
	namespacePrefix = strings.TrimSuffix(network.Fabric, "fabric")
	return nil
}
