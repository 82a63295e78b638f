package apply

import (
	"errors"
	"net/http"
	"net/http/httptest"
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
