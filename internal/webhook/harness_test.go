package webhook

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/yaml"

	clusterv1alpha1 "github.com/namesake-io/namesake/api/cluster/v1alpha1"
	networkingv1alpha1 "github.com/namesake-io/namesake/api/networking/v1alpha1"
	"github.com/namesake-io/namesake/charts"
	"github.com/namesake-io/namesake/internal/webhook/certificate"
)

// assets names the folder of the API server and its etcd.
const assets = "KUBEBUILDER_ASSETS"

// hub is the real API server of these tests, nil without assets; errHub is why it
// did not start.
var (
	hub    *rest.Config
	errHub error
)

func TestMain(m *testing.M) {
	env := &envtest.Environment{CRDDirectoryPaths: []string{"../../charts/namesake/crds"}, ErrorIfCRDPathMissing: true}
	ctrl.SetLogger(klog.Background())
	if os.Getenv(assets) != "" {
		if hub, errHub = env.Start(); errHub == nil {
			errHub = prepare()
		}
	}
	m.Run()
	if hub != nil {
		if err := env.Stop(); err != nil {
			panic(err)
		}
	}
}

// prepare makes the namespace that an installation makes.
func prepare() error {
	c, err := client.New(hub, client.Options{})
	if err != nil {
		return err
	}
	return c.Create(context.Background(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: clusterv1alpha1.SystemNamespace}})
}

func scheme(t *testing.T) *runtime.Scheme {
	t.Helper()
	s := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(s), clusterv1alpha1.AddToScheme(s), networkingv1alpha1.AddToScheme(s)); err != nil {
		t.Fatal(err)
	}
	return s
}

// user is somebody with a client, who is told warnings.
type user struct {
	client.Client
	mu       sync.Mutex
	warnings []string
}

func (u *user) HandleWarningHeader(_ int, _, text string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.warnings = append(u.warnings, text)
}

// told returns the warnings since it was last asked.
func (u *user) told() (out []string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	out, u.warnings = u.warnings, nil
	return out
}

func newUser(t *testing.T) *user {
	t.Helper()
	if os.Getenv(assets) == "" {
		t.Fatalf("this test needs a real API server (%s): run make test", assets)
	}
	if errHub != nil {
		t.Fatal(errHub)
	}
	u := &user{}
	config := rest.CopyConfig(hub)
	config.WarningHandler = u
	var err error
	if u.Client, err = client.New(config, client.Options{Scheme: scheme(t)}); err != nil {
		t.Fatal(err)
	}
	return u
}

// clock is one that tests turn.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) set(now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = now
}

// freePort returns a port of loopback that was free a moment ago.
func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	address, ok := l.Addr().(*net.TCPAddr)
	if !ok {
		t.Fatalf("%T is no address", l.Addr())
	}
	return address.Port
}

// serve runs a manager with the webhooks until the test ends, and returns its
// address. It takes part in the election of a leader, and may lose it.
func serve(t *testing.T, opts Options, enabled bool) string {
	t.Helper()
	opts.BindAddress = net.JoinHostPort("127.0.0.1", strconv.Itoa(freePort(t)))
	mgr, err := ctrl.NewManager(hub, ctrl.Options{
		Scheme: scheme(t), Metrics: metricsserver.Options{BindAddress: "0"}, HealthProbeBindAddress: "0",
		LeaderElection: true, LeaderElectionID: "webhook-test", LeaderElectionNamespace: clusterv1alpha1.SystemNamespace,
		LeaderElectionReleaseOnCancel: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := Add(mgr, opts, enabled); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("the manager ended: %v", err)
		}
	})
	return opts.BindAddress
}

// configurations are both webhook configurations, with the URL of a server.
func configurations(t *testing.T, address string) (out []*unstructured.Unstructured) {
	t.Helper()
	decoder := utilyaml.NewYAMLOrJSONDecoder(strings.NewReader(string(charts.Webhooks)), len(charts.Webhooks))
	for {
		obj := &unstructured.Unstructured{}
		if err := decoder.Decode(&obj.Object); errors.Is(err, io.EOF) {
			return out
		} else if err != nil {
			t.Fatal(err)
		}
		for _, webhook := range webhooksOf(t, obj) {
			path, _, _ := unstructured.NestedString(webhook, "clientConfig", "service", "path")
			webhook["clientConfig"] = map[string]any{"url": "https://" + address + path}
		}
		out = append(out, obj)
	}
}

// webhooksOf are those of a configuration, to be changed.
func webhooksOf(t *testing.T, obj *unstructured.Unstructured) (out []map[string]any) {
	t.Helper()
	list, _ := obj.Object["webhooks"].([]any)
	for _, w := range list {
		webhook, ok := w.(map[string]any)
		if !ok {
			t.Fatalf("%v is no webhook", w)
		}
		out = append(out, webhook)
	}
	return out
}

// register registers the webhooks of a server until the test ends, and waits until
// the API server asks them.
func register(t *testing.T, u *user, address string) {
	t.Helper()
	for _, c := range configurations(t, address) {
		if err := u.Create(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { unregister(t, u) })
	asked(t, u)
}

func unregister(t *testing.T, u *user) {
	t.Helper()
	for _, c := range configurations(t, "") {
		if err := client.IgnoreNotFound(u.Delete(context.Background(), c)); err != nil {
			t.Error(err)
		}
	}
	// The API server forgets a moment later.
	eventually(t, "the API server asks nobody any more", func() error {
		obj := parse(t, `{apiVersion: networking.karmada.io/v1alpha1, kind: MultiClusterService, metadata: {name: probe, namespace: default}, spec: {types: [CrossCluster]}}`)
		if err := u.Create(context.Background(), obj, client.DryRunAll); err != nil {
			return err
		}
		if obj.GetLabels()[networkingv1alpha1.PermanentIDLabel] != "" {
			return errors.New("an object got an id")
		}
		return nil
	})
}

// asked waits until the API server asks all the webhooks.
func asked(t *testing.T, u *user) {
	t.Helper()
	eventually(t, "the API server asks the webhooks", func() error {
		bad := parse(t, `{apiVersion: networking.karmada.io/v1alpha1, kind: MultiClusterService, metadata: {name: probe, namespace: default},
			spec: {types: [CrossCluster], providerClusters: [{labelSelector: {matchExpressions: [{key: a, operator: Near}]}}]}}`)
		if err := u.Create(t.Context(), bad, client.DryRunAll); err == nil || !strings.Contains(err.Error(), "validate.multiclusterservice.namesake.io\" denied") && !strings.Contains(err.Error(), "feature gate") {
			return fmt.Errorf("a bad MultiClusterService: %w", err)
		}
		bad = parse(t, `{apiVersion: cluster.karmada.io/v1alpha1, kind: Cluster, metadata: {name: probe}, spec: {syncMode: Push, apiEndpoint: "a b"}}`)
		if err := u.Create(t.Context(), bad, client.DryRunAll); err == nil {
			return errors.New("a bad Cluster passes")
		}
		good := parse(t, `{apiVersion: networking.karmada.io/v1alpha1, kind: MultiClusterService, metadata: {name: probe, namespace: default}, spec: {types: [CrossCluster]}}`)
		if err := u.Create(t.Context(), good, client.DryRunAll); err == nil && good.GetLabels()[networkingv1alpha1.PermanentIDLabel] == "" {
			return errors.New("an object got no id")
		}
		return nil
	})
	u.told()
}

// eventually polls for half a minute.
func eventually(t *testing.T, what string, try func() error) {
	t.Helper()
	var last error
	if err := wait.PollUntilContextTimeout(context.Background(), 20*time.Millisecond, 30*time.Second, true, func(context.Context) (bool, error) {
		last = try()
		return last == nil, nil
	}); err != nil {
		t.Fatalf("waiting until %s: %v", what, last)
	}
}

func parse(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	obj := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &obj.Object); err != nil {
		t.Fatal(err)
	}
	return obj
}

// bundles returns the caBundle of each webhook.
func bundles(t *testing.T, u *user) (out [][]byte) {
	t.Helper()
	var mutating admissionregistrationv1.MutatingWebhookConfiguration
	var validating admissionregistrationv1.ValidatingWebhookConfiguration
	key := client.ObjectKey{Name: certificate.ConfigurationName}
	if err := errors.Join(u.Get(t.Context(), key, &mutating), u.Get(t.Context(), key, &validating)); err != nil {
		t.Fatal(err)
	}
	for _, w := range mutating.Webhooks {
		out = append(out, w.ClientConfig.CABundle)
	}
	for _, w := range validating.Webhooks {
		out = append(out, w.ClientConfig.CABundle)
	}
	return out
}

// believed connects to a server as the API server does, and returns the serial
// number of its certificate.
func believed(t *testing.T, u *user, address string) (serial string, err error) {
	t.Helper()
	for _, bundle := range bundles(t, u) {
		pool := x509.NewCertPool()
		pool.AppendCertsFromPEM(bundle)
		conn, err := (&tls.Dialer{Config: &tls.Config{RootCAs: pool}}).DialContext(t.Context(), "tcp", address)
		if err != nil {
			return "", err
		}
		secured, ok := conn.(*tls.Conn)
		if !ok {
			return "", fmt.Errorf("%T has no certificate", conn)
		}
		serial = secured.ConnectionState().PeerCertificates[0].SerialNumber.String()
		if err := conn.Close(); err != nil {
			return "", err
		}
	}
	return serial, nil
}

// secret is the authority, nil when there is none.
func secret(t *testing.T, u *user) *corev1.Secret {
	t.Helper()
	out := &corev1.Secret{}
	err := u.Get(t.Context(), client.ObjectKey{Namespace: clusterv1alpha1.SystemNamespace, Name: certificate.SecretName}, out)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	return out
}
