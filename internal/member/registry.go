package member

import (
	"bytes"
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"

	"github.com/namesake-io/namesake/internal/discovery"
)

// Registry holds the members that are connected.
type Registry struct {
	opts     Options
	contents *contents

	mu       sync.RWMutex
	members  map[discovery.ClusterName]*Member
	incoming map[discovery.ClusterName]*Member
	handlers []Handler
	closed   bool
	// stopping are members that have left, and may still be ending.
	stopping sync.WaitGroup
}

// NewRegistry returns a registry without members.
func NewRegistry(opts Options) *Registry {
	return &Registry{
		opts:     opts,
		contents: newContents(),
		members:  map[discovery.ClusterName]*Member{},
		incoming: map[discovery.ClusterName]*Member{},
	}
}

// Subscribe has a handler called for every event of every member from now on.
func (r *Registry) Subscribe(h Handler) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.handlers = append(r.handlers, h)
}

// Get returns the member of that name.
func (r *Registry) Get(name discovery.ClusterName) (*Member, bool) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	m, found := r.members[name]
	return m, found
}

// List returns all members, sorted by name.
func (r *Registry) List() []*Member {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return slices.SortedFunc(maps.Values(r.members), func(a, b *Member) int { return cmp.Compare(a.id.Name, b.id.Name) })
}

// Listing says whether a member that may answer has not shown its slices yet.
func (r *Registry) Listing() bool {
	r.mu.RLock()
	defer r.mu.RUnlock()
	for _, m := range r.members {
		if m.Reachable() && !m.slices.Synced() {
			return true
		}
	}
	return false
}

// Health returns what is known of the newest connection to a member: of one that
// is still being made before of one that it will replace.
func (r *Registry) Health(name discovery.ClusterName) (Health, bool) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if m, found := r.incoming[name]; found {
		return m.Health(), true
	}
	if m, found := r.members[name]; found {
		return m.Health(), true
	}
	return Health{}, false
}

// Ensure makes a member be connected as the configuration says. A new token is
// taken over in place. Any other change makes a new connection, which replaces
// the old one once it has seen the member's slices, so that a wrong change cuts
// nothing. The member outlives the call and its context, of which it takes no
// more than the logger: it lives until it leaves, or the registry is closed.
func (r *Registry) Ensure(ctx context.Context, cfg Config) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return nil
	}
	have, connected := r.members[cfg.ID.Name]
	if connected && have.id != cfg.ID {
		// Another cluster under a known name: nothing of the old one is kept.
		delete(r.members, cfg.ID.Name)
		r.retire(have)
		connected = false
	}
	if connected && sameConnection(&have.config, &cfg) {
		have.tokens.set(cfg.Token)
		if next, found := r.incoming[cfg.ID.Name]; found {
			delete(r.incoming, cfg.ID.Name)
			r.stopping.Go(next.stop)
		}
		return nil
	}
	if next, found := r.incoming[cfg.ID.Name]; found {
		if next.id == cfg.ID && sameConnection(&next.config, &cfg) {
			next.tokens.set(cfg.Token)
			return nil
		}
		delete(r.incoming, cfg.ID.Name)
		r.stopping.Go(next.stop)
	}

	next, err := connect(cfg, r.opts, r.contents, r.emit)
	if err != nil {
		return err
	}
	if connected {
		r.incoming[cfg.ID.Name] = next
	} else {
		r.members[cfg.ID.Name] = next
	}
	next.start(context.WithoutCancel(ctx))
	return nil
}

// Leave ends the connection to a member. It returns at once; EventLeft is told
// when nothing of the member runs any more.
func (r *Registry) Leave(name discovery.ClusterName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if next, found := r.incoming[name]; found {
		delete(r.incoming, name)
		r.stopping.Go(next.stop)
	}
	if m, found := r.members[name]; found {
		delete(r.members, name)
		r.retire(m)
	}
}

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (r *Registry) NeedLeaderElection() bool { return false }

// Start implements manager.Runnable. When the context ends nobody waits any more for
// a member that does not answer: who ends, or begins anew, would wait with them.
func (r *Registry) Start(ctx context.Context) error {
	<-ctx.Done()
	r.mu.RLock()
	defer r.mu.RUnlock()
	for _, m := range r.members {
		m.gate.release()
	}
	for _, m := range r.incoming {
		m.gate.release()
	}
	return nil
}

// Close ends all connections and returns when nothing of any member runs any more.
func (r *Registry) Close() {
	r.mu.Lock()
	r.closed = true
	all := slices.Concat(slices.Collect(maps.Values(r.members)), slices.Collect(maps.Values(r.incoming)))
	clear(r.members)
	clear(r.incoming)
	r.mu.Unlock()

	for _, m := range all {
		r.stopping.Go(m.stop)
	}
	r.stopping.Wait()
}

// retire stops a member that is no longer in the registry. The lock is held.
func (r *Registry) retire(m *Member) {
	r.stopping.Go(func() {
		m.stop()
		r.tell(Event{Kind: EventLeft, Member: m})
	})
}

// emit passes an event on to the handlers. A connection that is still being made
// tells nothing until it takes its place.
func (r *Registry) emit(e Event) {
	name := e.Member.id.Name
	r.mu.Lock()
	if r.incoming[name] == e.Member {
		if e.Kind == EventSynced {
			old := r.members[name]
			r.members[name] = e.Member
			delete(r.incoming, name)
			if old != nil {
				r.stopping.Go(old.stop)
			}
		} else if e.Kind != EventHealth {
			r.mu.Unlock()
			return
		}
	} else if r.members[name] != e.Member {
		r.mu.Unlock()
		return
	}
	r.mu.Unlock()
	r.tell(e)
}

// tell calls the handlers.
func (r *Registry) tell(e Event) {
	r.mu.RLock()
	handlers := r.handlers
	r.mu.RUnlock()
	for _, h := range handlers {
		h(e)
	}
}

// sameConnection says that two configurations differ in the token at most.
func sameConnection(a, b *Config) bool {
	return a.ID == b.ID && a.Endpoint == b.Endpoint && bytes.Equal(a.CABundle, b.CABundle) &&
		a.InsecureSkipTLSVerification == b.InsecureSkipTLSVerification &&
		a.ProxyURL == b.ProxyURL && maps.Equal(a.ProxyHeader, b.ProxyHeader)
}
