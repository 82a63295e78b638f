package apply

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func TestFence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := NewFence()
		passes := func(want bool, when string) {
			t.Helper()
			if f.Passes() != want {
				t.Errorf("%s: passes is %t", when, !want)
			}
		}
		passes(false, "new")
		f.OpenUntil(time.Now().Add(7 * time.Second))
		passes(true, "lease held")
		time.Sleep(7 * time.Second)
		passes(false, "lease not renewed")
		f.OpenUntil(time.Now().Add(7 * time.Second))
		passes(true, "renewed")
		f.Close()
		passes(false, "given back")
		f.Open()
		time.Sleep(time.Hour)
		passes(true, "without leader election")
	})
}

// A machine that slept has a monotonic clock that slept too.
func TestFence_after_sleep(t *testing.T) {
	f := NewFence()
	start := time.Now()
	f.OpenUntil(start.Add(7 * time.Second))
	f.now = func() time.Time { return start.Round(0).Add(time.Minute) }
	if f.Passes() {
		t.Error("passes a minute later by the wall clock")
	}
}

func TestFence_Guard(t *testing.T) {
	var arrived []string
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { arrived = append(arrived, r.Method) }))
	defer server.Close()
	f := NewFence()
	client := &http.Client{Transport: f.Guard(http.DefaultTransport)}
	send := func(method string) error {
		req, err := http.NewRequestWithContext(t.Context(), method, server.URL, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := client.Do(req)
		if err == nil {
			_ = resp.Body.Close()
		}
		return err
	}
	for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete} {
		if err := send(method); !errors.Is(err, ErrFenced) {
			t.Errorf("%s behind the fence: %v", method, err)
		}
	}
	if err := send(http.MethodGet); err != nil {
		t.Errorf("reading behind the fence: %v", err)
	}
	f.Open()
	if err := send(http.MethodPut); err != nil {
		t.Errorf("writing with the fence open: %v", err)
	}
	if len(arrived) != 2 || arrived[0] != http.MethodGet || arrived[1] != http.MethodPut {
		t.Errorf("arrived: %v", arrived)
	}
}

// No more writes than allowed are under way; reads are not held up, and who waits
// for too long is told so.
func TestInTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var underWay, most, passed atomic.Int32
		transport := InTurn(2, roundTripper(func(*http.Request) (*http.Response, error) {
			if n := underWay.Add(1); n > most.Load() {
				most.Store(n)
			}
			time.Sleep(time.Second)
			underWay.Add(-1)
			passed.Add(1)
			return &http.Response{Body: http.NoBody}, nil
		}))
		send := func(ctx context.Context, method string) error {
			req, err := http.NewRequestWithContext(ctx, method, "http://hub.example", strings.NewReader("{}"))
			if err != nil {
				return err
			}
			resp, err := transport.RoundTrip(req)
			if err != nil {
				return err
			}
			return resp.Body.Close()
		}
		for range 6 {
			go func() {
				if err := send(t.Context(), http.MethodPost); err != nil {
					t.Error(err)
				}
			}()
		}
		synctest.Wait()
		impatient, cancel := context.WithTimeout(t.Context(), time.Second/2)
		defer cancel()
		if err := send(impatient, http.MethodPut); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("who waits for too long gets %v, want that the time is up", err)
		}
		time.Sleep(3 * time.Second)
		synctest.Wait()
		if passed.Load() != 6 || most.Load() != 2 {
			t.Errorf("%d of 6 writes passed, %d at once, want 2", passed.Load(), most.Load())
		}
		most.Store(0)
		for range 3 {
			go func() { _ = send(t.Context(), http.MethodGet) }()
		}
		synctest.Wait()
		if most.Load() != 3 {
			t.Errorf("%d of 3 reads at once", most.Load())
		}
		time.Sleep(time.Second)
	})
}
