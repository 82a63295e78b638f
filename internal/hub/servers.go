package hub

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	ctrlconfig "sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	clusterv1alpha1 "github.com/namesake-io/namesake/api/cluster/v1alpha1"
	"github.com/namesake-io/namesake/internal/feature"
	"github.com/namesake-io/namesake/internal/webhook"
)

// errSilent is what /readyz says before the hub has answered.
var errSilent = errors.New("the hub has not answered yet")

// servers are what a process serves whether its controllers work or not: health,
// metrics, profiles and admission. Controllers end with their lease and begin anew;
// the hub's API server refuses what it cannot ask a webhook about, and Kubernetes
// ends a process that says nothing of its health.
type servers struct {
	mgr ctrl.Manager
	// answered is true once the hub has answered.
	answered atomic.Bool
}

// newServers returns servers that listen when they are started, but for health and
// profiles, which have their ports from here on.
func newServers(config *rest.Config, opts *Options) (*servers, error) {
	scheme, err := NewScheme()
	if err != nil {
		return nil, err
	}
	timeout, yes := stopTimeout, true
	mgr, err := ctrl.NewManager(config, ctrl.Options{
		Scheme: scheme,
		Cache: cache.Options{
			DefaultTransform: cache.TransformStripManagedFields(),
			// Nobody else's Secrets are read. Not by object, which would ask the hub here.
			DefaultNamespaces: map[string]cache.Config{clusterv1alpha1.SystemNamespace: {}},
		},
		// However long the hub is away.
		Controller:              ctrlconfig.Controller{SkipNameValidation: &yes, CacheSyncTimeout: 10 * 365 * 24 * time.Hour},
		Metrics:                 metricsserver.Options{BindAddress: opts.MetricsBindAddress},
		HealthProbeBindAddress:  opts.ProbeBindAddress,
		PprofBindAddress:        opts.PprofBindAddress,
		GracefulShutdownTimeout: &timeout,
	})
	if err != nil {
		return nil, fmt.Errorf("making servers: %w", err)
	}
	s := &servers{mgr: mgr}
	if err := errors.Join(mgr.AddHealthzCheck("ping", healthz.Ping), mgr.AddReadyzCheck("hub", s.check)); err != nil {
		return nil, fmt.Errorf("adding health checks: %w", err)
	}
	if opts.Webhook.Enabled() {
		if err := webhook.Add(mgr, opts.Webhook, opts.Features.Enabled(feature.MultiClusterService)); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// run serves until the context ends.
func (s *servers) run(ctx context.Context) error {
	if err := s.mgr.Start(ctx); err != nil {
		return fmt.Errorf("serving: %w", err)
	}
	return nil
}

// check is ready when the hub has answered.
func (s *servers) check(*http.Request) error {
	if !s.answered.Load() {
		return errSilent
	}
	return nil
}
