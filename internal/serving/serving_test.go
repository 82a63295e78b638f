package serving_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"

	"github.com/namesake-io/namesake/internal/serving"
	"github.com/namesake-io/namesake/internal/serving/servingtest"
)

// nobody is an API server that does not answer.
func nobody(t *testing.T) *rest.Config {
	t.Helper()
	return &rest.Config{Host: "http://" + servingtest.FreeAddress(t)}
}

// Servers answer while work goes on, and end with it. What it ends with counts.
func TestBeside(t *testing.T) {
	at := serving.Addresses{Metrics: "0", Health: servingtest.FreeAddress(t)}
	servers, err := serving.New(nobody(t), runtime.NewScheme(), "default", at)
	if err != nil {
		t.Fatal(err)
	}
	failed := errors.New("work has failed")
	err = servers.Beside(t.Context(), func(context.Context) error {
		servingtest.Eventually(t, at.Health, "/healthz", servingtest.OK)
		return failed
	})
	if !errors.Is(err, failed) {
		t.Errorf("error %v, want %v", err, failed)
	}
	if got := servingtest.Get(t.Context(), at.Health, "/healthz"); !strings.Contains(got, "refused") {
		t.Errorf("after the end: %s, want nobody", got)
	}
}

// A port that is taken ends the work, too, and is told.
func TestBeside_port_taken(t *testing.T) {
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	taken := listener.Addr().String()
	if _, err := serving.New(nobody(t), runtime.NewScheme(), "default", serving.Addresses{Metrics: "0", Health: taken}); err == nil || !strings.Contains(err.Error(), taken) {
		t.Errorf("health: error %v, want that %s is taken", err, taken)
	}
	servers, err := serving.New(nobody(t), runtime.NewScheme(), "default", serving.Addresses{Metrics: taken, Health: "0"})
	if err != nil {
		t.Fatal(err)
	}
	err = servers.Beside(t.Context(), func(ctx context.Context) error {
		<-ctx.Done()
		return nil
	})
	if err == nil || !strings.Contains(err.Error(), taken) {
		t.Errorf("metrics: error %v, want that %s is taken", err, taken)
	}
}
