// Package servingtest asks processes under test for what they serve.
package servingtest

import (
	"context"
	"net"
	"net/http"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// patience bounds how long Eventually waits.
const patience = time.Minute

// FreeAddress is one of loopback that nobody listens at.
func FreeAddress(t *testing.T) string {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}

// Get asks for a page over a connection of its own, and returns the status that it
// gets, or the error.
func Get(ctx context.Context, address, path string) string {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+path, http.NoBody)
	if err != nil {
		return err.Error()
	}
	resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(req)
	if err != nil {
		return err.Error()
	}
	defer resp.Body.Close()
	return resp.Status
}

// OK is the status of a page that is there.
const OK = "200 OK"

// Failing is the status of a check that fails.
const Failing = "500 Internal Server Error"

// Eventually waits until a page has a status.
func Eventually(t *testing.T, address, path, want string) {
	t.Helper()
	var got string
	err := wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		got = Get(ctx, address, path)
		return got == want, nil
	})
	if err != nil {
		t.Fatalf("%s: %s, want %s", path, got, want)
	}
}

// Start runs a process until the test ends, and sees that it ends well.
func Start(t *testing.T, run func(context.Context) error) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Errorf("it ended with: %v", err)
		}
	})
}
