package member

import (
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/util/workqueue"
)

// What queues tell. A controller has one for each member: what shows which member
// hangs is told for each, and all else together, since a thousand members would
// have a hundred thousand series.
var (
	queueDepth = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "namesake_queue_depth",
		Help: "Keys that wait in a controller's queue of a member.",
	}, []string{"controller", "member"})
	queueLongest = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "namesake_queue_longest_running_seconds",
		Help: "For how long the longest of a controller's workers has been busy with one key in a member. Above some seconds, the member hangs.",
	}, []string{"controller", "member"})
	queueWait = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "namesake_queue_wait_seconds",
		Help:    "How long keys have waited in the queues of all members, by controller.",
		Buckets: queueBuckets,
	}, []string{"controller"})
	queueWork = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "namesake_queue_work_seconds",
		Help:    "How long a controller has worked on a key in a member.",
		Buckets: queueBuckets,
	}, []string{"controller"})
	queueAdds = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "namesake_queue_adds_total",
		Help: "Keys added to the queues of all members, by controller.",
	}, []string{"controller"})
	queueRetries = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "namesake_queue_retries_total",
		Help: "Keys that failed and are tried again, in all members, by controller.",
	}, []string{"controller"})
)

// queueBuckets go from a millisecond to four minutes.
var queueBuckets = prometheus.ExponentialBuckets(0.001, 4, 10)

// Collectors are the metrics of queues.
func Collectors() []prometheus.Collector {
	return []prometheus.Collector{queueDepth, queueLongest, queueWait, queueWork, queueAdds, queueRetries}
}

// queueMetrics are those of one queue. They implement workqueue.MetricsProvider;
// the name that it is given is not looked at.
type queueMetrics struct{ controller, member string }

// forget takes back what is told of one member.
func (q queueMetrics) forget() {
	queueDepth.DeleteLabelValues(q.controller, q.member)
	queueLongest.DeleteLabelValues(q.controller, q.member)
}

// NewDepthMetric implements workqueue.MetricsProvider.
func (q queueMetrics) NewDepthMetric(string) workqueue.GaugeMetric {
	return queueDepth.WithLabelValues(q.controller, q.member)
}

// NewAddsMetric implements workqueue.MetricsProvider.
func (q queueMetrics) NewAddsMetric(string) workqueue.CounterMetric {
	return queueAdds.WithLabelValues(q.controller)
}

// NewLatencyMetric implements workqueue.MetricsProvider.
func (q queueMetrics) NewLatencyMetric(string) workqueue.HistogramMetric {
	return queueWait.WithLabelValues(q.controller)
}

// NewWorkDurationMetric implements workqueue.MetricsProvider.
func (q queueMetrics) NewWorkDurationMetric(string) workqueue.HistogramMetric {
	return queueWork.WithLabelValues(q.controller)
}

// NewUnfinishedWorkSecondsMetric implements workqueue.MetricsProvider. Nobody is
// told: the longest says enough.
func (queueMetrics) NewUnfinishedWorkSecondsMetric(string) workqueue.SettableGaugeMetric {
	return prometheus.NewGauge(prometheus.GaugeOpts{})
}

// NewLongestRunningProcessorSecondsMetric implements workqueue.MetricsProvider.
func (q queueMetrics) NewLongestRunningProcessorSecondsMetric(string) workqueue.SettableGaugeMetric {
	return queueLongest.WithLabelValues(q.controller, q.member)
}

// NewRetriesMetric implements workqueue.MetricsProvider.
func (q queueMetrics) NewRetriesMetric(string) workqueue.CounterMetric {
	return queueRetries.WithLabelValues(q.controller)
}
