package hub

import (
	"context"
	"crypto/tls"
	"fmt"
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
	"github.com/namesake-io/namesake/internal/serving/servingtest"
)

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
	return servingtest.OK
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
	opts.MetricsBindAddress, opts.ProbeBindAddress, opts.Webhook.BindAddress = servingtest.FreeAddress(t), servingtest.FreeAddress(t), servingtest.FreeAddress(t)
	opts.LeaderElectIdentity = "one"
	opts.LeaseDuration, opts.RenewDeadline, opts.RetryPeriod = 3*time.Second, 2*time.Second, 200*time.Millisecond
	servingtest.Start(t, func(ctx context.Context) error { return serve(ctx, hub.config, opts) })
	servingtest.Eventually(t, opts.ProbeBindAddress, "/readyz", servingtest.OK)

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
			for what, got := range map[string]string{
				"health":    servingtest.Get(t.Context(), opts.ProbeBindAddress, "/healthz"),
				"readiness": servingtest.Get(t.Context(), opts.ProbeBindAddress, "/readyz"),
				"metrics":   servingtest.Get(t.Context(), opts.MetricsBindAddress, "/metrics"),
				"admission": greet(t.Context(), opts.Webhook.BindAddress),
			} {
				if got != servingtest.OK {
					t.Errorf("%s: %s", what, got)
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
	opts.MetricsBindAddress, opts.ProbeBindAddress, opts.Webhook.BindAddress = "0", servingtest.FreeAddress(t), servingtest.FreeAddress(t)
	silent := &rest.Config{Host: "http://" + servingtest.FreeAddress(t)}
	servingtest.Start(t, func(ctx context.Context) error { return serve(ctx, silent, opts) })
	servingtest.Eventually(t, opts.ProbeBindAddress, "/healthz", servingtest.OK)
	if got := servingtest.Get(t.Context(), opts.ProbeBindAddress, "/readyz"); got != servingtest.Failing {
		t.Errorf("ready: %s, want %s", got, servingtest.Failing)
	}
}
