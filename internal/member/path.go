package member

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"
)

// Path is a watched way to an API server, without a view of what is there: what
// an agent goes to its hub by. While nobody answers requests wait, and all go on
// the moment that somebody does.
type Path struct {
	gate   *gate
	tokens *tokenSource
	trip   http.RoundTripper
	prober *prober
	dialer *connections

	mu     sync.Mutex
	health Health
}

// NewPath returns a path that goes where the configuration says. It is open until
// Run has found that nobody answers.
func NewPath(cfg Config, interval time.Duration) (*Path, error) {
	base, dialer, err := newTransport(&cfg)
	if err != nil {
		return nil, fmt.Errorf("making a path to %s: %w", cfg.Endpoint, err)
	}
	p := &Path{
		gate: newGate(), dialer: dialer,
		tokens: &tokenSource{token: cfg.Token, reload: cfg.Reload},
	}
	authenticated := authenticate(base, p.tokens)
	p.prober = &prober{
		endpoint: strings.TrimRight(cfg.Endpoint, "/"),
		client:   &http.Client{Transport: authenticated},
		interval: interval,
		failed:   make(chan struct{}, 1),
		report:   p.setHealth,
	}
	p.trip = waiting(reporting(authenticated, p.prober.hurry), p.gate)
	return p, nil
}

// Wrap returns the path as a transport, in place of another.
func (p *Path) Wrap(http.RoundTripper) http.RoundTripper { return p.trip }

// SetToken replaces the token.
func (p *Path) SetToken(token string) { p.tokens.set(token) }

// Health returns what the last probe found.
func (p *Path) Health() Health {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.health
}

// Release lets nobody wait any more for somebody who does not answer.
func (p *Path) Release() { p.gate.release() }

// Run asks whether somebody answers, until the context ends.
func (p *Path) Run(ctx context.Context) {
	p.prober.run(ctx)
	p.Release()
	p.dialer.end()
}

// setHealth takes in what a probe found.
func (p *Path) setHealth(h Health) {
	p.mu.Lock()
	p.health = h
	p.mu.Unlock()
	if p.gate.set(h.Reachable) && !h.Reachable {
		// Requests and watches on a dead path would hang until they time out.
		p.dialer.CloseAll()
	}
}
