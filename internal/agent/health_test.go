package agent

import (
	"context"
	"errors"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/namesake-io/namesake/internal/serving/servingtest"
)

// An agent that waits for its cluster, its credential or the hub is healthy, and
// not ready.
func TestHealthyWhileWaiting(t *testing.T) {
	opts := NewOptions()
	opts.MetricsBindAddress, opts.ProbeBindAddress = "0", servingtest.FreeAddress(t)
	silent := &rest.Config{Host: "http://" + servingtest.FreeAddress(t)}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- RunWith(ctx, silent, opts) }()
	servingtest.Eventually(t, opts.ProbeBindAddress, "/healthz", servingtest.OK)
	if got := servingtest.Get(t.Context(), opts.ProbeBindAddress, "/readyz"); got != servingtest.Failing {
		t.Errorf("ready: %s, want %s", got, servingtest.Failing)
	}
	stop()
	if err := <-ended; err != nil && !errors.Is(err, context.Canceled) {
		t.Errorf("it ended with: %v", err)
	}
}
