package member

import "sync"

// lanes is the order of a work queue: what is known to have changed first, what is
// looked at to be on the safe side after it, each in the order in which it came.
// So after a restart a change need not wait until thousands of services have been
// found unchanged. It implements workqueue.Queue; all but later is called under the
// queue's own lock.
type lanes[K comparable] struct {
	mu sync.Mutex
	// patient are keys whose next Push or Touch is not urgent.
	patient map[K]bool
	// waits has the lane of each key: true is the second. A key that has moved up
	// leaves a trace in rest, which Pop passes over.
	waits       map[K]bool
	first, rest []K
}

// newLanes returns an empty order.
func newLanes[K comparable]() *lanes[K] {
	return &lanes[K]{patient: map[K]bool{}, waits: map[K]bool{}}
}

// later says of a key that is about to be added that it can wait.
func (l *lanes[K]) later(key K) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.patient[key] = true
}

// Push implements workqueue.Queue.
func (l *lanes[K]) Push(key K) {
	l.mu.Lock()
	defer l.mu.Unlock()
	patient := l.patient[key]
	delete(l.patient, key)
	l.waits[key] = patient
	if patient {
		l.rest = append(l.rest, key)
	} else {
		l.first = append(l.first, key)
	}
}

// Touch implements workqueue.Queue: a key is added that is there already.
func (l *lanes[K]) Touch(key K) {
	l.mu.Lock()
	defer l.mu.Unlock()
	patient := l.patient[key]
	delete(l.patient, key)
	if !patient && l.waits[key] {
		l.waits[key] = false
		l.first = append(l.first, key)
	}
}

// Len implements workqueue.Queue.
func (l *lanes[K]) Len() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.waits)
}

// Pop implements workqueue.Queue. There is a key to take when it is called.
func (l *lanes[K]) Pop() (key K) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.first) > 0 {
		key = take(&l.first)
	} else {
		for key = take(&l.rest); !l.waits[key]; {
			key = take(&l.rest)
		}
	}
	delete(l.waits, key)
	return key
}

// take takes the first of a list, and lets go of the list when it is empty.
func take[K any](list *[]K) K {
	var none K
	key := (*list)[0]
	(*list)[0] = none
	if *list = (*list)[1:]; len(*list) == 0 {
		*list = nil
	}
	return key
}
