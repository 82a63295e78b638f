package member

import (
	"context"
	"errors"
	"net"
	"runtime"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
)

// A member that takes connections and never says a word is in the registry at
// once, is probed, and keeps nobody waiting.
func TestEnsure_silent_member(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	r := NewRegistry(Options{Scheme: clientgoscheme.Scheme, ProbeInterval: time.Second, QPS: -1})
	defer r.Close()

	start := time.Now()
	if err := r.Ensure(t.Context(), Config{
		ID: ID{Name: "silent", UID: "1"}, Endpoint: "https://" + silent.Addr().String(), InsecureSkipTLSVerification: true,
	}); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(start); took > time.Second {
		t.Errorf("Ensure took %s", took)
	}
	m, found := r.Get("silent")
	if !found {
		t.Fatal("the member is not in the registry")
	}
	if m.Slices().Synced() {
		t.Error("its slices are known, though it has not said any")
	}
}

// Who waits for a member that does not answer cannot always be told to stop. When
// the process ends, or begins anew, they wait no longer.
func TestStart_releases_who_waits(t *testing.T) {
	nobody, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nobody.Close()
	r := NewRegistry(Options{Scheme: clientgoscheme.Scheme, ProbeInterval: time.Second, QPS: -1})
	defer r.Close()
	if err := r.Ensure(t.Context(), Config{ID: ID{Name: "away", UID: "1"}, Endpoint: "https://" + nobody.Addr().String()}); err != nil {
		t.Fatal(err)
	}
	m, _ := r.Get("away")
	for m.Reachable() {
		runtime.Gosched()
	}
	ended := make(chan error)
	go func() {
		_, _, err := m.Object(context.Background(), corev1.SchemeGroupVersion.WithKind("ConfigMap"), foo) // a kind that only the member knows
		ended <- err
	}()
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if err := r.Start(ctx); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; !errors.Is(err, errLeft) {
		t.Errorf("error %v, want %v", err, errLeft)
	}
}
