package multiclusterservice

import (
	"github.com/prometheus/client_golang/prometheus"
)

// syncDuration measures the work for one MultiClusterService.
var syncDuration = prometheus.NewHistogramVec(prometheus.HistogramOpts{
	Name:    "mcs_sync_svc_duration_seconds",
	Help:    "Time to bring the claim on a MultiClusterService's Service up to date, by result.",
	Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10},
}, []string{"result"})

// Collectors returns the package's metrics, to be registered once.
func Collectors() []prometheus.Collector { return []prometheus.Collector{syncDuration} }

// resultOf names a result for the metric.
func resultOf(err error) string {
	if err != nil {
		return "error"
	}
	return "success"
}
