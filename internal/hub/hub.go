package hub

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/uuid"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	coordinationv1 "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	clusterv1alpha1 "github.com/namesake-io/namesake/api/cluster/v1alpha1"
	networkingv1alpha1 "github.com/namesake-io/namesake/api/networking/v1alpha1"
	workv1alpha1 "github.com/namesake-io/namesake/api/work/v1alpha1"
	workv1alpha2 "github.com/namesake-io/namesake/api/work/v1alpha2"
	"github.com/namesake-io/namesake/internal/apply"
	"github.com/namesake-io/namesake/internal/controller/binding"
	"github.com/namesake-io/namesake/internal/controller/cluster"
	"github.com/namesake-io/namesake/internal/controller/endpointslicedispatch"
	"github.com/namesake-io/namesake/internal/controller/multiclusterservice"
	"github.com/namesake-io/namesake/internal/feature"
	"github.com/namesake-io/namesake/internal/member"
	"github.com/namesake-io/namesake/internal/snapshot"
	"github.com/namesake-io/namesake/internal/webhook"
)

// stopTimeout is how long work that is under way may take when the process ends.
const stopTimeout = 15 * time.Second

// leaseName is the name of the lease that the leader holds.
const leaseName = "namesake-controller-manager"

// NewScheme returns the kinds that the hub works with.
func NewScheme() (*runtime.Scheme, error) {
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

// Run runs the controller-manager until the context ends.
func Run(ctx context.Context, opts *Options) error {
	config, err := loadConfig(opts)
	if err != nil {
		return err
	}
	for _, c := range Collectors() {
		if err := metrics.Registry.Register(c); err != nil {
			return fmt.Errorf("registering metrics: %w", err)
		}
	}
	return RunWith(ctx, config, opts)
}

// RunWith runs the controllers against a hub until the context ends.
func RunWith(ctx context.Context, config *rest.Config, opts *Options) error {
	scheme, err := NewScheme()
	if err != nil {
		return err
	}
	mgr, err := newManager(config, scheme, opts)
	if err != nil {
		return err
	}
	if err := checkKinds(mgr.GetRESTMapper()); err != nil {
		return err
	}
	indexer := mgr.GetFieldIndexer()
	if err := errors.Join(snapshot.IndexWorks(ctx, indexer), cluster.Index(ctx, indexer), binding.Index(ctx, indexer)); err != nil {
		return err
	}

	members := member.NewRegistry(member.Options{
		Scheme: scheme, ProbeInterval: opts.ClusterStatusUpdateFrequency,
		QPS: opts.ClusterAPIQPS, Burst: opts.ClusterAPIBurst,
	})
	unregister, err := register(members)
	if err != nil {
		return err
	}
	defer unregister()
	// After the manager: its controllers have ended when connections do.
	defer members.Close()

	p := parts{
		mgr: mgr, opts: opts, hooks: &hooks{},
		source: snapshot.Source{Reader: mgr.GetClient(), Members: members, Interest: snapshot.NewInterest()},
	}
	defer func() {
		for _, call := range p.hooks.stop {
			call()
		}
	}()
	if err := addControllers(ctx, p); err != nil {
		return err
	}
	if err := p.hooks.install(ctx, mgr.GetCache(), p.source.Interest); err != nil {
		return err
	}
	if opts.Webhook.Enabled() {
		if err := webhook.Add(mgr, opts.Webhook, opts.Features.Enabled(feature.MultiClusterService)); err != nil {
			return err
		}
	}
	klog.FromContext(ctx).Info("Starting", "hub", config.Host)
	if err := mgr.Start(ctx); err != nil {
		return fmt.Errorf("running controllers: %w", err)
	}
	return nil
}

// Collectors are the metrics that do not depend on a running hub.
func Collectors() []prometheus.Collector {
	return slices.Concat(apply.Collectors(), multiclusterservice.Collectors(), endpointslicedispatch.Collectors())
}

// AllCollectors are all metrics of a hub, those of a running one without values.
func AllCollectors() []prometheus.Collector {
	idle := endpointslicedispatch.New(snapshot.Source{Members: member.NewRegistry(member.Options{})}, nil, nil)
	return append(Collectors(), member.NewRegistry(member.Options{}), idle.Services())
}

// register registers a metric of this run, and returns how to take it back.
func register(c prometheus.Collector) (unregister func(), err error) {
	if err := metrics.Registry.Register(c); err != nil {
		return nil, fmt.Errorf("registering metrics: %w", err)
	}
	return func() { metrics.Registry.Unregister(c) }, nil
}

// newManager returns a manager with the hub's caches.
func newManager(config *rest.Config, scheme *runtime.Scheme, opts *Options) (ctrl.Manager, error) {
	timeout := stopTimeout
	lock, err := newLock(config, opts)
	if err != nil {
		return nil, err
	}
	mgr, err := ctrl.NewManager(config, ctrl.Options{
		Scheme: scheme,
		Cache: cache.Options{
			DefaultTransform: cache.TransformStripManagedFields(),
			ByObject: map[client.Object]cache.ByObject{
				// Nobody else's Secrets are read or kept.
				&corev1.Secret{}: {Namespaces: map[string]cache.Config{clusterv1alpha1.SystemNamespace: {}}},
			},
		},
		Client:                 client.Options{Cache: &client.CacheOptions{Unstructured: true}},
		Metrics:                metricsserver.Options{BindAddress: opts.MetricsBindAddress},
		HealthProbeBindAddress: opts.ProbeBindAddress,
		PprofBindAddress:       opts.PprofBindAddress,
		LeaderElection:         opts.LeaderElect,
		// With a lock of ours, for its identity.
		LeaderElectionResourceLockInterface: lock,
		LeaderElectionReleaseOnCancel:       true,
		LeaseDuration:                       &opts.LeaseDuration,
		RenewDeadline:                       &opts.RenewDeadline,
		RetryPeriod:                         &opts.RetryPeriod,
		GracefulShutdownTimeout:             &timeout,
	})
	if err != nil {
		return nil, fmt.Errorf("making a manager: %w", err)
	}
	if err := errors.Join(mgr.AddHealthzCheck("ping", healthz.Ping), mgr.AddReadyzCheck("ping", healthz.Ping)); err != nil {
		return nil, fmt.Errorf("adding health checks: %w", err)
	}
	return mgr, nil
}

// newLock returns the lease that the leader holds.
func newLock(config *rest.Config, opts *Options) (resourcelock.Interface, error) {
	identity := opts.LeaderElectIdentity
	if identity == "" {
		host, err := os.Hostname()
		if err != nil {
			return nil, fmt.Errorf("making a name for this replica: %w", err)
		}
		identity = host + "_" + string(uuid.NewUUID())
	}
	// A client of its own: a queue of other requests must not cost the lease.
	config = rest.AddUserAgent(config, "leader-election")
	config.Timeout = opts.RenewDeadline / 2
	client, err := coordinationv1.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making a client for the lease: %w", err)
	}
	return &resourcelock.LeaseLock{
		LeaseMeta:  metav1.ObjectMeta{Namespace: opts.LeaderElectNamespace, Name: leaseName},
		Client:     client,
		LockConfig: resourcelock.ResourceLockConfig{Identity: identity},
	}, nil
}

// loadConfig returns how to reach the hub.
func loadConfig(opts *Options) (*rest.Config, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = opts.Kubeconfig
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules,
		&clientcmd.ConfigOverrides{CurrentContext: opts.Context}).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("reading the hub's kubeconfig (--kubeconfig %q): %w", opts.Kubeconfig, err)
	}
	config.QPS, config.Burst = opts.KubeAPIQPS, opts.KubeAPIBurst
	config.UserAgent = "namesake-controller-manager"
	return config, nil
}

// checkKinds says what to do when the hub does not know our kinds.
func checkKinds(mapper meta.RESTMapper) error {
	for _, gk := range []schema.GroupKind{
		clusterv1alpha1.GroupVersion.WithKind("Cluster").GroupKind(),
		networkingv1alpha1.GroupVersion.WithKind("MultiClusterService").GroupKind(),
		workv1alpha1.GroupVersion.WithKind("Work").GroupKind(),
		workv1alpha2.GroupVersion.WithKind("ResourceBinding").GroupKind(),
	} {
		if _, err := mapper.RESTMapping(gk); meta.IsNoMatchError(err) {
			return fmt.Errorf("the hub does not serve kind %s: run 'namesakectl install' against it first", gk)
		} else if err != nil {
			return fmt.Errorf("asking the hub for kind %s: %w", gk, err)
		}
	}
	return nil
}
