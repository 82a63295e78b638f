package agent

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	clusterv1alpha1 "github.com/namesake-io/namesake/api/cluster/v1alpha1"
	networkingv1alpha1 "github.com/namesake-io/namesake/api/networking/v1alpha1"
	workv1alpha1 "github.com/namesake-io/namesake/api/work/v1alpha1"
	"github.com/namesake-io/namesake/internal/apply"
	"github.com/namesake-io/namesake/internal/controller/endpointslicedispatch"
	"github.com/namesake-io/namesake/internal/member"
	"github.com/namesake-io/namesake/internal/serving"
	"github.com/namesake-io/namesake/internal/snapshot"
)

// startRetry is how soon a start is tried again for which an API server is missing.
const startRetry = time.Second

// NewScheme returns the kinds that an agent works with.
func NewScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, clusterv1alpha1.AddToScheme, workv1alpha1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("making a scheme: %w", err)
		}
	}
	return scheme, nil
}

// Run runs the agent until the context ends.
func Run(ctx context.Context, opts *Options) error {
	own, err := loadOwn(opts)
	if err != nil {
		return err
	}
	opts.metrics = metrics.Registry
	for _, c := range Collectors() {
		if err := opts.metrics.Register(c); err != nil {
			return fmt.Errorf("registering metrics: %w", err)
		}
	}
	return RunWith(ctx, own, opts)
}

// Collectors are the metrics that do not depend on a running agent.
func Collectors() []prometheus.Collector {
	return slices.Concat(apply.Collectors(), member.Collectors(), endpointslicedispatch.Collectors())
}

// AllCollectors are all metrics of an agent, those of a running one without values.
func AllCollectors() []prometheus.Collector {
	return append(Collectors(), member.NewRegistry(member.Options{}))
}

// RunWith runs the agent of a cluster until the context ends. It answers for its
// health from the start, however long it waits for its credential and the hub.
func RunWith(ctx context.Context, own *rest.Config, opts *Options) error {
	scheme, err := NewScheme()
	if err != nil {
		return err
	}
	servers, err := serving.New(own, scheme, metav1.NamespaceSystem,
		serving.Addresses{Metrics: opts.MetricsBindAddress, Health: opts.ProbeBindAddress})
	if err != nil {
		return err
	}
	told := &reported{}
	if err := servers.AddReadyzCheck("reported", told.check); err != nil {
		return fmt.Errorf("adding health checks: %w", err)
	}
	return servers.Beside(ctx, func(ctx context.Context) error {
		return runControllers(ctx, own, scheme, opts, told)
	})
}

// runControllers waits for the credential and the hub, and runs the controllers.
func runControllers(ctx context.Context, own *rest.Config, scheme *runtime.Scheme, opts *Options, told *reported) error {
	ownClient, err := client.New(own, client.Options{Scheme: scheme})
	if err != nil {
		return fmt.Errorf("making a client for the agent's own cluster: %w", err)
	}
	var cred *credential
	system := &corev1.Namespace{}
	err = await(ctx, "Waiting for the credential for the hub", func() (err error) {
		if cred, err = readCredential(ctx, ownClient, opts.credentialKey()); err != nil {
			return err
		}
		return ownClient.Get(ctx, client.ObjectKey{Name: metav1.NamespaceSystem}, system)
	})
	if err != nil {
		return err
	}
	path, err := member.NewPath(member.Config{
		Endpoint: cred.server, CABundle: cred.ca, Token: cred.token,
		Reload: func(ctx context.Context) (string, error) {
			fresh, err := readCredential(ctx, ownClient, opts.credentialKey())
			if err != nil {
				return "", err
			}
			return fresh.token, nil
		},
	}, opts.ClusterStatusUpdateFrequency)
	if err != nil {
		return err
	}
	pathCtx, leave := context.WithCancel(ctx)
	defer leave()
	go path.Run(pathCtx)

	hub := &rest.Config{Host: cred.server, WrapTransport: path.Wrap, QPS: opts.KubeAPIQPS, Burst: opts.KubeAPIBurst, UserAgent: "namesake-agent"}
	mgr, err := newManager(ctx, hub, scheme, cred.cluster)
	if err != nil {
		return err
	}
	// Nothing here depends on what providers are reachable: the hub has decided.
	interest := snapshot.NewInterest(networkingv1alpha1.UnreachableProviders{})
	members := member.NewRegistry(member.Options{
		Scheme: scheme, ProbeInterval: opts.ClusterStatusUpdateFrequency,
		QPS: opts.ClusterAPIQPS, Burst: opts.ClusterAPIBurst, Expected: interest.Has,
	})
	if opts.metrics != nil {
		if err := opts.metrics.Register(members); err != nil {
			return fmt.Errorf("registering metrics: %w", err)
		}
	}
	// After the manager: its controllers have ended when the connection does.
	defer members.Close()

	p := parts{
		mgr: mgr, opts: opts, own: own, ownClient: ownClient, ownID: string(system.UID), cluster: cred.cluster, hooks: &hooks{}, reported: told,
		source: snapshot.Source{Reader: mgr.GetClient(), Members: members, Interest: interest},
	}
	if err := addControllers(p); err != nil {
		return err
	}
	if err := p.hooks.install(ctx, mgr.GetCache(), p.source.Interest); err != nil {
		return err
	}
	if err := addRunnables(p, path, cred); err != nil {
		return err
	}
	klog.FromContext(ctx).Info("Starting", "cluster", cred.cluster, "hub", cred.server)
	if err := serving.Start(ctx, mgr); err != nil {
		return fmt.Errorf("running controllers: %w", err)
	}
	return nil
}

// addRunnables adds what keeps the hub's trust.
func addRunnables(p parts, path *member.Path, cred *credential) error {
	host, err := os.Hostname()
	if err != nil {
		return fmt.Errorf("making a name for this agent: %w", err)
	}
	hub := apply.NewWriter(p.mgr.GetClient(), "namesake-agent")
	runnables := []manager.Runnable{
		p.source.Members,
		manager.RunnableFunc(func(ctx context.Context) error {
			<-ctx.Done()
			path.Release()
			return nil
		}),
		&heartbeat{
			cluster: p.cluster, identity: fmt.Sprintf("%s_%d", host, os.Getpid()),
			interval: p.opts.ClusterLeaseRenewInterval, members: p.source.Members, writer: hub,
		},
		&renewer{
			key: p.opts.credentialKey(), ttl: p.opts.CredentialTTL, expires: cred.expires, own: p.ownClient, hub: hub, path: path,
			account: types.NamespacedName{Namespace: clusterv1alpha1.ExecutionNamespace(p.cluster), Name: clusterv1alpha1.AgentName},
		},
	}
	var errs []error
	for _, r := range runnables {
		errs = append(errs, p.mgr.Add(r))
	}
	return errors.Join(errs...)
}

// newManager returns a manager whose cache holds no more of the hub than is the
// agent's own. It is only made once the hub answers.
func newManager(ctx context.Context, hub *rest.Config, scheme *runtime.Scheme, cluster string) (ctrl.Manager, error) {
	timeout, anyName := serving.StopTimeout, true
	mgr, err := ctrl.NewManager(hub, ctrl.Options{
		Scheme: scheme,
		Cache: cache.Options{
			DefaultTransform: cache.TransformStripManagedFields(),
			ByObject: map[client.Object]cache.ByObject{
				&workv1alpha1.Work{}:       {Namespaces: map[string]cache.Config{clusterv1alpha1.ExecutionNamespace(cluster): {}}},
				&clusterv1alpha1.Cluster{}: {Field: fields.OneTermEqualSelector("metadata.name", cluster)},
			},
		},
		Client:                  client.Options{Cache: &client.CacheOptions{DisableFor: []client.Object{&corev1.Secret{}}}},
		Metrics:                 metricsserver.Options{BindAddress: "0"}, // the servers are others
		GracefulShutdownTimeout: &timeout,
		// A process may hold a hub and agents, as tests do.
		Controller: config.Controller{SkipNameValidation: &anyName},
	})
	if err != nil {
		return nil, fmt.Errorf("making a manager: %w", err)
	}
	err = await(ctx, "Waiting for the hub", func() error {
		return snapshot.IndexWorks(ctx, mgr.GetFieldIndexer())
	})
	return mgr, err
}

// await repeats a step of the start until it succeeds: whoever starts the agent
// need not care what is up before it.
func await(ctx context.Context, what string, step func() error) error {
	told := ""
	for {
		err := step()
		if err == nil {
			return nil
		}
		if err.Error() != told {
			told = err.Error()
			klog.FromContext(ctx).Info(what, "reason", told)
		}
		timer := time.NewTimer(startRetry)
		select {
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		case <-timer.C:
		}
	}
}

// loadOwn returns how to reach the agent's own cluster.
func loadOwn(opts *Options) (*rest.Config, error) {
	if opts.MemberKubeconfig == "" {
		config, err := rest.InClusterConfig()
		if err != nil {
			return nil, fmt.Errorf("finding the agent's own cluster: %w (outside of a pod, say --member-kubeconfig)", err)
		}
		return config, nil
	}
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(
		&clientcmd.ClientConfigLoadingRules{ExplicitPath: opts.MemberKubeconfig},
		&clientcmd.ConfigOverrides{CurrentContext: opts.MemberContext}).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("reading the kubeconfig of the agent's own cluster (--member-kubeconfig %q): %w", opts.MemberKubeconfig, err)
	}
	if config.BearerToken == "" && config.BearerTokenFile == "" {
		return nil, fmt.Errorf("the kubeconfig %q has no token: 'namesakectl register --agent-kubeconfig' writes one that has", opts.MemberKubeconfig)
	}
	return config, nil
}
