package discovery_test

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	discoveryclient "k8s.io/client-go/kubernetes/typed/discovery/v1"
	"k8s.io/client-go/rest"
	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/namesake-io/namesake/internal/discovery"
)

const (
	// manySnapshots is how many plans a real API server judges.
	manySnapshots = 6000
	// assets names the folder of the API server and its etcd.
	assets = "KUBEBUILDER_ASSETS"
)

// startServer starts a real API server with the namespace of the services here.
func startServer(t *testing.T) discoveryclient.EndpointSliceInterface {
	t.Helper()
	if os.Getenv(assets) == "" {
		t.Fatalf("this test needs a real API server (%s): run make test", assets)
	}
	env := &envtest.Environment{}
	config, err := env.Start()
	t.Cleanup(func() {
		if err := env.Stop(); err != nil {
			t.Error(err)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	config.QPS = -1
	config.WarningHandler = rest.NoWarnings{} // FQDNs are deprecated, and go out as they came
	set, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: snapshot(nil).Service.Namespace}}
	if _, err := set.CoreV1().Namespaces().Create(t.Context(), ns, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	return set.DiscoveryV1().EndpointSlices(ns.Name)
}

// A real API server accepts every slice of any plan, and stores it as it was
// asked to: what then stands equals what is wanted, so nothing is written again.
// It is asked by dry runs: nothing has to be cleaned up, and names may meet.
func TestPlanProperties_on_a_server(t *testing.T) {
	server := startServer(t)
	snapshots := make(chan int)
	var workers sync.WaitGroup
	var mu sync.Mutex
	judged := map[string]bool{}
	some := rapid.Custom(someSnapshot)
	for range 4 * runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for seed := range snapshots {
				for _, d := range discovery.NewPlan(some.Example(seed)).Slices {
					text, err := d.Slice.Marshal()
					mu.Lock()
					known := judged[string(text)]
					judged[string(text)] = true
					mu.Unlock()
					if known {
						continue
					}
					if err == nil {
						err = tryCreate(t.Context(), server, d.Slice)
					}
					if err != nil {
						t.Errorf("seed %d: %v", seed, err)
					}
				}
			}
		})
	}
	for seed := range manySnapshots {
		snapshots <- seed
	}
	close(snapshots)
	workers.Wait()
	t.Logf("%d slices of %d plans", len(judged), manySnapshots)
	if len(judged) < manySnapshots/3 {
		t.Errorf("only %d different slices were tried", len(judged))
	}
}

// tryCreate has a slice created, but not stored.
func tryCreate(ctx context.Context, server discoveryclient.EndpointSliceInterface, slice *discoveryv1.EndpointSlice) error {
	stands, err := server.Create(ctx, slice, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	if err != nil {
		return fmt.Errorf("creating %v: %w", slice, err)
	}
	if !discovery.Equal(slice, stands) {
		return fmt.Errorf("what stands would be changed again and again (- wanted, + stands):\n%s", cmp.Diff(slice, stands))
	}
	return nil
}
