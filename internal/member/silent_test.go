package member

import (
	"net"
	"testing"
	"time"

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
