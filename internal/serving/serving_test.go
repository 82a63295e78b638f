package serving_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

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

// A manager that still waits for its first list, for a minute or for ever, keeps no
// process from ending.
func TestStart_ends_before_the_first_list(t *testing.T) {
	asked, answer := make(chan struct{}), make(chan struct{})
	var once sync.Once
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		once.Do(func() { close(asked) })
		<-answer
	}))
	defer server.Close()
	defer close(answer)

	mgr, err := ctrl.NewManager(&rest.Config{Host: server.URL}, ctrl.Options{
		Scheme:  clientgoscheme.Scheme,
		Metrics: metricsserver.Options{BindAddress: "0"},
		MapperProvider: func(*rest.Config, *http.Client) (meta.RESTMapper, error) {
			mapper := meta.NewDefaultRESTMapper(nil)
			mapper.Add(corev1.SchemeGroupVersion.WithKind("Secret"), meta.RESTScopeNamespace)
			return mapper, nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := mgr.GetCache().GetInformer(t.Context(), &corev1.Secret{}, cache.BlockUntilSynced(false)); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- serving.Start(ctx, mgr) }()
	<-asked
	stop()
	select {
	case err := <-ended:
		if err != nil {
			t.Errorf("error %v, want none: somebody asked for the end", err)
		}
	case <-time.After(time.Minute):
		t.Fatal("it has not ended after a minute")
	}
}
