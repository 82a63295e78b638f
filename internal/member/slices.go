package member

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"golang.org/x/sync/singleflight"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/namesake-io/namesake/internal/discovery"
)

// errSlicesChanging is returned when slices of a service change faster than they
// can be read whole. The next try finds them.
var errSlicesChanging = errors.New("the service's slices are changing just now")

// SliceStore is a view of every slice of one member, filled by a reflector and
// by what the hub itself writes there.
//
// Only two kinds of slices keep their endpoints: dispatched ones, and those of
// services that somebody wants. Of the others the store keeps the key, so that a
// cluster full of services costs little.
type SliceStore struct {
	// list reads from the member. listPatiently waits for one that cannot be reached.
	list, listPatiently lister
	// expected says whether slices of a service will be asked for, as far as is
	// known before they are: what is kept at once need not be read again. May be
	// nil.
	expected func(service types.NamespacedName) bool
	// changed is told of every change, synced of the first full view.
	changed func(old, current *discoveryv1.EndpointSlice)
	synced  func()

	// contents are shared with the stores of other members.
	contents *contents

	// asking bundles questions for the slices of one service.
	asking singleflight.Group

	mu        sync.RWMutex
	entries   map[types.NamespacedName]*entry
	byService map[types.NamespacedName]map[types.NamespacedName]*entry
	// wanted is true for services that were asked for, and false for those that
	// were expected to be, and are not.
	wanted map[types.NamespacedName]bool
	// gone holds the resourceVersion of slices that the hub deleted and whose
	// deletion the reflector has not told yet.
	gone     map[types.NamespacedName]string
	complete bool
	// readings are under way; missing are those that no reader has taken, and wake
	// has an entry for each reader that is to look.
	readings map[types.NamespacedName]*reading
	missing  []types.NamespacedName
	wake     chan struct{}
}

// lister reads the slices of one service, no older than a version.
type lister func(ctx context.Context, service types.NamespacedName, version string) ([]discoveryv1.EndpointSlice, error)

// change is what a slice was and is.
type change struct{ old, current *discoveryv1.EndpointSlice }

// entry is one slice. It is replaced, never changed.
type entry struct {
	slice      *discoveryv1.EndpointSlice
	full       bool
	dispatched bool
	// content keeps what the slice shares with others.
	content *discoveryv1.EndpointSlice
}

// ownMark is all that is kept of the managedFields of a dispatched slice: the mark
// that survives edits of labels and annotations. One for all, not to be changed.
var ownMark = []metav1.ManagedFieldsEntry{{Manager: discovery.FieldManager}}

// newSliceStore returns an empty store, which shares contents.
func newSliceStore(shared *contents) *SliceStore {
	return &SliceStore{
		contents:  shared,
		entries:   map[types.NamespacedName]*entry{},
		byService: map[types.NamespacedName]map[types.NamespacedName]*entry{},
		wanted:    map[types.NamespacedName]bool{},
		gone:      map[types.NamespacedName]string{},
		readings:  map[types.NamespacedName]*reading{},
		wake:      make(chan struct{}, readers),
	}
}

// Synced is true once the store has held every slice of the member. What is not
// in a synced store does not exist in the member, as of its last answer.
func (s *SliceStore) Synced() bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.complete
}

// Native returns the member's own slices of a service, and marks the service as
// wanted. Not to be changed.
func (s *SliceStore) Native(ctx context.Context, service types.NamespacedName) ([]*discoveryv1.EndpointSlice, error) {
	s.mu.Lock()
	found, lacking := s.native(service)
	s.mu.Unlock()
	if lacking == "" {
		return found, nil
	}
	if err := s.fetch(ctx, s.list, service, lacking); err != nil {
		return nil, fmt.Errorf("listing slices of service %s: %w", service, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if found, lacking = s.native(service); lacking != "" {
		return nil, errSlicesChanging
	}
	return found, nil
}

// native returns the own slices of a service, and marks it as wanted. lacking is
// the latest version of those without endpoints, empty when all have theirs. The lock
// is held.
func (s *SliceStore) native(service types.NamespacedName) (found []*discoveryv1.EndpointSlice, lacking string) {
	s.wanted[service] = true
	return s.ofMember(service)
}

// ofMember is native for who does not want the service. The lock is held.
func (s *SliceStore) ofMember(service types.NamespacedName) (found []*discoveryv1.EndpointSlice, lacking string) {
	for _, e := range s.byService[service] {
		switch {
		case e.dispatched:
		case e.full:
			found = append(found, e.slice)
		case lacking == "" || newer(e.slice.ResourceVersion, lacking):
			lacking = e.slice.ResourceVersion
		}
	}
	return found, lacking
}

// keeps says whether own slices of a service keep their endpoints. The lock is held.
func (s *SliceStore) keeps(service types.NamespacedName) bool {
	if wanted, said := s.wanted[service]; said {
		return wanted
	}
	return s.expected != nil && s.expected(service)
}

// fill gives trimmed slices their endpoints, and returns which. It adds none: a
// slice that is not in the store is either gone or about to be told. The lock is held.
func (s *SliceStore) fill(listed []discoveryv1.EndpointSlice) (filled []change) {
	for i := range listed {
		key := keyOf(&listed[i])
		if have := s.entries[key]; have != nil && !have.full && !newer(have.slice.ResourceVersion, listed[i].ResourceVersion) {
			e := s.newEntry(&listed[i])
			s.put(key, e)
			filled = append(filled, change{have.slice, e.slice})
		}
	}
	return filled
}

// Forget drops the endpoints of a service's own slices.
func (s *SliceStore) Forget(service types.NamespacedName) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.wanted, service)
	if s.keeps(service) {
		s.wanted[service] = false
	}
	for key, e := range s.byService[service] {
		s.put(key, s.newEntry(e.slice))
	}
}

// Dispatched returns the slices that a hub put into the member for a service:
// those labelled with it, and those that have one of the names. Not to be changed.
func (s *SliceStore) Dispatched(service types.NamespacedName, names []discovery.SliceName) []*discoveryv1.EndpointSlice {
	s.mu.RLock()
	defer s.mu.RUnlock()
	found := map[types.NamespacedName]*discoveryv1.EndpointSlice{}
	for key, e := range s.byService[service] {
		if e.dispatched {
			found[key] = e.slice
		}
	}
	for _, name := range names {
		key := types.NamespacedName{Namespace: service.Namespace, Name: string(name)}
		if e := s.entries[key]; e != nil && e.dispatched {
			found[key] = e.slice
		}
	}
	return slices.Collect(maps.Values(found))
}

// IsNative says whether the member has a slice of its own of this name.
func (s *SliceStore) IsNative(key types.NamespacedName) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	e := s.entries[key]
	return e != nil && !e.dispatched
}

// DispatchedServices returns the services that dispatched slices are labelled
// with, in no order.
func (s *SliceStore) DispatchedServices() []types.NamespacedName {
	s.mu.RLock()
	defer s.mu.RUnlock()
	var found []types.NamespacedName
	for service, entries := range s.byService {
		for _, e := range entries {
			if e.dispatched {
				found = append(found, service)
				break
			}
		}
	}
	return found
}

// Wrote takes in a slice as the member returned it for a write of ours, so that
// the next look is not staler than the last deed. No event is told for it.
func (s *SliceStore) Wrote(slice *discoveryv1.EndpointSlice) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.accept(slice)
}

// Deleted takes in that a slice was deleted by us.
func (s *SliceStore) Deleted(slice *discoveryv1.EndpointSlice) {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := keyOf(slice)
	if have := s.entries[key]; have != nil && have.slice.UID == slice.UID {
		s.gone[key] = have.slice.ResourceVersion
		s.put(key, nil)
	}
}

// Add implements cache.ReflectorStore.
func (s *SliceStore) Add(obj any) error { return s.Update(obj) }

// Update implements cache.ReflectorStore.
func (s *SliceStore) Update(obj any) error {
	slice, ok := obj.(*discoveryv1.EndpointSlice)
	if !ok {
		return fmt.Errorf("storing a %T among slices", obj)
	}
	s.mu.Lock()
	old, current, accepted := s.accept(slice)
	s.mu.Unlock()
	if accepted {
		s.changed(old, current)
	}
	return nil
}

// Delete implements cache.ReflectorStore.
func (s *SliceStore) Delete(obj any) error {
	slice, ok := obj.(*discoveryv1.EndpointSlice)
	if !ok {
		return fmt.Errorf("deleting a %T among slices", obj)
	}
	key := keyOf(slice)
	s.mu.Lock()
	have := s.entries[key]
	delete(s.gone, key)
	// A slice of that name which we made since is another one.
	stays := have == nil || have.slice.UID != slice.UID
	if !stays {
		s.put(key, nil)
	}
	s.mu.Unlock()
	if !stays {
		s.changed(have.slice, nil)
	}
	return nil
}

// Transformer implements cache.TransformingStore: what a reflector gathers for
// Replace is trimmed as it comes. The first look at a cluster full of slices never
// holds them whole.
func (s *SliceStore) Transformer() toolscache.TransformFunc {
	return func(obj any) (any, error) {
		slice, ok := obj.(*discoveryv1.EndpointSlice)
		if !ok {
			return nil, fmt.Errorf("gathering a %T among slices", obj)
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.newEntry(slice).slice, nil
	}
}

// Replace implements cache.ReflectorStore: a full list, at the start or after a
// watch was lost. Only the differences are told, and of the first list no more than
// that it has come: to whoever needs to know, everything in it is as new.
func (s *SliceStore) Replace(list []any, listVersion string) error {
	var changes []change

	s.mu.Lock()
	listed := make(map[types.NamespacedName]bool, len(list))
	for _, obj := range list {
		slice, ok := obj.(*discoveryv1.EndpointSlice)
		if !ok {
			s.mu.Unlock()
			return fmt.Errorf("storing a %T among slices", obj)
		}
		listed[keyOf(slice)] = true
		if old, current, accepted := s.accept(slice); accepted {
			changes = append(changes, change{old, current})
		}
	}
	for key, e := range s.entries {
		// What we wrote after the list was made is not in it, but it is there.
		if !listed[key] && !newer(e.slice.ResourceVersion, listVersion) {
			s.put(key, nil)
			changes = append(changes, change{old: e.slice})
		}
	}
	for key := range s.gone {
		if !listed[key] {
			delete(s.gone, key)
		}
	}
	first := !s.complete
	s.complete = true
	s.mu.Unlock()

	if first {
		s.synced()
		return nil
	}
	for _, c := range changes {
		s.changed(c.old, c.current)
	}
	return nil
}

// Resync implements cache.ReflectorStore. The store needs none.
func (s *SliceStore) Resync() error { return nil }

// accept stores a slice unless it is older than what is known. The lock is held.
func (s *SliceStore) accept(slice *discoveryv1.EndpointSlice) (old, current *discoveryv1.EndpointSlice, accepted bool) {
	key := keyOf(slice)
	if version, found := s.gone[key]; found {
		if !newer(slice.ResourceVersion, version) {
			return nil, nil, false
		}
		delete(s.gone, key)
	}
	have := s.entries[key]
	if have != nil {
		if !newer(slice.ResourceVersion, have.slice.ResourceVersion) {
			return nil, nil, false
		}
		old = have.slice
	}
	e := s.newEntry(slice)
	s.put(key, e)
	return old, e.slice, true
}

// newEntry trims a slice to what is needed of it. One that is trimmed stays so: it
// has no address type, which every slice has. The lock is held.
func (s *SliceStore) newEntry(slice *discoveryv1.EndpointSlice) *entry {
	e := &entry{dispatched: discovery.Dispatched(slice)}
	e.full = slice.AddressType != "" && (e.dispatched || s.keeps(serviceOf(slice)))
	trimmed := *slice
	trimmed.ManagedFields = nil
	if e.dispatched {
		trimmed.ManagedFields = ownMark
	}
	if !e.full {
		trimmed.ObjectMeta = metav1.ObjectMeta{
			Namespace: slice.Namespace, Name: slice.Name, UID: slice.UID,
			ResourceVersion: slice.ResourceVersion, Generation: slice.Generation,
			Labels: map[string]string{discoveryv1.LabelServiceName: slice.Labels[discoveryv1.LabelServiceName]},
		}
		trimmed.AddressType, trimmed.Endpoints, trimmed.Ports = "", nil, nil
	}
	if e.dispatched {
		e.content = s.contents.share(&trimmed)
	}
	e.slice = &trimmed
	return e
}

// put stores or, with nil, removes an entry and keeps the index. The lock is held.
func (s *SliceStore) put(key types.NamespacedName, e *entry) {
	if have := s.entries[key]; have != nil {
		service := serviceOf(have.slice)
		delete(s.byService[service], key)
		if len(s.byService[service]) == 0 {
			delete(s.byService, service)
		}
		delete(s.entries, key)
	}
	if e == nil {
		return
	}
	s.entries[key] = e
	service := serviceOf(e.slice)
	if s.byService[service] == nil {
		s.byService[service] = map[types.NamespacedName]*entry{}
	}
	s.byService[service][key] = e
}

// keyOf returns the namespace and name of a slice.
func keyOf(slice *discoveryv1.EndpointSlice) types.NamespacedName {
	return types.NamespacedName{Namespace: slice.Namespace, Name: slice.Name}
}

// serviceOf returns the service that a slice is labelled with. Its name is empty
// when there is no label.
func serviceOf(slice *discoveryv1.EndpointSlice) types.NamespacedName {
	return types.NamespacedName{Namespace: slice.Namespace, Name: slice.Labels[discoveryv1.LabelServiceName]}
}

// newer says that resourceVersion a is later than b. Versions that cannot be
// compared count as later, so that nothing is missed.
func newer(a, b string) bool {
	order, err := resourceversion.CompareResourceVersion(a, b)
	return err != nil || order > 0
}
