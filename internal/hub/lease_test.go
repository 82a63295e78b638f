package hub

import (
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/namesake-io/namesake/internal/apply"
)

// The lease is renewed in time or not at all. Nobody else's requests have that
// limit: it would end their watches, and the first list of a large hub would never
// come to its end.
func TestNewLock_limits_nobody_else(t *testing.T) {
	opts, err := NewOptions()
	if err != nil {
		t.Fatal(err)
	}
	config := &rest.Config{Host: "http://127.0.0.1:1", UserAgent: "namesake-controller-manager", Timeout: time.Hour}
	if _, err := newLock(config, opts, apply.NewFence()); err != nil {
		t.Fatal(err)
	}
	if config.Timeout != time.Hour || config.UserAgent != "namesake-controller-manager" {
		t.Errorf("requests of others end after %s and come from %q, want what they had", config.Timeout, config.UserAgent)
	}
}
