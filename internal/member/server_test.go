package member

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// assets names the folder of the API server and its etcd.
const assets = "KUBEBUILDER_ASSETS"

// waitAtMost bounds how long a test waits for what an API server does.
const waitAtMost = 30 * time.Second

// server is a real API server, with a token that may do everything.
type server struct {
	env    *envtest.Environment
	config *rest.Config
	admin  client.Client
	token  string
}

var (
	serverOnce sync.Once
	shared     server
	errServer  error
)

// needServer returns the API server that the tests of this package share.
func needServer(t *testing.T) *server {
	t.Helper()
	if os.Getenv(assets) == "" {
		t.Fatalf("this test needs a real API server (%s): run make test", assets)
	}
	serverOnce.Do(func() { errServer = shared.start(context.Background()) })
	if errServer != nil {
		t.Fatal(errServer)
	}
	return &shared
}

func stopServer() {
	if shared.env == nil {
		return
	}
	if err := shared.env.Stop(); err != nil {
		fmt.Fprintln(os.Stderr, "stopping the API server:", err)
	}
}

func (s *server) start(ctx context.Context) (err error) {
	s.env = &envtest.Environment{}
	if s.config, err = s.env.Start(); err != nil {
		return fmt.Errorf("starting an API server: %w", err)
	}
	if s.admin, err = client.New(s.config, client.Options{Scheme: clientgoscheme.Scheme}); err != nil {
		return err
	}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "namesake"}}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "namesake"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: account.Namespace, Name: account.Name}},
	}
	for _, obj := range []client.Object{account, binding} {
		if err := s.admin.Create(ctx, obj); err != nil {
			return err
		}
	}
	request := &authenticationv1.TokenRequest{}
	if err := s.admin.SubResource("token").Create(ctx, account, request); err != nil {
		return err
	}
	s.token = request.Status.Token
	return nil
}

// member is how to connect to the server, as member a.
func (s *server) member(endpoint string) Config {
	return Config{ID: ID{Name: "a", UID: "1"}, Endpoint: endpoint, CABundle: s.config.CAData, Token: s.token}
}

// host is where the server listens.
func (s *server) host() string {
	_, host, _ := strings.Cut(strings.TrimSuffix(s.config.Host, "/"), "://")
	return host
}

func (s *server) create(t *testing.T, obj client.Object) {
	t.Helper()
	if err := s.admin.Create(t.Context(), obj); err != nil {
		t.Fatal(err)
	}
}

// namespace makes a new one for the test.
func (s *server) namespace(t *testing.T) string {
	t.Helper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}}
	s.create(t, ns)
	return ns.Name
}

// path is a way to the server that can be cut: connections break, and new ones
// are refused.
type path struct {
	address, target string

	mu       sync.Mutex
	listener net.Listener
	open     map[net.Conn]bool
	running  sync.WaitGroup
}

func newPath(t *testing.T, target string) *path {
	t.Helper()
	p := &path{address: "127.0.0.1:0", target: target, open: map[net.Conn]bool{}}
	p.restore(t)
	t.Cleanup(func() { p.cut(); p.running.Wait() })
	return p
}

func (p *path) restore(t *testing.T) {
	t.Helper()
	listener, err := net.Listen("tcp", p.address)
	if err != nil {
		t.Fatal(err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.address, p.listener = listener.Addr().String(), listener
	p.running.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			p.running.Go(func() { p.carry(conn) })
		}
	})
}

func (p *path) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.listener.Close()
	for conn := range p.open {
		conn.Close()
	}
}

func (p *path) carry(conn net.Conn) {
	onward, err := net.Dial("tcp", p.target)
	if err != nil {
		conn.Close()
		return
	}
	p.mu.Lock()
	p.open[conn], p.open[onward] = true, true
	p.mu.Unlock()
	var both sync.WaitGroup
	pump := func(to, from net.Conn) {
		_, _ = io.Copy(to, from)
		to.Close()
		from.Close()
	}
	both.Go(func() { pump(conn, onward) })
	both.Go(func() { pump(onward, conn) })
	both.Wait()
	p.mu.Lock()
	delete(p.open, conn)
	delete(p.open, onward)
	p.mu.Unlock()
}
