package demo

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// seen is one step in the life of a book: what the watch tells, or, if it has a
// name only, that a slice went.
type seen struct {
	slice
	gone bool
	list []slice // a whole list, if not nil
}

func came(name, version string, e endpoints) seen {
	return seen{slice: slice{name: name, provider: "member1", version: version, endpoints: e}}
}

func TestBook(t *testing.T) {
	a, both, notReady := endpoints{"a": true}, endpoints{"a": true, "b": true}, endpoints{"a": false}
	tests := map[string]struct {
		seen       []seen
		keep       endpoints
		wantEvents int
		wantThere  endpoints
		wantLost   []string
	}{
		"nothing": {wantThere: endpoints{}},
		"comes and changes": {
			seen:       []seen{came("s", "1", a), came("s", "2", both)},
			keep:       a,
			wantEvents: 2,
			wantThere:  both,
		},
		"said twice is one event": {
			seen:       []seen{came("s", "1", a), came("s", "1", a)},
			wantEvents: 1,
			wantThere:  a,
		},
		"not ready is not lost": {
			seen:       []seen{came("s", "1", a), came("s", "2", notReady)},
			keep:       a,
			wantEvents: 2,
			wantThere:  notReady,
		},
		"taken out of its slice": {
			seen:       []seen{came("s", "1", both), came("s", "2", a)},
			keep:       both,
			wantEvents: 2,
			wantThere:  a,
			wantLost:   []string{"member2 lost member1's endpoint b"},
		},
		"slice goes, and comes back too late": {
			seen:       []seen{came("s", "1", a), {slice: slice{name: "s"}, gone: true}, came("s", "3", a)},
			keep:       a,
			wantEvents: 3,
			wantThere:  a,
			wantLost:   []string{"member2 lost member1's endpoint a"},
		},
		"slice goes with nobody's leave needed": {
			seen:       []seen{came("s", "1", a), {slice: slice{name: "s"}, gone: true}},
			wantEvents: 2,
			wantThere:  endpoints{},
		},
		"moves to another slice": {
			seen:       []seen{came("s", "1", a), came("t", "2", a), {slice: slice{name: "s"}, gone: true}},
			keep:       a,
			wantEvents: 3,
			wantThere:  a,
		},
		"an unknown slice goes": {
			seen:      []seen{{slice: slice{name: "s"}, gone: true}},
			wantThere: endpoints{},
		},
		"a list without news": {
			seen:       []seen{came("s", "1", a), {list: []slice{came("s", "1", a).slice}}},
			keep:       a,
			wantEvents: 1,
			wantThere:  a,
		},
		"a list without the slice": {
			seen:       []seen{came("s", "1", a), {list: []slice{}}},
			keep:       a,
			wantEvents: 2,
			wantThere:  endpoints{},
			wantLost:   []string{"member2 lost member1's endpoint a"},
		},
		"a list with it elsewhere": {
			seen:       []seen{came("s", "1", a), {list: []slice{came("t", "2", a).slice}}},
			keep:       a,
			wantEvents: 3,
			wantThere:  a,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			b := newBook("member2")
			for i, s := range tc.seen {
				at := time.Unix(int64(i), 0)
				switch {
				case s.list != nil:
					b.replace(at, s.list)
				case s.gone:
					b.remove(at, s.name)
				default:
					b.set(at, s.slice)
				}
				if i == 0 {
					b.keep("member1", tc.keep)
				}
			}
			if got := b.count("member1"); got != tc.wantEvents || b.total() != got || b.count("member3") != 0 {
				t.Errorf("%d events, %d in total, want %d", got, b.total(), tc.wantEvents)
			}
			if diff := cmp.Diff(tc.wantThere, b.endpoints("member1")); diff != "" {
				t.Errorf("endpoints (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.wantLost, b.losses()); diff != "" {
				t.Errorf("losses (-want +got):\n%s", diff)
			}
		})
	}
}

func TestBookRelease(t *testing.T) {
	b := newBook("member2")
	b.set(time.Unix(0, 0), came("s", "1", endpoints{"a": true}).slice)
	b.keep("member1", endpoints{"a": true})
	b.release()
	b.remove(time.Unix(1, 0), "s")
	if lost := b.losses(); len(lost) > 0 {
		t.Errorf("losses after release: %q", lost)
	}
}

func TestBookWaits(t *testing.T) {
	steps := []seen{
		came("s", "1", endpoints{"a": true}),
		came("s", "2", endpoints{"a": false}),
		came("t", "3", endpoints{"b": true}),
		{slice: slice{name: "s"}, gone: true},
	}
	tests := map[string]struct {
		provider string
		want     endpoints
		wantStep int // -1 for never
	}{
		"there from the start":    {"member1", endpoints{}, -2},
		"the first":               {"member1", endpoints{"a": true}, 0},
		"readiness counts":        {"member1", endpoints{"a": false}, 1},
		"over several slices":     {"member1", endpoints{"a": false, "b": true}, 2},
		"something went":          {"member1", endpoints{"b": true}, 3},
		"never":                   {"member1", endpoints{"c": true}, -1},
		"of another, and none":    {"member3", endpoints{"a": true}, -1},
		"a part is not the whole": {"member1", endpoints{"a": true, "b": true}, -1},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			b := newBook("member2")
			w := b.expect(time.Unix(-2, 0), tc.provider, tc.want)
			for i, s := range steps {
				if s.gone {
					b.remove(time.Unix(int64(i), 0), s.name)
				} else {
					b.set(time.Unix(int64(i), 0), s.slice)
				}
			}
			got := -1
			select {
			case at := <-w.came:
				got = int(at.Unix())
			default:
			}
			if got != tc.wantStep {
				t.Errorf("came at step %d, want %d", got, tc.wantStep)
			}
		})
	}
}

func TestBookList(t *testing.T) {
	b := newBook("member2")
	b.set(time.Time{}, came("t", "1", endpoints{"b": true}).slice)
	b.set(time.Time{}, came("s", "2", endpoints{"a": true}).slice)
	b.set(time.Time{}, came("empty", "3", endpoints{}).slice)
	b.set(time.Time{}, slice{name: "other", provider: "member3", endpoints: endpoints{"c": true}})
	var got []string
	for _, s := range b.list("member1") {
		got = append(got, s.name)
	}
	if diff := cmp.Diff([]string{"s", "t"}, got); diff != "" {
		t.Errorf("slices (-want +got):\n%s", diff)
	}
}
