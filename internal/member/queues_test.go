package member

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/namesake-io/namesake/internal/discovery"
)

// fleet is a registry of members that have no connection.
func fleet(names ...discovery.ClusterName) (*Registry, map[discovery.ClusterName]*Member) {
	r := NewRegistry(Options{})
	all := map[discovery.ClusterName]*Member{}
	for _, name := range names {
		m := &Member{id: ID{Name: name, UID: "1"}, gate: newGate()}
		r.members[name], all[name] = m, m
	}
	return r, all
}

// worker is a reconciler that notes what it does. answer says how a look ends.
type worker struct {
	answer func(ctx context.Context, m *Member, key string) (time.Duration, error)
	seeds  []string

	mu   sync.Mutex
	done []string
	when []time.Time
}

func (w *worker) Reconcile(ctx context.Context, m *Member, key string) (time.Duration, error) {
	w.mu.Lock()
	w.done = append(w.done, string(m.Name())+" "+key)
	w.when = append(w.when, time.Now())
	w.mu.Unlock()
	if w.answer == nil {
		return 0, nil
	}
	return w.answer(ctx, m, key)
}

func (w *worker) Seed(_ context.Context, _ *Member, add func(string)) error {
	for _, s := range w.seeds {
		add(s)
	}
	return nil
}

// take returns what was done since, sorted.
func (w *worker) take() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := w.done
	w.done, w.when = nil, nil
	slices.Sort(out)
	return out
}

// running starts queues in a bubble and returns them when they are idle.
func running(t *testing.T, r *Registry, w *worker) (_ *Queues[string], stop func()) {
	t.Helper()
	q := NewQueues("test", 2, r, w)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := q.Start(ctx); err != nil {
			t.Error(err)
		}
	}()
	synctest.Wait()
	return q, func() { cancel(); <-ended }
}

// Whatever was missed is found by seeding: at the start, when slices are known,
// and when a member's health changes.
func TestSeeding(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, members := fleet("a", "b")
		w := &worker{seeds: []string{"foo", "bar"}}
		early := NewQueues("test", 2, r, w)
		early.Add("a", "before the start")
		q, stop := running(t, r, w)
		expect(t, "at the start", []string{"a bar", "a foo", "b bar", "b foo"}, w.take())

		r.tell(Event{Kind: EventSynced, Member: members["a"]})
		synctest.Wait()
		expect(t, "when slices are known", []string{"a bar", "a foo"}, w.take())

		r.tell(Event{Kind: EventHealth, Member: members["b"]})
		synctest.Wait()
		expect(t, "when health changes", []string{"b bar", "b foo"}, w.take())

		r.tell(Event{Kind: EventSlice, Member: members["b"]})
		q.Add("a", "one")
		q.Add("nobody", "one")
		q.AddAll("all")
		synctest.Wait()
		expect(t, "when it is added", []string{"a all", "a one", "b all"}, w.take())

		stop()
		q.AddAll("after the end")
		q.Reseed()
		synctest.Wait()
		expect(t, "after the end", nil, w.take())
	})
}

// Who hangs is told for each member, as long as it is one.
func TestQueueMetrics(t *testing.T) {
	told := func() []string {
		var out []string
		for _, vec := range []*prometheus.GaugeVec{queueDepth, queueLongest} {
			ch := make(chan prometheus.Metric, 100)
			vec.Collect(ch)
			close(ch)
			for m := range ch {
				var have dto.Metric
				if err := m.Write(&have); err != nil {
					t.Fatal(err)
				}
				if labels := have.GetLabel(); labels[0].GetValue() == "test" {
					out = append(out, fmt.Sprintf("%s %g", labels[1].GetValue(), have.GetGauge().GetValue()))
				}
			}
		}
		slices.Sort(out)
		return out
	}
	synctest.Test(t, func(t *testing.T) {
		r, members := fleet("dead", "live")
		w := &worker{answer: func(ctx context.Context, m *Member, _ string) (time.Duration, error) {
			if m.Name() == "dead" {
				<-ctx.Done()
			}
			return 0, nil
		}}
		q, stop := running(t, r, w)
		defer stop()
		for _, key := range []string{"1", "2", "3", "4"} {
			q.AddAll(key)
		}
		time.Sleep(10*time.Second + 10*time.Millisecond)
		expect(t, "two wait, and two have hung for ten seconds", []string{"dead 10", "dead 2", "live 0", "live 0"}, told())
		r.tell(Event{Kind: EventLeft, Member: members["dead"]})
		synctest.Wait()
		expect(t, "it has left", []string{"live 0", "live 0"}, told())
	})
}

// D6: a member that hangs delays none but itself, and does not hold up the end.
func TestHangingMember(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, _ := fleet("dead", "live")
		w := &worker{answer: func(ctx context.Context, m *Member, _ string) (time.Duration, error) {
			if m.Name() == "dead" {
				<-ctx.Done()
				return 0, ctx.Err()
			}
			return 0, nil
		}}
		q, stop := running(t, r, w)
		for _, key := range []string{"1", "2", "3", "4"} {
			q.AddAll(key)
		}
		synctest.Wait()
		expect(t, "done", []string{"dead 1", "dead 2", "live 1", "live 2", "live 3", "live 4"}, w.take())
		stop()
	})
}

// What an error means: a silent member is not asked again until it is back,
// anything else is tried with a growing delay.
func TestRetries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, _ := fleet("a")
		fails := 0
		w := &worker{}
		w.answer = func(_ context.Context, _ *Member, key string) (time.Duration, error) {
			switch {
			case key == "silent":
				return 0, errors.Join(errors.New("writing"), ErrUnreachable)
			case key == "again":
				return time.Hour, nil
			case fails > 0:
				fails--
				return 0, errors.New("conflict")
			}
			return 0, nil
		}
		q, stop := running(t, r, w)
		defer stop()

		q.Add("a", "silent")
		time.Sleep(24 * time.Hour)
		expect(t, "silent", []string{"a silent"}, w.take())

		q.Add("a", "again")
		time.Sleep(2*time.Hour + time.Minute)
		expect(t, "again", []string{"a again", "a again", "a again"}, w.take())

		fails = 6
		q.Add("a", "failing")
		time.Sleep(30 * time.Minute)
		w.mu.Lock()
		when := slices.Clone(w.when)
		w.mu.Unlock()
		expect(t, "failing", slices.Repeat([]string{"a failing"}, 7), w.take())
		for i := 2; i < len(when); i++ {
			delay, nominal := when[i].Sub(when[i-1]), firstRetry<<(i-1)
			if delay < nominal/2 || delay > nominal {
				t.Errorf("try %d came after %s, want %s to %s", i+1, delay, nominal/2, nominal)
			}
		}
	})
}

// A queue ends with its connection, and a connection that has been replaced does
// not end the queue of its successor.
func TestQueueLives(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, members := fleet("a")
		w := &worker{}
		q, stop := running(t, r, w)
		defer stop()
		old := members["a"]
		q.Add("a", "1")
		synctest.Wait()
		expect(t, "first connection", []string{"a 1"}, w.take())

		next := &Member{id: old.id, gate: newGate()}
		r.mu.Lock()
		r.members["a"] = next
		r.mu.Unlock()
		q.Add("a", "2")
		synctest.Wait()
		r.tell(Event{Kind: EventLeft, Member: old})
		if q.queues[next.id] == nil || q.queues[next.id].member != next {
			t.Error("the end of the old connection ended the queue of the new one")
		}
		q.Add("a", "3")
		synctest.Wait()
		expect(t, "second connection", []string{"a 2", "a 3"}, w.take())

		r.mu.Lock()
		delete(r.members, "a")
		r.mu.Unlock()
		r.tell(Event{Kind: EventLeft, Member: next})
		r.tell(Event{Kind: EventHealth, Member: next})
		q.Add("a", "4")
		synctest.Wait()
		expect(t, "after it left", nil, w.take())
		if len(q.queues) != 0 {
			t.Errorf("%d queues are left", len(q.queues))
		}
	})
}
