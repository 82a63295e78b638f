package agent

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/klog/v2"

	clusterv1alpha1 "github.com/namesake-io/namesake/api/cluster/v1alpha1"
	"github.com/namesake-io/namesake/internal/apply"
	"github.com/namesake-io/namesake/internal/discovery"
	"github.com/namesake-io/namesake/internal/member"
)

// missedBeats is how many beats the Lease says that may be missed.
const missedBeats = 4

// heartbeat tells the hub that the agent lives, as long as its cluster is joined.
// It implements the manager's Runnable.
type heartbeat struct {
	cluster  string
	identity string
	interval time.Duration
	members  *member.Registry
	writer   apply.Writer
}

// Start implements manager.Runnable.
func (h *heartbeat) Start(ctx context.Context) error {
	ticker := time.NewTicker(h.interval)
	defer ticker.Stop()
	for {
		if _, joined := h.members.Get(discovery.ClusterName(h.cluster)); joined {
			if err := h.beat(ctx); err != nil && ctx.Err() == nil {
				klog.FromContext(ctx).Error(err, "Cannot renew the lease on the hub")
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// beat renews the Lease, or makes it.
func (h *heartbeat) beat(ctx context.Context) error {
	// A late beat is better than none: the hub may be slow for all.
	ctx, cancel := context.WithTimeout(ctx, h.interval*missedBeats)
	defer cancel()
	lease := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "coordination.k8s.io/v1",
		"kind":       "Lease",
		"metadata":   map[string]any{"namespace": clusterv1alpha1.SystemNamespace, "name": h.cluster},
		"spec": map[string]any{
			"holderIdentity":       h.identity,
			"leaseDurationSeconds": int64(max(h.interval*missedBeats, time.Second) / time.Second),
			"renewTime":            time.Now().UTC().Format("2006-01-02T15:04:05.000000Z07:00"),
		},
	}}
	return h.writer.Apply(ctx, lease)
}
