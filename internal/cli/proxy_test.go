package cli_test

import (
	"context"
	"crypto/tls"
	"encoding/pem"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/namesake-io/namesake/internal/cli/membership"
)

// faultMode is how a write fails.
type faultMode string

const (
	// refuse: the API server does not get the request.
	refuse faultMode = "refused"
	// loseAnswer: it does, and its answer is lost.
	loseAnswer faultMode = "unanswered"
)

// faults lets one write of a run fail, counted over all its proxies.
type faults struct {
	mode faultMode
	// at is the number of the write that fails; 0 lets none fail.
	at int
	// onRequest sees each request first.
	onRequest func(*http.Request)

	mu   sync.Mutex
	seen int
	what string
}

func (f *faults) happened() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.what != ""
}

// hits counts a request and says whether it is the one to fail.
func (f *faults) hits(r *http.Request) bool {
	if f.onRequest != nil {
		f.onRequest(r)
	}
	isWrite := r.Method == http.MethodPost || r.Method == http.MethodPatch || r.Method == http.MethodPut
	if !isWrite || strings.Contains(r.URL.Path, "selfsubjectaccessreviews") {
		return false
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.seen++
	if f.seen != f.at {
		return false
	}
	f.what = r.Method + " " + r.URL.Path
	return true
}

// proxy stands before an API server and returns a kubeconfig for it. Requests
// without a token of their own pass as the administrator's.
func proxy(t *testing.T, s *server, f *faults) string {
	t.Helper()
	upstream, err := url.Parse(s.config.Host)
	if err != nil {
		t.Fatal(err)
	}
	admin := transport(t, s.config)
	others := transport(t, rest.AnonymousClientConfig(s.config))
	reverse := &httputil.ReverseProxy{
		ErrorLog: log.New(io.Discard, "", 0), // clients that hang up are part of the tests
		Rewrite:  func(r *httputil.ProxyRequest) { r.SetURL(upstream) },
		Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
			if strings.HasPrefix(r.Header.Get("Authorization"), "Bearer ") {
				return others.RoundTrip(r)
			}
			return admin.RoundTrip(r)
		}),
	}
	front := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !f.hits(r) {
			reverse.ServeHTTP(w, r)
			return
		}
		if f.mode == loseAnswer {
			reverse.ServeHTTP(httptest.NewRecorder(), r)
		}
		http.Error(w, "the test lets this fail", http.StatusInternalServerError)
	}))
	front.EnableHTTP2 = false
	front.TLS = &tls.Config{MinVersion: tls.VersionTLS12}
	front.StartTLS()
	t.Cleanup(front.Close)

	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: front.Certificate().Raw})
	file := filepath.Join(t.TempDir(), "proxy.kubeconfig")
	err = clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{"proxy": {Server: front.URL, CertificateAuthorityData: ca}},
		Contexts:       map[string]*clientcmdapi.Context{"proxy": {Cluster: "proxy"}},
		CurrentContext: "proxy",
	}, file)
	if err != nil {
		t.Fatal(err)
	}
	return file
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func transport(t *testing.T, config *rest.Config) http.RoundTripper {
	t.Helper()
	transport, err := rest.TransportFor(config)
	if err != nil {
		t.Fatal(err)
	}
	return transport
}

// requestToken asks the member for a token of the hub's account.
func requestToken(ctx context.Context) (string, error) {
	request := &authenticationv1.TokenRequest{}
	err := member.client.SubResource("token").Create(ctx, membership.AccountObject(), request)
	return request.Status.Token, err
}
