package demo

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"
)

// endpoints tells for each address whether it is ready.
type endpoints map[string]bool

// slice is what the story needs to know of an EndpointSlice.
type slice struct {
	name string
	// provider is the member whose pods it lists.
	provider  string
	port      int32
	version   string // resourceVersion
	endpoints endpoints
}

// book holds the slices of the service in one member, as its watch tells them,
// and notes what happened to them. It may be used concurrently.
type book struct {
	member string

	mu     sync.Mutex
	slices map[string]slice
	// events counts what happened to slices, by provider.
	events map[string]int
	// kept are the endpoints, by provider, that must stay known.
	kept  map[string]map[string]bool
	lost  []string
	waits []*wait
}

// wait is for the moment at which a provider's endpoints are the wanted ones.
type wait struct {
	member, provider string
	want             endpoints
	// came gets the time of that moment, once.
	came chan time.Time
}

func newBook(member string) *book {
	return &book{member: member, slices: map[string]slice{}, events: map[string]int{}, kept: map[string]map[string]bool{}}
}

// set notes that a slice came or changed.
func (b *book) set(at time.Time, s slice) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.put(s)
	b.settle(at)
}

// remove notes that a slice went.
func (b *book) remove(at time.Time, name string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.drop(name)
	b.settle(at)
}

// replace notes a list: all that there is, after a watch was interrupted.
func (b *book) replace(at time.Time, list []slice) {
	b.mu.Lock()
	defer b.mu.Unlock()
	gone := maps.Clone(b.slices)
	for _, s := range list {
		delete(gone, s.name)
		b.put(s)
	}
	for name := range gone {
		b.drop(name)
	}
	b.settle(at)
}

func (b *book) put(s slice) {
	if known, ok := b.slices[s.name]; ok && known.version == s.version {
		return
	}
	b.slices[s.name] = s
	b.events[s.provider]++
}

func (b *book) drop(name string) {
	if s, ok := b.slices[name]; ok {
		delete(b.slices, name)
		b.events[s.provider]++
	}
}

// settle answers waits and notes losses, after each event.
func (b *book) settle(at time.Time) {
	for provider, addresses := range b.kept {
		there := b.of(provider)
		for address := range addresses {
			if _, ok := there[address]; !ok {
				b.lost = append(b.lost, fmt.Sprintf("%s lost %s's endpoint %s", b.member, provider, address))
				delete(addresses, address)
			}
		}
	}
	b.waits = slices.DeleteFunc(b.waits, func(w *wait) bool {
		if !maps.Equal(b.of(w.provider), w.want) {
			return false
		}
		w.came <- at
		return true
	})
}

// of collects the endpoints of a provider from all of its slices.
func (b *book) of(provider string) endpoints {
	all := endpoints{}
	for _, s := range b.slices {
		if s.provider == provider {
			maps.Copy(all, s.endpoints)
		}
	}
	return all
}

// expect begins a wait. A state that is there already counts as come now.
func (b *book) expect(now time.Time, provider string, want endpoints) *wait {
	b.mu.Lock()
	defer b.mu.Unlock()
	w := &wait{member: b.member, provider: provider, want: maps.Clone(want), came: make(chan time.Time, 1)}
	b.waits = append(b.waits, w)
	b.settle(now)
	return w
}

// keep says that endpoints must stay known from now on.
func (b *book) keep(provider string, want endpoints) {
	b.mu.Lock()
	defer b.mu.Unlock()
	kept := map[string]bool{}
	for address := range want {
		kept[address] = true
	}
	b.kept[provider] = kept
}

// release says that any endpoint may go.
func (b *book) release() {
	b.mu.Lock()
	defer b.mu.Unlock()
	clear(b.kept)
}

// losses tells what was lost though it had to be kept.
func (b *book) losses() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.lost)
}

// count tells how many events there were for a provider's slices.
func (b *book) count(provider string) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.events[provider]
}

// total tells how many events there were.
func (b *book) total() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	sum := 0
	for _, n := range b.events {
		sum += n
	}
	return sum
}

// endpoints returns what is known of a provider.
func (b *book) endpoints(provider string) endpoints {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.of(provider)
}

// list returns the slices of a provider that have endpoints, by name.
func (b *book) list(provider string) []slice {
	b.mu.Lock()
	defer b.mu.Unlock()
	var list []slice
	for _, name := range slices.Sorted(maps.Keys(b.slices)) {
		if s := b.slices[name]; s.provider == provider && len(s.endpoints) > 0 {
			list = append(list, s)
		}
	}
	return list
}
