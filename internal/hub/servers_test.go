package hub

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/namesake-io/namesake/api/cluster/v1alpha1"
)

// freeAddress is one that nobody listens at.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// start serves until the test ends.
func start(t *testing.T, config *rest.Config, opts *Options) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- serve(ctx, config, opts) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Errorf("the hub ended with: %v", err)
		}
	})
}

// get asks for a page, and wants it to be there.
func get(ctx context.Context, url string) string {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return err.Error()
	}
	resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(req)
	if err != nil {
		return err.Error()
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return resp.Status
	}
	return ""
}

// greet sees whether admission would answer.
func greet(ctx context.Context, address string) string {
	dialer := &tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true}} //nolint:gosec // who answers is not asked here
	conn, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return err.Error()
	}
	if err := conn.Close(); err != nil {
		return err.Error()
	}
	return ""
}

// Somebody takes the lease. The controllers end, wait, and work again when they
// have it back; whoever asks for health, metrics or admission meanwhile is
// answered.
func TestServersOutliveTheLease(t *testing.T) {
	hub, _ := startSites(t)
	hub.create(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: clusterv1alpha1.SystemNamespace}})
	opts, err := NewOptions()
	if err != nil {
		t.Fatal(err)
	}
	opts.MetricsBindAddress, opts.ProbeBindAddress, opts.Webhook.BindAddress = freeAddress(t), freeAddress(t), freeAddress(t)
	opts.LeaderElectIdentity = "one"
	opts.LeaseDuration, opts.RenewDeadline, opts.RetryPeriod = 3*time.Second, 2*time.Second, 200*time.Millisecond
	start(t, hub.config, opts)
	eventually(t, func(ctx context.Context) string { return get(ctx, "http://"+opts.ProbeBindAddress+"/readyz") })

	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: opts.LeaderElectNamespace, Name: leaseName}}
	holder := func(ctx context.Context, want string) string {
		if err := hub.Get(ctx, client.ObjectKeyFromObject(lease), lease); err != nil {
			return err.Error()
		}
		if have := ptr.Deref(lease.Spec.HolderIdentity, ""); have != want {
			return fmt.Sprintf("the lease is held by %q, want %q", have, want)
		}
		return ""
	}
	eventually(t, func(ctx context.Context) string { return holder(ctx, "one") })

	var asked atomic.Int64
	watching, unwatch := context.WithCancel(t.Context())
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		for watching.Err() == nil {
			for what, failed := range map[string]string{
				"health":    get(t.Context(), "http://"+opts.ProbeBindAddress+"/healthz"),
				"readiness": get(t.Context(), "http://"+opts.ProbeBindAddress+"/readyz"),
				"metrics":   get(t.Context(), "http://"+opts.MetricsBindAddress+"/metrics"),
				"admission": greet(t.Context(), opts.Webhook.BindAddress),
			} {
				if failed != "" {
					t.Errorf("%s: %s", what, failed)
				}
			}
			asked.Add(1)
		}
	}()
	eventually(t, func(ctx context.Context) string {
		if failed := holder(ctx, "one"); failed != "" {
			return failed
		}
		now := metav1.NowMicro()
		lease.Spec.HolderIdentity, lease.Spec.RenewTime = ptr.To("another"), &now
		if err := hub.Update(ctx, lease); err != nil {
			return err.Error()
		}
		return ""
	})
	eventually(t, func(ctx context.Context) string { return holder(ctx, "one") })
	unwatch()
	<-watched
	if asked.Load() < 10 {
		t.Errorf("asked %d times only", asked.Load())
	}
}

// A hub that does not answer: the process is healthy, and not ready.
func TestServersBeforeTheHub(t *testing.T) {
	opts, err := NewOptions()
	if err != nil {
		t.Fatal(err)
	}
	opts.MetricsBindAddress, opts.ProbeBindAddress, opts.Webhook.BindAddress = "0", freeAddress(t), freeAddress(t)
	start(t, &rest.Config{Host: "http://" + freeAddress(t)}, opts)
	eventually(t, func(ctx context.Context) string { return get(ctx, "http://"+opts.ProbeBindAddress+"/healthz") })
	if got, want := get(t.Context(), "http://"+opts.ProbeBindAddress+"/readyz"), "500 Internal Server Error"; got != want {
		t.Errorf("ready: %q, want %q", got, want)
	}
}
