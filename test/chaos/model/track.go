package model

import "time"

// Deed is something that was done. What it changes may be seen as before until it
// has ended, and as after from when it began: it is told of before it is done.
type Deed struct{ Began, Ended time.Time }

// over says whether a deed had ended at a point in time.
func (d *Deed) over(at time.Time) bool { return !d.Ended.IsZero() && !d.Ended.After(at) }

// span is a time through which a fact had a value.
type span[V comparable] struct {
	value V
	until *Deed // nil while it lasts
}

// track is the history of one fact.
type track[V comparable] struct{ spans []span[V] }

// newTrack returns a fact that has had a value since ever.
func newTrack[V comparable](value V) *track[V] {
	return &track[V]{spans: []span[V]{{value: value}}}
}

// now is the latest value.
func (t *track[V]) now() V { return t.spans[len(t.spans)-1].value }

// set gives the fact another value.
func (t *track[V]) set(value V, d *Deed) {
	last := &t.spans[len(t.spans)-1]
	if last.value == value {
		return
	}
	last.until = d
	t.spans = append(t.spans, span[V]{value: value})
}

// had says whether the fact had a value at some moment after a point in time.
func (t *track[V]) had(value V, after time.Time) bool { return holds(t.spans, value, after) }

// hadAgain is had, without the value that the fact began with.
func (t *track[V]) hadAgain(value V, after time.Time) bool { return holds(t.spans[1:], value, after) }

func holds[V comparable](spans []span[V], value V, after time.Time) bool {
	for i := len(spans) - 1; i >= 0; i-- {
		if until := spans[i].until; until != nil && until.over(after) {
			return false // and so were all before it
		}
		if spans[i].value == value {
			return true
		}
	}
	return false
}
