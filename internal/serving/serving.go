// Package serving is what a process of ours serves for as long as it lives,
// whether its controllers work or not: health, metrics, profiles, and what else is
// added. Controllers wait for an API server, end with their lease and begin anew;
// Kubernetes ends a process that says nothing of its health meanwhile.
package serving

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	ctrlconfig "sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

// StopTimeout is how long work and answers that are under way may take when the
// process ends.
const StopTimeout = 15 * time.Second

// Addresses are where to listen, as host:port. "0" and, for profiles, an empty one
// is nowhere.
type Addresses struct{ Metrics, Health, Profiles string }

// Servers answer from Run on. They are a manager of their own, that knows no lease.
type Servers struct{ ctrl.Manager }

// New returns servers that are healthy, and ready when every check is that is added.
// Health and profiles have their ports from here on, metrics when they run. What is
// added reads through a cache that sees one namespace of the API server.
func New(config *rest.Config, scheme *runtime.Scheme, namespace string, at Addresses) (*Servers, error) {
	timeout, yes := StopTimeout, true
	mgr, err := ctrl.NewManager(config, ctrl.Options{
		Scheme: scheme,
		Cache: cache.Options{
			DefaultTransform:  cache.TransformStripManagedFields(),
			DefaultNamespaces: map[string]cache.Config{namespace: {}},
		},
		// However long the API server is away. A process may hold several.
		Controller:              ctrlconfig.Controller{SkipNameValidation: &yes, CacheSyncTimeout: 10 * 365 * 24 * time.Hour},
		Metrics:                 metricsserver.Options{BindAddress: at.Metrics},
		HealthProbeBindAddress:  at.Health,
		PprofBindAddress:        at.Profiles,
		GracefulShutdownTimeout: &timeout,
	})
	if err != nil {
		return nil, fmt.Errorf("making servers: %w", err)
	}
	if err := mgr.AddHealthzCheck("ping", healthz.Ping); err != nil {
		return nil, fmt.Errorf("adding a health check: %w", err)
	}
	return &Servers{mgr}, nil
}

// Beside serves for as long as work goes on. When either fails, the other ends in
// good order.
func (s *Servers) Beside(ctx context.Context, work func(context.Context) error) error {
	group, ctx := errgroup.WithContext(ctx)
	ctx, done := context.WithCancel(ctx)
	group.Go(func() error {
		if err := Start(ctx, s.Manager); err != nil {
			return fmt.Errorf("serving: %w", err)
		}
		return nil
	})
	group.Go(func() error {
		defer done()
		return work(ctx)
	})
	return group.Wait()
}

// Start runs a manager until the context ends, as every process of ours runs its
// managers. One that waits for its first lists then is left behind: it would never
// end (controller-runtime 0.25), and nothing of it has begun but servers and caches.
// So the process has to end next.
func Start(ctx context.Context, mgr ctrl.Manager) error {
	begun := make(begun)
	if err := mgr.Add(begun); err != nil {
		return fmt.Errorf("adding what sees that a manager has begun: %w", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	select {
	case <-begun:
		return <-ended
	default:
		return nil
	}
}

// begun is closed by a manager that has filled its caches.
type begun chan struct{}

// Start implements manager.Runnable.
func (b begun) Start(context.Context) error {
	close(b)
	return nil
}

// NeedLeaderElection implements manager.LeaderElectionRunnable: those who wait for
// the lease have begun.
func (begun) NeedLeaderElection() bool { return false }
