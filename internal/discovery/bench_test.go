package discovery_test

import (
	"fmt"
	"testing"

	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/namesake-io/namesake/internal/discovery"
)

// fleets are the sizes that matter: many endpoints, and many clusters.
var fleets = []struct{ providers, slices, endpoints int }{
	{20, 3, 100},
	{1000, 1, 3},
}

func fleet(providers, slicesEach, endpointsEach int) discovery.Snapshot {
	s := snapshot(crossCluster())
	for p := range providers {
		var own []*discoveryv1.EndpointSlice
		for i := range slicesEach {
			in := slice(fmt.Sprintf("foo-x%d", i))
			for e := range endpointsEach {
				n := (p*slicesEach+i)*endpointsEach + e
				pod(fmt.Sprintf("10.%d.%d.%d", n>>16, n>>8&255, n&255))(in)
			}
			own = append(own, in)
		}
		s.Clusters = append(s.Clusters, member(fmt.Sprintf("member%d", p), own...))
	}
	return s
}

func BenchmarkPlan(b *testing.B) {
	for _, f := range fleets {
		b.Run(fmt.Sprintf("%dx%dx%d", f.providers, f.slices, f.endpoints), func(b *testing.B) {
			s := fleet(f.providers, f.slices, f.endpoints)
			b.ReportAllocs()
			for b.Loop() {
				discovery.NewPlan(s)
			}
		})
	}
}

// BenchmarkChanges is one consumer at rest, and one that holds nothing yet.
func BenchmarkChanges(b *testing.B) {
	for _, f := range fleets {
		p := discovery.NewPlan(fleet(f.providers, f.slices, f.endpoints))
		c := newConsumer("member0")
		if err := c.apply(c.changes(p)); err != nil {
			b.Fatal(err)
		}
		states := map[string]discovery.Standing{"rest": c.standing(p), "new": {}}
		for _, name := range []string{"rest", "new"} {
			b.Run(fmt.Sprintf("%dx%dx%d/%s", f.providers, f.slices, f.endpoints, name), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					p.For("member0", states[name])
				}
			})
		}
	}
}
