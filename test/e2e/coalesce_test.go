package e2e

import (
	"context"
	"fmt"
	"testing"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	networkingv1alpha1 "github.com/namesake-io/namesake/api/networking/v1alpha1"
)

// While a service changes many times a second, its status is written at most once
// a second, and in the end says what is.
func TestStatusUnderChurn(t *testing.T) {
	const (
		churn = 10 * time.Second
		every = 50 * time.Millisecond
	)
	f := alone(t)
	s := servedEverywhere(t, f, "foo")
	s.createMCS("foo", from("member1"), to("member2", "member3"))
	s.waitReady("foo")
	waitQuiet(t, f)

	statusWrites := func() (count float64) {
		counts, err := countRequests(t.Context(), f.hub)
		s.must(err)
		for kind, n := range counts {
			if kind.isWrite() && kind.resource == "multiclusterservices" {
				count += n
			}
		}
		return count
	}
	before, start, changes := statusWrites(), time.Now(), 0
	slice := &discoveryv1.EndpointSlice{ObjectMeta: s.meta("foo-a")}
	err := wait.PollUntilContextTimeout(t.Context(), every, 2*churn, true, func(context.Context) (bool, error) {
		changes++
		// The status counts endpoints: each change is one of the status.
		s.change(f.members["member1"], slice, func() {
			slice.Endpoints = slice.Endpoints[:1]
			for range changes % 3 {
				slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{Addresses: []string{newAddress()}})
			}
		})
		return time.Since(start) > churn, nil
	})
	s.must(err)
	s.eventually("the status says what is", func(ctx context.Context) error {
		mcs, err := get(ctx, s, f.hub, "foo", &networkingv1alpha1.MultiClusterService{})
		if err != nil {
			return err
		}
		for i := range mcs.Status.Clusters {
			c := &mcs.Status.Clusters[i]
			if seen := c.CollectedEndpoints + c.DispatchedEndpoints; int(seen) != len(slice.Endpoints) {
				return fmt.Errorf("%s has %d endpoints, want %d", c.Name, seen, len(slice.Endpoints))
			}
		}
		return nil
	})
	s.waitReady("foo")
	took := time.Since(start)
	writes := statusWrites() - before
	t.Logf("%d changes in %s: %g writes of the status", changes, took.Round(time.Millisecond), writes)
	if writes < 2 || writes > took.Seconds()+1 {
		t.Errorf("%g writes of the status in %s, want some, and at most one a second", writes, took)
	}
	s.waitSpread(spread{service: "foo", providers: []string{"member1"}, consumers: []string{"member2", "member3"}})
}
