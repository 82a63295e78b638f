package relay

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"
)

// Conditions are the state of a path.
type Conditions struct {
	// Cut makes the path a black hole.
	Cut bool
	// Delay is what the path adds to a round trip.
	Delay time.Duration
}

// link carries the connections of one path.
type link struct {
	dial func(context.Context) (net.Conn, error)

	mu      sync.Mutex
	now     Conditions
	changed chan struct{} // closed and replaced on each change
}

func newLink(c Conditions, dial func(context.Context) (net.Conn, error)) *link {
	return &link{dial: dial, now: c, changed: make(chan struct{})}
}

// set changes the conditions, for connections that exist as well.
func (l *link) set(c Conditions) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.now == c {
		return
	}
	l.now = c
	close(l.changed)
	l.changed = make(chan struct{})
}

func (l *link) conditions() (Conditions, <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.now, l.changed
}

// pass waits at the gate until the path is whole.
func (l *link) pass(ctx context.Context) error {
	for {
		c, changed := l.conditions()
		if !c.Cut {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// serve carries one connection until both directions have ended.
func (l *link) serve(ctx context.Context, client net.Conn) error {
	defer client.Close()
	if err := l.pass(ctx); err != nil {
		return err
	}
	// The kernel has already completed the handshake with the client; the round
	// trip that this would have taken is spent here.
	c, _ := l.conditions()
	if err := sleep(ctx, c.Delay); err != nil {
		return err
	}
	if err := l.pass(ctx); err != nil {
		return err
	}
	server, err := l.dial(ctx)
	if err != nil {
		return err // closing the client says the same as a refused connection
	}
	defer server.Close()

	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	// Blocked reads and writes end when the connections are closed.
	stop := context.AfterFunc(ctx, func() {
		client.Close()
		server.Close()
	})
	defer stop()

	errs := make(chan error, 2)
	go func() { errs <- l.pump(ctx, server, client) }()
	go func() { errs <- l.pump(ctx, client, server) }()
	err = <-errs
	if err != nil {
		cancel() // a broken direction breaks the other; a finished one does not
	}
	return errors.Join(err, <-errs)
}

func sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
