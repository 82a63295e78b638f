package snapshot

import (
	"iter"
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	networkingv1alpha1 "github.com/namesake-io/namesake/api/networking/v1alpha1"
	"github.com/namesake-io/namesake/internal/discovery"
)

// Interest is the set of services that somebody wants, so that the slices of all
// others cost no more than a look at it. Whoever adds a service has it looked at
// everywhere afterwards: what happened before is found then.
type Interest struct {
	unreachable networkingv1alpha1.UnreachableProviders

	mu       sync.RWMutex
	services map[types.NamespacedName]bool
}

// NewInterest returns an empty set. unreachable is for services that do not say
// themselves what to do with providers that cannot be reached.
func NewInterest(unreachable networkingv1alpha1.UnreachableProviders) *Interest {
	return &Interest{unreachable: unreachable, services: map[types.NamespacedName]bool{}}
}

// Add adds the service of an object.
func (i *Interest) Add(mcs *networkingv1alpha1.MultiClusterService) {
	sensitive := discovery.UnreachableWish(mcs, i.unreachable).Policy != networkingv1alpha1.UnreachableRetain
	i.mu.Lock()
	defer i.mu.Unlock()
	i.services[types.NamespacedName{Namespace: mcs.Namespace, Name: mcs.Name}] = sensitive
}

// Want adds a service for its own sake.
func (i *Interest) Want(service types.NamespacedName) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.services[service] = false
}

// Remove takes a service out.
func (i *Interest) Remove(service types.NamespacedName) {
	i.mu.Lock()
	defer i.mu.Unlock()
	delete(i.services, service)
}

// Has says whether somebody wants a service.
func (i *Interest) Has(service types.NamespacedName) bool {
	i.mu.RLock()
	defer i.mu.RUnlock()
	_, found := i.services[service]
	return found
}

// Services are all of them. One that is added next is looked at anyway.
func (i *Interest) Services() []types.NamespacedName {
	i.mu.RLock()
	defer i.mu.RUnlock()
	return slices.Collect(maps.Keys(i.services))
}

// Sensitive are the services whose endpoints depend on the health of providers.
func (i *Interest) Sensitive() iter.Seq[types.NamespacedName] {
	i.mu.RLock()
	defer i.mu.RUnlock()
	out := map[types.NamespacedName]bool{}
	for service, sensitive := range i.services {
		if sensitive {
			out[service] = true
		}
	}
	return maps.Keys(out)
}
