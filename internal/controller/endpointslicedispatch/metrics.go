package endpointslicedispatch

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	networkingv1alpha1 "github.com/namesake-io/namesake/api/networking/v1alpha1"
	"github.com/namesake-io/namesake/internal/discovery"
)

// buckets reach from a millisecond to a minute: what is good, and what is not.
var buckets = []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60}

var (
	syncDuration = prometheus.NewHistogram(prometheus.HistogramOpts{
		Name:    "mcs_sync_eps_duration_seconds",
		Help:    "From a change of a service being seen by the hub to the last consumer having been written.",
		Buckets: buckets,
	})
	propagation = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "namesake_endpoint_propagation_seconds",
		Help: "From a change of a pod or Service in a provider (endpoints.kubernetes.io/last-change-trigger-time) " +
			"to the slice standing in a consumer, by consumer.",
		Buckets: buckets,
	}, []string{"consumer"})
)

// Collectors returns the package's metrics, to be registered once.
func Collectors() []prometheus.Collector { return []prometheus.Collector{syncDuration, propagation} }

// observePropagation measures how long a change took to reach a consumer. Changes
// from before the process started tell of a restart, not of a journey.
func observePropagation(consumer discovery.ClusterName, slice *discoveryv1.EndpointSlice, started time.Time) {
	triggered, err := time.Parse(time.RFC3339Nano, slice.Annotations[corev1.EndpointsLastChangeTriggerTime])
	if err != nil || triggered.Before(started) {
		return
	}
	propagation.WithLabelValues(string(consumer)).Observe(time.Since(triggered).Seconds())
}

var servicesDesc = prometheus.NewDesc("namesake_services",
	"MultiClusterServices by the reason of their condition Ready.", []string{"reason"}, nil)

// Describe implements prometheus.Collector.
func (r *Reporter) Describe(out chan<- *prometheus.Desc) { out <- servicesDesc }

// Collect implements prometheus.Collector.
func (r *Reporter) Collect(out chan<- prometheus.Metric) {
	counts := map[string]int{}
	r.mu.Lock()
	for _, s := range r.services {
		reason := networkingv1alpha1.ReasonProgressing
		if s.last != nil {
			if ready := meta.FindStatusCondition(s.last.Conditions, networkingv1alpha1.ConditionReady); ready != nil {
				reason = ready.Reason
			}
		}
		counts[reason]++
	}
	r.mu.Unlock()
	for reason, count := range counts {
		out <- prometheus.MustNewConstMetric(servicesDesc, prometheus.GaugeValue, float64(count), reason)
	}
}
