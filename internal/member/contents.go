package member

import (
	"runtime"
	"sync"
	"weak"

	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/namesake-io/namesake/internal/discovery"
)

// contents keep one copy of what stands alike in many members: a dispatched slice
// bears the same name in each consumer, and says the same. It is kept for as long as
// an entry of some store has it.
type contents struct {
	mu   sync.Mutex
	held map[types.NamespacedName]weak.Pointer[discoveryv1.EndpointSlice]
}

func newContents() *contents {
	return &contents{held: map[types.NamespacedName]weak.Pointer[discoveryv1.EndpointSlice]{}}
}

// share puts the one copy into a slice, which nobody else holds yet, and returns
// what keeps that copy.
func (c *contents) share(slice *discoveryv1.EndpointSlice) *discoveryv1.EndpointSlice {
	key := keyOf(slice)
	c.mu.Lock()
	defer c.mu.Unlock()
	one := c.held[key].Value()
	if one == nil || !alike(one, slice) {
		one = &discoveryv1.EndpointSlice{AddressType: slice.AddressType, Endpoints: slice.Endpoints, Ports: slice.Ports}
		one.Labels, one.Annotations = slice.Labels, slice.Annotations
		c.held[key] = weak.Make(one)
		runtime.AddCleanup(one, c.drop, key)
	}
	slice.Labels, slice.Annotations = one.Labels, one.Annotations
	slice.Endpoints, slice.Ports = one.Endpoints, one.Ports
	return one
}

// alike says that two slices have the same content, down to each annotation.
func alike(a, b *discoveryv1.EndpointSlice) bool {
	return len(a.Annotations) == len(b.Annotations) && discovery.Equal(a, b)
}

// drop forgets a copy that nobody has any more.
func (c *contents) drop(key types.NamespacedName) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.held[key].Value() == nil {
		delete(c.held, key)
	}
}
