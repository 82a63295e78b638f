package target

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/discovery"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/namesake-io/namesake/api/cluster/v1alpha1"
	networkingv1alpha1 "github.com/namesake-io/namesake/api/networking/v1alpha1"
	workv1alpha1 "github.com/namesake-io/namesake/api/work/v1alpha1"
)

// FieldManager is the name under which namesakectl writes.
const FieldManager = "namesakectl"

// requestTimeout bounds one request, so that an API server that swallows
// packets costs seconds and not minutes.
const requestTimeout = 10 * time.Second

// The two roles of a Target, as they are written in messages.
const (
	RoleHub    = "hub"
	RoleMember = "member"
)

// Target is an API server.
type Target struct {
	// Role is RoleHub or RoleMember.
	Role string
	// Kubeconfig says which file it was found in, for messages.
	Kubeconfig string
	// Context of the kubeconfig.
	Context string
	// Cluster is the kubeconfig's entry for the API server, with files as paths.
	Cluster *clientcmdapi.Cluster
	// Config is what Client was made from; files are read into it.
	Config *rest.Config
	// Client reads and writes directly, without a cache.
	Client client.Client
}

// URL of the API server.
func (t *Target) URL() string { return t.Config.Host }

func (t *Target) String() string { return t.Role + " " + t.URL() }

// Discovery returns a client for what the API server says of itself.
func (t *Target) Discovery() (*discovery.DiscoveryClient, error) {
	d, err := discovery.NewDiscoveryClientForConfig(t.Config)
	if err != nil {
		return nil, fmt.Errorf("making a discovery client for the %s: %w", t, err)
	}
	return d, nil
}

// ID identifies the cluster itself, however it is named or reached: the UID of
// its kube-system namespace.
func (t *Target) ID(ctx context.Context) (string, error) {
	var namespace corev1.Namespace
	if err := t.Client.Get(ctx, client.ObjectKey{Name: "kube-system"}, &namespace); err != nil {
		return "", fmt.Errorf("reading namespace kube-system, whose UID identifies the %s: %w", t.Role, err)
	}
	return string(namespace.UID), nil
}

// Scheme knows the kinds that namesakectl handles.
func Scheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	err := errors.Join(
		clientgoscheme.AddToScheme(scheme),
		clusterv1alpha1.AddToScheme(scheme),
		networkingv1alpha1.AddToScheme(scheme),
		workv1alpha1.AddToScheme(scheme),
	)
	if err != nil {
		return nil, fmt.Errorf("building the scheme: %w", err)
	}
	return scheme, nil
}

// Member returns the API server of a kubeconfig file; an empty context means
// the file's current one. Warnings of the API server go to warnings.
func Member(file, contextName string, warnings io.Writer) (*Target, error) {
	rules := &clientcmd.ClientConfigLoadingRules{ExplicitPath: file}
	overrides := &clientcmd.ConfigOverrides{CurrentContext: contextName}
	loader := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, overrides)
	return load(&Target{Role: RoleMember, Kubeconfig: file, Context: contextName}, loader, warnings)
}

// Remote returns a hub that no kubeconfig names.
func Remote(config *rest.Config, warnings io.Writer) (*Target, error) {
	return (&Target{Role: RoleHub}).use(config, warnings)
}

// load fills t from a kubeconfig. It opens no connection.
func load(t *Target, loader clientcmd.ClientConfig, warnings io.Writer) (*Target, error) {
	raw, err := loader.RawConfig()
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", t.source(), err)
	}
	if t.Context == "" {
		t.Context = raw.CurrentContext
	}
	if t.Cluster, err = clusterOf(raw, t.Context); err != nil {
		return nil, fmt.Errorf("reading %s: %w", t.source(), err)
	}
	config, err := loader.ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", t.source(), err)
	}
	if err := rest.LoadTLSFiles(config); err != nil {
		return nil, fmt.Errorf("reading %s: %w", t.source(), err)
	}
	return t.use(config, warnings)
}

// use makes the client of t.
func (t *Target) use(config *rest.Config, warnings io.Writer) (*Target, error) {
	config.Timeout = requestTimeout
	// A person waits for a handful of requests: the API server's own fairness
	// is the limit.
	config.QPS = -1
	config.UserAgent = FieldManager
	config.WarningHandlerWithContext = warningWriter{out: warnings}
	t.Config = config

	scheme, err := Scheme()
	if err != nil {
		return nil, err
	}
	t.Client, err = client.New(config, client.Options{Scheme: scheme, FieldOwner: FieldManager})
	if err != nil {
		return nil, fmt.Errorf("making a client for the %s: %w", t, err)
	}
	return t, nil
}

// clusterOf returns the entry for the API server of a context.
func clusterOf(raw clientcmdapi.Config, name string) (*clientcmdapi.Cluster, error) {
	if name == "" {
		return nil, errors.New("it has no current-context and none was named")
	}
	entry, found := raw.Contexts[name]
	if !found {
		return nil, fmt.Errorf("it has no context %q", name)
	}
	cluster, found := raw.Clusters[entry.Cluster]
	if !found {
		return nil, fmt.Errorf("its context %q names the cluster %q, which it does not have", name, entry.Cluster)
	}
	return cluster, nil
}

// source names where the connection comes from, for messages.
func (t *Target) source() string {
	switch {
	case t.Kubeconfig == "" && t.Context == "":
		return "the kubeconfig of the " + t.Role
	case t.Context == "":
		return "kubeconfig " + t.Kubeconfig
	default:
		return fmt.Sprintf("kubeconfig %s, context %s", t.Kubeconfig, t.Context)
	}
}

// warningWriter passes on what an API server warns of.
type warningWriter struct{ out io.Writer }

func (w warningWriter) HandleWarningHeaderWithContext(_ context.Context, code int, _, text string) {
	const miscellaneous = 299 // the only code that Kubernetes gives a meaning
	if code == miscellaneous && text != "" {
		fmt.Fprintf(w.out, "warning: %s\n", strings.TrimSpace(text))
	}
}
