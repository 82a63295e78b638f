package member

import (
	"github.com/prometheus/client_golang/prometheus"
)

var (
	reachableDesc = prometheus.NewDesc("namesake_member_reachable",
		"Whether a member's API server answers the hub: 1 or 0.", []string{"member"}, nil)
	slicesDesc = prometheus.NewDesc("namesake_member_slices",
		"EndpointSlices that the hub sees in a member, by what they are to it: native, wanted (native, of a shared service) or dispatched.",
		[]string{"member", "role"}, nil)
	endpointsDesc = prometheus.NewDesc("namesake_member_endpoints",
		"Endpoints in those slices. The hub does not keep those of slices that nobody wants.", []string{"member", "role"}, nil)
	watchAgeDesc = prometheus.NewDesc("namesake_member_watch_age_seconds",
		"Time since the watch of a member's EndpointSlices told anything. A bookmark comes about once a minute; after three minutes of silence the watch is made anew.",
		[]string{"member"}, nil)
	watchRenewalsDesc = prometheus.NewDesc("namesake_member_watch_renewals_total",
		"Watches of a member's EndpointSlices that were made anew because they had told nothing for three minutes.", []string{"member"}, nil)
)

// Counts are the numbers of slices and endpoints in a store.
type Counts struct {
	Native, Wanted, Dispatched           int
	WantedEndpoints, DispatchedEndpoints int
}

// Counts counts what the store holds.
func (s *SliceStore) Counts() Counts {
	s.mu.RLock()
	defer s.mu.RUnlock()
	var out Counts
	for _, e := range s.entries {
		switch {
		case e.dispatched:
			out.Dispatched++
			out.DispatchedEndpoints += len(e.slice.Endpoints)
		case e.full:
			out.Native++
			out.Wanted++
			out.WantedEndpoints += len(e.slice.Endpoints)
		default:
			out.Native++
		}
	}
	return out
}

// Describe implements prometheus.Collector.
func (r *Registry) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{reachableDesc, slicesDesc, endpointsDesc, watchAgeDesc, watchRenewalsDesc} {
		out <- d
	}
}

// Collect implements prometheus.Collector.
func (r *Registry) Collect(out chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, value int, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, float64(value), labels...)
	}
	for _, m := range r.List() {
		name := string(m.Name())
		reachable := 0
		if m.Health().Reachable {
			reachable = 1
		}
		gauge(reachableDesc, reachable, name)
		c := m.Slices().Counts()
		gauge(slicesDesc, c.Native, name, "native")
		gauge(slicesDesc, c.Wanted, name, "wanted")
		gauge(slicesDesc, c.Dispatched, name, "dispatched")
		gauge(endpointsDesc, c.WantedEndpoints, name, "wanted")
		gauge(endpointsDesc, c.DispatchedEndpoints, name, "dispatched")
		age, renewals := m.watch.counts()
		out <- prometheus.MustNewConstMetric(watchAgeDesc, prometheus.GaugeValue, age.Seconds(), name)
		out <- prometheus.MustNewConstMetric(watchRenewalsDesc, prometheus.CounterValue, float64(renewals), name)
	}
}
