package member

import (
	"fmt"
	"runtime"
	"testing"

	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"
)

// store returns the slice of that name as a store of its own keeps it.
func kept(t *testing.T, c *contents, s *discoveryv1.EndpointSlice) (*SliceStore, *discoveryv1.EndpointSlice) {
	t.Helper()
	r := newRecorded()
	r.contents = c
	if err := r.Add(s); err != nil {
		t.Fatal(err)
	}
	return r.SliceStore, r.entries[keyOf(s)].slice
}

// What stands in two members alike is kept once; what differs in anything is not
// mixed up.
func TestContents(t *testing.T) {
	trigger := func(s *discoveryv1.EndpointSlice) { s.Annotations["example.com/trigger"] = "now" }
	for title, tc := range map[string]struct {
		edit func(*discoveryv1.EndpointSlice)
		want bool
	}{
		"alike":           {func(*discoveryv1.EndpointSlice) {}, true},
		"another version": {func(s *discoveryv1.EndpointSlice) { s.ResourceVersion, s.UID, s.Generation = "7", "other", 4 }, true},
		"another address": {func(s *discoveryv1.EndpointSlice) { s.Endpoints[0].Addresses[0] = "10.0.0.2" }, false},
		"one endpoint":    {func(s *discoveryv1.EndpointSlice) { s.Endpoints = nil }, false},
		"another port":    {func(s *discoveryv1.EndpointSlice) { *s.Ports[0].Port = 80 }, false},
		"another label":   {func(s *discoveryv1.EndpointSlice) { s.Labels["example.com/label"] = "other" }, false},
		"one more note":   {trigger, false},
		"one note less": {func(s *discoveryv1.EndpointSlice) {
			s.Annotations = nil
			s.ManagedFields[0].Manager = "namesake-dispatch"
		}, false},
		"another protocol": {func(s *discoveryv1.EndpointSlice) { s.AddressType = discoveryv1.AddressTypeIPv6 }, false},
	} {
		t.Run(title, func(t *testing.T) {
			c := newContents()
			first, one := kept(t, c, slice("s1", "1", dispatched))
			edited := slice("s1", "2", dispatched, tc.edit)
			second, other := kept(t, c, edited.DeepCopy())
			expect(t, "endpoints", fmt.Sprint(edited.Endpoints), fmt.Sprint(other.Endpoints))
			expect(t, "labels", fmt.Sprint(edited.Labels), fmt.Sprint(other.Labels))
			expect(t, "annotations", fmt.Sprint(edited.Annotations), fmt.Sprint(other.Annotations))
			expect(t, "version", edited.ResourceVersion, other.ResourceVersion)
			expect(t, "one copy", tc.want, len(other.Ports) > 0 && &one.Ports[0] == &other.Ports[0])
			runtime.KeepAlive(first)
			runtime.KeepAlive(second)
		})
	}
}

// A copy stays while somebody has it, and no longer.
func TestContents_end(t *testing.T) {
	c := newContents()
	first, _ := kept(t, c, slice("s1", "1", dispatched))
	collect := func(want int) {
		t.Helper()
		for range 100 {
			runtime.GC()
			c.mu.Lock()
			have := len(c.held)
			c.mu.Unlock()
			if have == want {
				return
			}
			runtime.Gosched()
		}
		t.Errorf("%d copies, want %d", len(c.held), want)
	}
	collect(1)
	first.put(types.NamespacedName{Namespace: "shop", Name: "s1"}, nil)
	runtime.KeepAlive(first)
	collect(0)
}
