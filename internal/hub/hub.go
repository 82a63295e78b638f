package hub

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"slices"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	ctrlconfig "sigs.k8s.io/controller-runtime/pkg/config"
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
	"github.com/namesake-io/namesake/internal/serving"
	"github.com/namesake-io/namesake/internal/snapshot"
	"github.com/namesake-io/namesake/internal/webhook"
)

// writesAtOnce is how many writes on the hub are under way at once. Each member has
// workers of its own, so that there may be thousands who want to write.
const writesAtOnce = 100

// restartInterval is how long to wait before beginning anew.
const restartInterval = time.Second

// errLost says that the controllers have ended after they had worked.
var errLost = errors.New("the lease is lost")

// errSilent is what /readyz says before the hub has answered.
var errSilent = errors.New("the hub has not answered yet")

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
	if os.Getenv("GOGC") == "" {
		go tendMemory(ctx)
	}
	return serve(ctx, config, opts)
}

// serve answers whoever asks, and runs the controllers again and again.
func serve(ctx context.Context, config *rest.Config, opts *Options) error {
	scheme, err := NewScheme()
	if err != nil {
		return err
	}
	servers, err := serving.New(config, scheme, clusterv1alpha1.SystemNamespace,
		serving.Addresses{Metrics: opts.MetricsBindAddress, Health: opts.ProbeBindAddress, Profiles: opts.PprofBindAddress})
	if err != nil {
		return err
	}
	if opts.Webhook.Enabled() {
		if err := webhook.Add(servers, opts.Webhook, opts.Features.Enabled(feature.MultiClusterService)); err != nil {
			return err
		}
	}
	var answered atomic.Bool
	err = servers.AddReadyzCheck("hub", func(*http.Request) error {
		if !answered.Load() {
			return errSilent
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("adding a readiness check: %w", err)
	}
	return servers.Beside(ctx, func(ctx context.Context) error {
		return keepRunning(ctx, func() error { return runControllers(ctx, config, opts, func() { answered.Store(true) }) })
	})
}

// keepRunning waits for a hub that does not answer, and begins anew when the lease
// is lost: a process that ends instead is started again later and later the longer
// a hub is away.
func keepRunning(ctx context.Context, run func() error) error {
	for worked := false; ; {
		err := run()
		worked = worked || errors.Is(err, errLost)
		if err == nil || ctx.Err() != nil || !worked && !unanswered(err) {
			return err
		}
		klog.FromContext(ctx).Error(err, "Beginning anew")
		select {
		case <-time.After(restartInterval):
		case <-ctx.Done():
			return nil
		}
	}
}

// unanswered says that an error is of a request that got no answer.
func unanswered(err error) bool {
	var request *url.Error
	return errors.As(err, &request)
}

// RunWith runs the controllers against a hub until the context ends, or the lease
// is lost. It serves nothing.
func RunWith(ctx context.Context, config *rest.Config, opts *Options) error {
	return runControllers(ctx, config, opts, func() {})
}

// runControllers does what RunWith says, and calls answered when the hub has said
// that it serves our kinds.
func runControllers(ctx context.Context, config *rest.Config, opts *Options, answered func()) error {
	scheme, err := NewScheme()
	if err != nil {
		return err
	}
	fence := apply.NewFence()
	lease, err := newLock(config, opts, fence)
	if err != nil {
		return err
	}
	if err := checkKinds(config); err != nil {
		return err
	}
	answered()
	mgr, err := newManager(config, scheme, opts, lease)
	if err != nil {
		return err
	}
	indexer := mgr.GetFieldIndexer()
	if err := errors.Join(snapshot.IndexWorks(ctx, indexer), cluster.Index(ctx, indexer), binding.Index(ctx, indexer)); err != nil {
		return err
	}

	interest := snapshot.NewInterest(opts.unreachable())
	members := member.NewRegistry(member.Options{
		Scheme: scheme, ProbeInterval: opts.ClusterStatusUpdateFrequency,
		QPS: opts.ClusterAPIQPS, Burst: opts.ClusterAPIBurst, Expected: interest.Has, GuardWrites: fence.Guard,
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
		source: snapshot.Source{Reader: mgr.GetClient(), Members: members, Interest: interest, Unreachable: opts.unreachable()},
	}
	defer func() {
		for _, call := range p.hooks.stop {
			call()
		}
	}()
	if err := errors.Join(addControllers(ctx, p), addWarmer(p), mgr.Add(members)); err != nil {
		return err
	}
	if err := p.hooks.install(ctx, mgr.GetCache(), p.source.Interest); err != nil {
		return err
	}
	klog.FromContext(ctx).Info("Starting", "hub", config.Host)
	switch err := serving.Start(ctx, mgr); {
	case err != nil && lease.held.Load():
		return fmt.Errorf("%w: %w", errLost, err)
	case err != nil:
		return fmt.Errorf("running controllers: %w", err)
	}
	return nil
}

// Collectors are the metrics that do not depend on a running hub.
func Collectors() []prometheus.Collector {
	return slices.Concat(apply.Collectors(), member.Collectors(), multiclusterservice.Collectors(), endpointslicedispatch.Collectors())
}

// AllCollectors are all metrics of a hub, those of a running one without values.
func AllCollectors() []prometheus.Collector {
	_, idle := endpointslicedispatch.New(snapshot.Source{Members: member.NewRegistry(member.Options{})}, nil, nil)
	return append(Collectors(), member.NewRegistry(member.Options{}), idle)
}

// register registers a metric of this run, and returns how to take it back.
func register(c prometheus.Collector) (unregister func(), err error) {
	if err := metrics.Registry.Register(c); err != nil {
		return nil, fmt.Errorf("registering metrics: %w", err)
	}
	return func() { metrics.Registry.Unregister(c) }, nil
}

// newManager returns a manager with the hub's caches, and a client that writes
// while the lease is held.
func newManager(config *rest.Config, scheme *runtime.Scheme, opts *Options, lease *lock) (ctrl.Manager, error) {
	timeout, yes := serving.StopTimeout, true
	if !opts.LeaderElect {
		lease.fence.Open()
	}
	mgr, err := ctrl.NewManager(config, ctrl.Options{
		Scheme: scheme,
		Cache: cache.Options{
			DefaultTransform: cache.TransformStripManagedFields(),
			ByObject: map[client.Object]cache.ByObject{
				// Nobody else's Secrets are read or kept.
				&corev1.Secret{}: {Namespaces: map[string]cache.Config{clusterv1alpha1.SystemNamespace: {}}},
				// Agents renew theirs there.
				&coordinationv1.Lease{}: {Namespaces: map[string]cache.Config{clusterv1alpha1.SystemNamespace: {}}},
			},
		},
		Client: client.Options{Cache: &client.CacheOptions{Unstructured: true}},
		NewClient: func(config *rest.Config, opts client.Options) (client.Client, error) {
			guarded := *opts.HTTPClient
			// The lease is looked at last, after a turn has been waited for.
			guarded.Transport = apply.InTurn(writesAtOnce, lease.fence.Guard(guarded.Transport))
			opts.HTTPClient = &guarded
			return client.New(config, opts)
		},
		// A replica that waits has seen everything when its time comes. Names are
		// unique in one run, and a process may begin anew.
		Controller:     ctrlconfig.Controller{EnableWarmup: &yes, SkipNameValidation: &yes},
		Metrics:        metricsserver.Options{BindAddress: "0"}, // the servers are others
		LeaderElection: opts.LeaderElect,
		// With a lock of ours, for its identity.
		LeaderElectionResourceLockInterface: lease,
		LeaderElectionReleaseOnCancel:       true,
		LeaseDuration:                       &opts.LeaseDuration,
		RenewDeadline:                       &opts.RenewDeadline,
		RetryPeriod:                         &opts.RetryPeriod,
		GracefulShutdownTimeout:             &timeout,
	})
	if err != nil {
		return nil, fmt.Errorf("making a manager: %w", err)
	}
	return mgr, nil
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
func checkKinds(config *rest.Config) error {
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return fmt.Errorf("making a client for the hub: %w", err)
	}
	mapper, err := apiutil.NewDynamicRESTMapper(config, client)
	if err != nil {
		return fmt.Errorf("making a REST mapper for the hub: %w", err)
	}
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
