package demo

import (
	"context"
	"fmt"
	"maps"
	"time"
)

// change is one thing that happens to one pod.
type change struct {
	member *cluster
	// pod is the number of the pod in its member.
	pod int
	// what it becomes.
	what podState
	// consumers are who must get to know it.
	consumers []*cluster
}

type podState int

const (
	podReady podState = iota
	podNotReady
	podGone
)

// journey is a change on its way.
type journey struct {
	change
	// began is the moment before the write to the provider's API server.
	began time.Time
	// own waits for the provider's slice, arrivals for each consumer's.
	own      *wait
	arrivals []*wait
}

// times of a journey that has ended.
type times struct {
	// own is when the provider's slice had the change, last is when the last
	// consumer had it; both since the write. carried is from the one to the other.
	own, last, carried time.Duration
}

// setOut makes a change and returns when it is written. What was known of other
// pods has to stay known from then on.
func (w *world) setOut(ctx context.Context, c change) (*journey, error) {
	want := maps.Clone(c.member.pods)
	address := c.member.podAddress(c.pod)
	_, exists := want[address]
	if c.what == podGone {
		delete(want, address)
	} else {
		want[address] = c.what == podReady
	}
	if c.what != podGone && !exists {
		if err := c.member.createPod(ctx, c.pod); err != nil {
			return nil, err
		}
	}
	j := &journey{change: c}
	j.own = c.member.book.expect(time.Now(), c.member.name, want)
	for _, consumer := range c.consumers {
		if c.what == podGone {
			consumer.book.keep(c.member.name, want)
		}
		j.arrivals = append(j.arrivals, consumer.book.expect(time.Now(), c.member.name, want))
	}
	c.member.pods = want
	j.began = time.Now()
	if c.what == podGone {
		return j, c.member.deletePod(ctx, c.pod)
	}
	return j, c.member.reportPod(ctx, c.pod, c.what == podReady)
}

// arrive waits until the change is in every consumer. The limit is for the way
// from the provider's slice to the last consumer, which is Namesake's.
func (w *world) arrive(ctx context.Context, j *journey, limit time.Duration) (times, error) {
	own, err := w.await(ctx, ownLimit, j.own)
	if err != nil {
		return times{}, err
	}
	last, err := w.await(ctx, limit, j.arrivals...)
	if err != nil {
		return times{}, err
	}
	for _, consumer := range j.consumers {
		consumer.book.keep(j.member.name, j.member.pods)
	}
	// Each API server has its own watch, and they tell when they like.
	carried := max(0, last.Sub(own))
	return times{own: own.Sub(j.began), last: own.Add(carried).Sub(j.began), carried: carried}, nil
}

// travel is setOut and arrive.
func (w *world) travel(ctx context.Context, c change, limit time.Duration) (times, error) {
	j, err := w.setOut(ctx, c)
	if err != nil {
		return times{}, err
	}
	return w.arrive(ctx, j, limit)
}

// await returns the time of the last of the awaited moments.
func (w *world) await(ctx context.Context, limit time.Duration, waits ...*wait) (time.Time, error) {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	var last time.Time
	for _, wait := range waits {
		select {
		case at := <-wait.came:
			if at.After(last) {
				last = at
			}
		case <-timer.C:
			return last, w.late(wait, limit)
		case <-ctx.Done():
			return last, fmt.Errorf("%w: %w", w.late(wait, limit), ctx.Err())
		}
	}
	return last, nil
}

func (w *world) late(wait *wait, limit time.Duration) error {
	for _, m := range w.members {
		if m.name == wait.member {
			return fmt.Errorf("%s should know the endpoints %s of %s within %s, and knows %s",
				m.name, wait.want, wait.provider, limit, m.book.endpoints(wait.provider))
		}
	}
	return fmt.Errorf("%s is not watched", wait.member)
}
