package apply

import (
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"
)

// ErrFenced is returned for a write of a replica that may not work. It was not
// sent.
var ErrFenced = errors.New("this replica does not hold the lease, or not for sure any more: nothing is written")

// Fence lets the writes of a replica pass while it may work. What it has let pass
// last may still be under way when it closes: that is what resourceVersions and
// the time between a leader's end and the next one's start are for.
type Fence struct {
	now func() time.Time

	mu    sync.Mutex
	until time.Time
	open  bool
}

// NewFence returns a closed fence.
func NewFence() *Fence { return &Fence{now: time.Now} }

// Open lets writes pass until it is closed.
func (f *Fence) Open() { f.set(true, time.Time{}) }

// OpenUntil lets writes pass until then, and not a moment longer: also if the
// process, or its machine, has slept over it.
func (f *Fence) OpenUntil(then time.Time) { f.set(true, then) }

// Close lets no write pass.
func (f *Fence) Close() { f.set(false, time.Time{}) }

// set takes a new state over.
func (f *Fence) set(open bool, until time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.open, f.until = open, until
}

// Passes says whether writes pass now.
func (f *Fence) Passes() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.open || f.until.IsZero() {
		return f.open
	}
	// The monotonic clock stands still while a machine sleeps, the wall clock may
	// be set back: the later of them counts.
	now := f.now()
	return now.Before(f.until) && now.Round(0).Before(f.until.Round(0))
}

// Guard returns a transport that refuses writes while the fence is closed.
func (f *Fence) Guard(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(req *http.Request) (*http.Response, error) {
		if mutates(req.Method) && !f.Passes() {
			return nil, ErrFenced
		}
		return next.RoundTrip(req)
	})
}

// InTurn returns a transport that has no more than so many writes under way at once.
// Others wait here, where waiting costs nothing: an API server that is sent all at
// once is late with all of them, and what is given up on and sent again is what
// keeps it late.
func InTurn(most int, next http.RoundTripper) http.RoundTripper {
	turns := make(chan struct{}, most)
	return roundTripper(func(req *http.Request) (*http.Response, error) {
		if !mutates(req.Method) {
			return next.RoundTrip(req)
		}
		select {
		case turns <- struct{}{}:
			defer func() { <-turns }()
			return next.RoundTrip(req)
		case <-req.Context().Done():
			if req.Body != nil {
				_ = req.Body.Close()
			}
			return nil, fmt.Errorf("waiting for %d writes to end: %w", most, req.Context().Err())
		}
	})
}

// mutates says whether a request of a method changes anything.
func mutates(method string) bool {
	return method != http.MethodGet && method != http.MethodHead && method != http.MethodOptions
}

// roundTripper is a function as an http.RoundTripper.
type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }
