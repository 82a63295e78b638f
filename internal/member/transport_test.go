package member

import (
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/util/connrotation"
)

// send makes a request of which only the error matters.
func send(transport http.RoundTripper, req *http.Request) error {
	resp, err := transport.RoundTrip(req)
	if resp != nil {
		resp.Body.Close()
	}
	return err
}

// The gate lets caches wait and controllers fail at once.
func TestGate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate()
		var sent atomic.Int32
		next := roundTripper(func(*http.Request) (*http.Response, error) {
			sent.Add(1)
			return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}, nil
		})
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://member", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		if err := send(failingFast(next, g), req); err != nil || !g.isOpen() {
			t.Errorf("open at first: error %v", err)
		}
		if !g.set(false) || g.set(false) {
			t.Error("closing it twice changed it other than once")
		}
		if err := send(failingFast(next, g), req); !errors.Is(err, ErrUnreachable) {
			t.Errorf("closed, for a controller: %v, want ErrUnreachable", err)
		}
		if n := sent.Load(); n != 1 {
			t.Errorf("%d requests were sent, want 1", n)
		}

		done := make(chan error, 1)
		go func() { done <- send(waiting(next, g), req) }()
		synctest.Wait()
		select {
		case err := <-done:
			t.Errorf("closed, for a cache: came back with %v", err)
		default:
		}
		g.set(true)
		if err := <-done; err != nil {
			t.Errorf("opened: %v", err)
		}

		g.set(false)
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		if err := send(waiting(next, g), req.WithContext(ctx)); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("closed until the caller gives up: %v", err)
		}

		// A caller who cannot give up.
		go func() { done <- send(waiting(next, g), req.WithContext(context.WithoutCancel(ctx))) }()
		synctest.Wait()
		g.release()
		if err := <-done; !errors.Is(err, errLeft) {
			t.Errorf("closed until it is released: %v, want %v", err, errLeft)
		}
	})
}

// A refused token is read anew, once for many, and at most once a second.
func TestTokenSource(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reads := 0
		secret, secretErr := "old", error(nil)
		s := &tokenSource{token: "old", reload: func(context.Context) (string, error) { reads++; return secret, secretErr }}
		refused := func(token, want string, wantReads int) {
			t.Helper()
			got, ok := s.refused(t.Context(), token)
			if got != want || ok != (want != "") || reads != wantReads {
				t.Errorf("refused(%s): %q, %v after %d reads, want %q after %d", token, got, ok, reads, want, wantReads)
			}
		}
		refused("old", "", 1) // the Secret holds the same
		secret = "new"
		refused("old", "", 1) // too soon
		time.Sleep(time.Second)
		refused("old", "new", 2)
		refused("old", "new", 2) // another request of before
		time.Sleep(time.Second)
		secretErr = errors.New("the hub is down")
		refused("new", "", 3)
		s.set("given")
		refused("new", "given", 3)
		s.reload = nil
		refused("given", "", 3)
	})
}

// refusing is a member that takes one token only, which may change.
type refusing struct {
	*httptest.Server
	mu       sync.Mutex
	good     string
	requests []string
}

func newRefusing(t *testing.T, good string) *refusing {
	t.Helper()
	r := &refusing{good: good}
	r.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, _ := io.ReadAll(req.Body)
		token := strings.TrimPrefix(req.Header.Get("Authorization"), "Bearer ")
		r.mu.Lock()
		defer r.mu.Unlock()
		r.requests = append(r.requests, fmt.Sprintf("%s %s %s", req.Method, token, body))
		if token != r.good {
			w.WriteHeader(http.StatusUnauthorized)
		}
	}))
	t.Cleanup(r.Close)
	return r
}

func (r *refusing) caBundle() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: r.Certificate().Raw})
}

// A connection that is made for a request of a member which leaves meanwhile is
// closed: nobody would use it, and nobody could close it any more.
func TestConnections_end(t *testing.T) {
	dialing, goOn := make(chan struct{}), make(chan struct{})
	ours, theirs := net.Pipe()
	c := &connections{Dialer: connrotation.NewDialer(func(context.Context, string, string) (net.Conn, error) {
		close(dialing)
		<-goOn
		return ours, nil
	})}
	dialed := make(chan error)
	go func() {
		_, err := c.dial(t.Context(), "tcp", "member")
		dialed <- err
	}()
	<-dialing
	c.end()
	close(goOn)
	if err := <-dialed; !errors.Is(err, errLeft) {
		t.Errorf("error %v, want %v", err, errLeft)
	}
	if _, err := theirs.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("at the other end: %v, want that the connection was closed", err)
	}
	if _, err := c.dial(t.Context(), "tcp", "member"); !errors.Is(err, errLeft) {
		t.Errorf("error of a later dial %v, want %v", err, errLeft)
	}
}

// C30: the token in the Secret was rotated. The request that finds out succeeds
// at its second try, body and all, and later ones at their first.
func TestRotatedToken_C30(t *testing.T) {
	server := newRefusing(t, "new")
	cfg := Config{Endpoint: server.URL, CABundle: server.caBundle()}
	base, dialer, err := newTransport(&cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer dialer.CloseAll()
	defer base.CloseIdleConnections()
	tokens := &tokenSource{token: "old", reload: func(context.Context) (string, error) { return "new", nil }}
	client := &http.Client{Transport: authenticate(base, tokens)}
	post := func(body io.Reader) int {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL, body)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		return resp.StatusCode
	}
	if got := post(strings.NewReader("hello")); got != http.StatusOK {
		t.Errorf("status %d, want the second try to succeed", got)
	}
	if got := post(strings.NewReader("again")); got != http.StatusOK {
		t.Errorf("status %d", got)
	}
	server.mu.Lock()
	server.good = "newer"
	server.mu.Unlock()
	if got := post(strings.NewReader("refused")); got != http.StatusUnauthorized {
		t.Errorf("status %d, want the refusal: the Secret holds no other token", got)
	}
	want := []string{"POST old hello", "POST new hello", "POST new again", "POST new refused"}
	server.mu.Lock()
	defer server.mu.Unlock()
	if !slices.Equal(want, server.requests) {
		t.Errorf("requests %q, want %q", server.requests, want)
	}
}

func TestTransportSettings(t *testing.T) {
	for title, tc := range map[string]struct {
		cfg       Config
		wantErr   string
		wantProxy string
	}{
		"plain":                  {},
		"a bundle that is none":  {cfg: Config{CABundle: []byte("x")}, wantErr: "the CA bundle holds no PEM certificate"},
		"that does not matter":   {cfg: Config{CABundle: []byte("x"), InsecureSkipTLSVerification: true}},
		"a proxy":                {cfg: Config{ProxyURL: "http://proxy:3128", ProxyHeader: map[string]string{"X-Auth": "y"}}, wantProxy: "http://proxy:3128"},
		"a proxy URL of nothing": {cfg: Config{ProxyURL: "http://a b"}, wantErr: "reading proxyURL"},
	} {
		t.Run(title, func(t *testing.T) {
			transport, _, err := newTransport(&tc.cfg)
			if tc.wantErr != "" {
				if err == nil || !strings.Contains(err.Error(), tc.wantErr) {
					t.Errorf("error %v, want %q", err, tc.wantErr)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if tc.wantProxy != "" {
				req := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "https://member", http.NoBody)
				got, err := transport.Proxy(req)
				if err != nil || got.String() != tc.wantProxy || transport.ProxyConnectHeader.Get("X-Auth") != "y" {
					t.Errorf("proxy %s, headers %v, error %v", got, transport.ProxyConnectHeader, err)
				}
			}
			if transport.TLSClientConfig.InsecureSkipVerify != tc.cfg.InsecureSkipTLSVerification {
				t.Error("certificates are verified other than asked for")
			}
		})
	}
}

// A request without an answer has the probe look at once; one that its caller
// gave up, or that was answered, does not.
func TestReporting(t *testing.T) {
	var failed int
	var err error
	transport := reporting(roundTripper(func(*http.Request) (*http.Response, error) { return &http.Response{Body: http.NoBody}, err }), func() { failed++ })
	ask := func(ctx context.Context) {
		_ = send(transport, httptest.NewRequestWithContext(ctx, http.MethodGet, "https://member", http.NoBody))
	}
	ask(t.Context())
	err = errors.New("connection refused")
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	ask(gone)
	if failed != 0 {
		t.Errorf("told %d times, want never", failed)
	}
	ask(t.Context())
	if failed != 1 {
		t.Errorf("told %d times, want once", failed)
	}
}
