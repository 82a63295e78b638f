package member

import (
	"context"
	"slices"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"
)

const (
	// readers is how many services of a member are read side by side.
	readers = 4
	// readWait is how long a look at a service waits for a read that has just
	// begun. A member that works takes less. One that hangs must not keep those who
	// plan for all members.
	readWait = 100 * time.Millisecond
	// readRetry is how soon a read that failed is tried again at first, and
	// lastReadRetry in the end.
	readRetry     = 200 * time.Millisecond
	lastReadRetry = 5 * time.Second
)

// reading is a service whose slices are being read, whole.
type reading struct {
	began time.Time
	// done is closed when all slices have endpoints, or nobody wants them any more.
	done chan struct{}
	// late is true once somebody has gone on without: what comes is told, as
	// changes.
	late bool
}

// NativeSoon is Native for those who cannot wait for one member. whole is false
// when the slices are not known within moments; then they are told as changes when
// they are.
func (s *SliceStore) NativeSoon(ctx context.Context, service types.NamespacedName) (_ []*discoveryv1.EndpointSlice, whole bool) {
	s.mu.Lock()
	found, lacking := s.native(service)
	if lacking == "" {
		s.mu.Unlock()
		return found, true
	}
	r := s.ask(service)
	s.mu.Unlock()

	timer := time.NewTimer(time.Until(r.began.Add(readWait)))
	defer timer.Stop()
	select {
	case <-r.done:
	case <-timer.C:
	case <-ctx.Done():
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if found, lacking = s.native(service); lacking != "" {
		r.late = true
	}
	return found, lacking == ""
}

// ask returns the read of a service that is under way, begun if there is none. The
// lock is held.
func (s *SliceStore) ask(service types.NamespacedName) *reading {
	if r := s.readings[service]; r != nil {
		return r
	}
	r := &reading{began: time.Now(), done: make(chan struct{})}
	s.readings[service] = r
	s.missing = append(s.missing, service)
	s.wakeReader()
	return r
}

func (s *SliceStore) wakeReader() {
	select {
	case s.wake <- struct{}{}:
	default: // as many are on their way as there are readers
	}
}

// readMissing reads what is asked for until the context ends. Several do so at once.
func (s *SliceStore) readMissing(ctx context.Context) {
	retry := readRetry
	for ctx.Err() == nil {
		service, found := s.nextMissing()
		if !found {
			select {
			case <-ctx.Done():
			case <-s.wake:
			}
			continue
		}
		if s.read(ctx, service) {
			retry = readRetry
			continue
		}
		s.mu.Lock()
		s.missing = append(s.missing, service)
		s.mu.Unlock()
		timer := time.NewTimer(retry)
		select {
		case <-ctx.Done():
		case <-timer.C:
		}
		timer.Stop()
		retry = min(2*retry, lastReadRetry)
	}
}

// nextMissing takes the service that has waited longest.
func (s *SliceStore) nextMissing() (_ types.NamespacedName, found bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.missing) == 0 {
		return types.NamespacedName{}, false
	}
	next := s.missing[0]
	s.missing = slices.Delete(s.missing, 0, 1)
	return next, true
}

// read reads the slices of a service, and says whether there is nothing more to
// read. Of a member that cannot be reached, it waits for its return.
func (s *SliceStore) read(ctx context.Context, service types.NamespacedName) (done bool) {
	if s.arrived(service, nil) {
		return true // somebody else has read them, or nobody wants them any more
	}
	s.mu.Lock()
	_, lacking := s.ofMember(service)
	s.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	if err := s.fetch(ctx, s.listPatiently, service, lacking); err != nil {
		return false
	}
	return s.arrived(service, nil)
}

// fetch takes in the slices of a service as the member has them. All who ask at
// once get one answer, and whoever ends before waits no longer.
func (s *SliceStore) fetch(ctx context.Context, list lister, service types.NamespacedName, version string) error {
	answer := s.asking.DoChan(service.String(), func() (any, error) {
		listed, err := list(ctx, service, version)
		s.arrived(service, listed)
		return nil, err
	})
	select {
	case result := <-answer:
		return result.Err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// arrived takes in slices of a service that were read. It says whether those who
// wait for them need wait no more.
func (s *SliceStore) arrived(service types.NamespacedName, listed []discoveryv1.EndpointSlice) (done bool) {
	s.mu.Lock()
	filled := s.fill(listed)
	r := s.readings[service]
	_, lacking := s.ofMember(service)
	done = r == nil || !s.keeps(service) || lacking == ""
	if r != nil && done {
		close(r.done)
		delete(s.readings, service)
	}
	tell := r != nil && r.late
	s.mu.Unlock()

	if tell {
		for _, c := range filled {
			s.changed(c.old, c.current)
		}
	}
	return done
}
