package member

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/client-go/util/connrotation"
)

// ErrUnreachable is returned for a request to a member whose API server is
// known not to answer. The request was not sent.
var ErrUnreachable = errors.New("the member's API server cannot be reached")

const (
	dialTimeout = 5 * time.Second
	// A connection that carries nothing is pinged, so that a cut path is noticed
	// also where no probe uses the connection.
	pingInterval = 10 * time.Second
	pingTimeout  = 5 * time.Second
	// writeTimeout bounds a single read or write of a controller.
	writeTimeout = 20 * time.Second
)

// errLeft is what a request gets whose member has left, or whose process ends.
var errLeft = errors.New("the connection to the cluster is being ended")

// connections dials a member, and can close all that it has dialed.
type connections struct {
	*connrotation.Dialer
	ended atomic.Bool
}

// dial makes a connection. A transport goes on dialing for a request that has
// ended, and would keep what comes too late.
func (c *connections) dial(ctx context.Context, network, address string) (net.Conn, error) {
	if c.ended.Load() {
		return nil, errLeft
	}
	conn, err := c.DialContext(ctx, network, address)
	if err == nil && c.ended.Load() {
		return nil, errors.Join(errLeft, conn.Close())
	}
	return conn, err
}

// end closes all connections, and lets no other come.
func (c *connections) end() {
	c.ended.Store(true)
	c.CloseAll()
}

// newTransport returns a transport to the member, and its connections.
func newTransport(cfg *Config) (*http.Transport, *connections, error) {
	// Without verification only where the Cluster object asks for it, for tests.
	tlsConfig := &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: cfg.InsecureSkipTLSVerification}
	if len(cfg.CABundle) > 0 && !cfg.InsecureSkipTLSVerification {
		pool := x509.NewCertPool()
		if !pool.AppendCertsFromPEM(cfg.CABundle) {
			return nil, nil, errors.New("the CA bundle holds no PEM certificate")
		}
		tlsConfig.RootCAs = pool
	}
	dialer := &connections{Dialer: connrotation.NewDialer((&net.Dialer{Timeout: dialTimeout, KeepAlive: 15 * time.Second}).DialContext)}
	transport := &http.Transport{
		TLSClientConfig:     tlsConfig,
		TLSHandshakeTimeout: dialTimeout,
		DialContext:         dialer.dial,
		ForceAttemptHTTP2:   true,
		MaxIdleConnsPerHost: 8,
		IdleConnTimeout:     90 * time.Second,
		HTTP2:               &http.HTTP2Config{SendPingTimeout: pingInterval, PingTimeout: pingTimeout},
	}
	if cfg.ProxyURL != "" {
		proxy, err := url.Parse(cfg.ProxyURL)
		if err != nil {
			return nil, nil, fmt.Errorf("reading proxyURL: %w", err)
		}
		transport.Proxy = http.ProxyURL(proxy)
		transport.ProxyConnectHeader = http.Header{}
		for key, value := range cfg.ProxyHeader {
			transport.ProxyConnectHeader.Set(key, value)
		}
	}
	return transport, dialer, nil
}

// roundTripper is a function as an http.RoundTripper.
type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// tokenSource gives the bearer token of a member, and reads it anew when the
// member refuses it.
type tokenSource struct {
	reload func(context.Context) (string, error)

	mu       sync.Mutex
	token    string
	reloaded time.Time
}

// reloadInterval bounds how often refused requests read the Secret.
const reloadInterval = time.Second

// current returns the token to use now.
func (s *tokenSource) current() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.token
}

// set replaces the token.
func (s *tokenSource) set(token string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.token = token
}

// refused is called with a token that the member did not take. It returns
// another one to try, or false.
func (s *tokenSource) refused(ctx context.Context, token string) (string, bool) {
	s.mu.Lock()
	if s.token != token {
		defer s.mu.Unlock()
		return s.token, true
	}
	if s.reload == nil || time.Since(s.reloaded) < reloadInterval {
		s.mu.Unlock()
		return "", false
	}
	s.reloaded = time.Now()
	s.mu.Unlock()

	fresh, err := s.reload(ctx)
	if err != nil || fresh == "" || fresh == token {
		return "", false
	}
	s.set(fresh)
	return fresh, true
}

// authenticate adds the token to each request, and tries a refused one once more
// with a token that has changed since.
func authenticate(next http.RoundTripper, tokens *tokenSource) http.RoundTripper {
	return roundTripper(func(req *http.Request) (*http.Response, error) {
		token := tokens.current()
		resp, err := next.RoundTrip(withToken(req, token))
		if err != nil || resp.StatusCode != http.StatusUnauthorized {
			return resp, err
		}
		fresh, ok := tokens.refused(req.Context(), token)
		if !ok || req.Body != nil && req.GetBody == nil {
			return resp, nil
		}
		again := withToken(req, fresh)
		if req.GetBody != nil {
			body, err := req.GetBody()
			if err != nil {
				return resp, nil // the refusal is the answer that there is
			}
			again.Body = body
		}
		_ = resp.Body.Close()
		return next.RoundTrip(again)
	})
}

// withToken returns a copy of the request that carries the token.
func withToken(req *http.Request, token string) *http.Request {
	out := req.Clone(req.Context())
	if token != "" {
		out.Header.Set("Authorization", "Bearer "+token)
	}
	return out
}

// reporting calls failed whenever a request got no answer, or was refused with
// every token that there is, so that the probe looks at once, and not when its
// turn comes.
func reporting(next http.RoundTripper, failed func()) http.RoundTripper {
	return roundTripper(func(req *http.Request) (*http.Response, error) {
		resp, err := next.RoundTrip(req)
		refused := err == nil && resp.StatusCode == http.StatusUnauthorized
		if refused || err != nil && req.Context().Err() == nil {
			failed()
		}
		return resp, err
	})
}

// gate is open while the member can be reached.
type gate struct {
	mu     sync.Mutex
	opened chan struct{} // closed while the gate is open
	open   bool
	// released is closed once nobody waits any more.
	released chan struct{}
	release  func()
}

// newGate returns an open gate: until a probe has failed there is no reason to
// hold anything back.
func newGate() *gate {
	g := &gate{opened: make(chan struct{}), open: true, released: make(chan struct{})}
	g.release = sync.OnceFunc(func() { close(g.released) })
	close(g.opened)
	return g
}

// set opens or closes the gate and says whether that changed it.
func (g *gate) set(open bool) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.open == open {
		return false
	}
	g.open = open
	if open {
		close(g.opened)
	} else {
		g.opened = make(chan struct{})
	}
	return true
}

// isOpen says whether requests may pass.
func (g *gate) isOpen() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.open
}

// wait returns when the gate is open. Not everybody who waits can say for how long:
// a REST mapper asks without a context. When the gate is released they all go.
func (g *gate) wait(ctx context.Context) error {
	g.mu.Lock()
	opened := g.opened
	g.mu.Unlock()
	select {
	case <-opened:
		return nil
	case <-g.released:
		return errLeft
	case <-ctx.Done():
		return ctx.Err()
	}
}

// waiting holds requests back while the gate is closed. For caches.
func waiting(next http.RoundTripper, g *gate) http.RoundTripper {
	return roundTripper(func(req *http.Request) (*http.Response, error) {
		if err := g.wait(req.Context()); err != nil {
			return nil, err
		}
		return next.RoundTrip(req)
	})
}

// failingFast refuses requests while the gate is closed. For controllers.
func failingFast(next http.RoundTripper, g *gate) http.RoundTripper {
	return roundTripper(func(req *http.Request) (*http.Response, error) {
		if !g.isOpen() {
			return nil, ErrUnreachable
		}
		return next.RoundTrip(req)
	})
}
