package endpointslicedispatch

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	networkingv1alpha1 "github.com/namesake-io/namesake/api/networking/v1alpha1"
	"github.com/namesake-io/namesake/internal/discovery"
)

// A plan has arrived when its last consumer holds it: once, whatever an earlier
// one does meanwhile.
func TestHolds(t *testing.T) {
	plan := &discovery.Plan{Selection: discovery.Selection{Consumers: []discovery.ClusterName{"a", "b"}}}
	s := &reported{outcomes: map[discovery.ClusterName]discovery.Outcome{}}
	record := func(consumer discovery.ClusterName, reason string) bool {
		s.outcomes[consumer] = discovery.Outcome{Plan: plan, Reason: reason}
		return s.holds(plan, consumer)
	}
	steps := []struct {
		consumer discovery.ClusterName
		reason   string
		want     bool
	}{
		{"a", "", false},
		{"a", "", false},
		{"c", "", false}, // no consumer
		{"a", networkingv1alpha1.ReasonWriteFailed, false},
		{"a", "", false},
		{"b", networkingv1alpha1.ReasonWriteFailed, false},
		{"b", "", true},
		{"b", "", false},
	}
	for i, step := range steps {
		if got := record(step.consumer, step.reason); got != step.want {
			t.Errorf("step %d, %s %q: everywhere = %v, want %v", i, step.consumer, step.reason, got, step.want)
		}
	}
}

func TestObservePropagation(t *testing.T) {
	started := time.Now()
	at := func(when time.Time) *discoveryv1.EndpointSlice {
		return &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{
			corev1.EndpointsLastChangeTriggerTime: when.Format(time.RFC3339Nano),
		}}}
	}
	observePropagation("test-consumer", at(started.Add(time.Millisecond)), started)
	observePropagation("test-consumer", at(started.Add(-time.Hour)), started)
	observePropagation("test-consumer", &discoveryv1.EndpointSlice{}, started)

	metrics := make(chan prometheus.Metric, 16)
	propagation.Collect(metrics)
	close(metrics)
	counts := map[string]uint64{}
	for m := range metrics {
		var out dto.Metric
		if err := m.Write(&out); err != nil {
			t.Fatal(err)
		}
		counts[out.GetLabel()[0].GetValue()] = out.GetHistogram().GetSampleCount()
	}
	if diff := cmp.Diff(uint64(1), counts["test-consumer"]); diff != "" {
		t.Errorf("only a change since the start that says when it was counts (-want +got):\n%s", diff)
	}
}
