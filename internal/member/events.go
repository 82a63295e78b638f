package member

import (
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// EventKind says what happened to a member.
type EventKind int

const (
	// EventSynced: the slices of the member are known for the first time in this
	// connection.
	EventSynced EventKind = iota
	// EventHealth: the member became reachable or unreachable, ready or not.
	EventHealth
	// EventWatch: the watch of the member's slices works, or does not any more.
	EventWatch
	// EventSlice: a slice of the member came, changed or went.
	EventSlice
	// EventObject: an object that the hub watches there came, changed or went.
	EventObject
	// EventLeft: the connection has ended; the member is not in the registry.
	EventLeft
)

// Event tells what happened to a member.
type Event struct {
	Kind   EventKind
	Member *Member
	// Old and New are set for EventSlice: nil means that there was, or is, none.
	// Not to be changed. Endpoints are missing for services that nobody wants.
	Old, New *discoveryv1.EndpointSlice
	// GVK and Key are set for EventObject, and Work is the Work that put the
	// object there, where the object says so.
	GVK  schema.GroupVersionKind
	Key  types.NamespacedName
	Work types.NamespacedName
}

// Handler takes an event. It is called on the goroutine that saw it and must
// not block: it decides what to enqueue, no more.
type Handler func(Event)
