package apply

import (
	"maps"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// memorySpan bounds how long a cache that never shows a write is waited for: the
// object may have been changed and removed by others in between.
const memorySpan = 5 * time.Second

// lookAgain is how soon to look again whether the cache shows a write. Its event
// comes sooner, but may be one that the controller does not listen to, as that of
// a status often is.
const lookAgain = 100 * time.Millisecond

// Memory remembers a controller's own writes of one kind, so that a cache that
// has not seen them yet does not make it write the same again.
type Memory struct {
	mu     sync.Mutex
	writes map[types.NamespacedName]write
	// sweepAt is how many writes there are when those are dropped next that
	// nobody asked for again in time.
	sweepAt int
}

// firstSweep is the number of writes that are remembered without a look at them.
const firstSweep = 64

// write is the last write of one object.
type write struct {
	version string
	deleted types.UID
	at      time.Time
}

// NewMemory returns an empty Memory.
func NewMemory() *Memory {
	return &Memory{writes: map[types.NamespacedName]write{}, sweepAt: firstSweep}
}

// Wrote remembers an object as the server returned it for a write.
func (m *Memory) Wrote(obj client.Object) {
	m.remember(client.ObjectKeyFromObject(obj), write{version: obj.GetResourceVersion(), at: time.Now()})
}

// Deleted remembers that an object was deleted.
func (m *Memory) Deleted(obj client.Object) {
	m.remember(client.ObjectKeyFromObject(obj), write{deleted: obj.GetUID(), at: time.Now()})
}

// remember adds a write, and now and then drops those that have had their time.
func (m *Memory) remember(key types.NamespacedName, w write) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.writes[key] = w
	if len(m.writes) < m.sweepAt {
		return
	}
	maps.DeleteFunc(m.writes, func(_ types.NamespacedName, old write) bool { return w.at.Sub(old.at) >= memorySpan })
	m.sweepAt = max(firstSweep, 2*len(m.writes))
}

// Behind returns when to look again whether the cache shows the last write of an
// object. Zero: the cache is up to date. cached is nil when the cache has no such
// object.
func (m *Memory) Behind(key types.NamespacedName, cached client.Object) time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	w, found := m.writes[key]
	if !found {
		return 0
	}
	left := memorySpan - time.Since(w.at)
	if left <= 0 || w.shownBy(cached) {
		delete(m.writes, key)
		return 0
	}
	return min(left, lookAgain)
}

// BehindAny returns the longest such wait for several objects, nil for those that
// the cache does not have.
func (m *Memory) BehindAny(cached map[types.NamespacedName]client.Object) time.Duration {
	var longest time.Duration
	for key, obj := range cached {
		longest = max(longest, m.Behind(key, obj))
	}
	return longest
}

// shownBy says that a cached object is as new as the write.
func (w write) shownBy(cached client.Object) bool {
	if w.deleted != "" {
		return cached == nil || cached.GetUID() != w.deleted || cached.GetDeletionTimestamp() != nil
	}
	if cached == nil {
		return false
	}
	order, err := resourceversion.CompareResourceVersion(cached.GetResourceVersion(), w.version)
	return err != nil || order >= 0
}
