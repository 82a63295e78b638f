package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	clusterv1alpha1 "github.com/namesake-io/namesake/api/cluster/v1alpha1"
	networkingv1alpha1 "github.com/namesake-io/namesake/api/networking/v1alpha1"
	"github.com/namesake-io/namesake/internal/agent"
	"github.com/namesake-io/namesake/internal/cli"
	"github.com/namesake-io/namesake/internal/hub"
)

// waitAtMost bounds how long a test waits for anything.
const waitAtMost = time.Minute

// site is a real API server, without the controllers that usually stand beside it.
type site struct {
	name       string
	env        *envtest.Environment
	config     *rest.Config
	kubeconfig string
	client.Client
}

// startSites starts a hub and members side by side, which live as long as the test.
func startSites(t *testing.T, members ...string) (_ *site, all []*site) {
	t.Helper()
	const assets = "KUBEBUILDER_ASSETS"
	if os.Getenv(assets) == "" {
		t.Fatalf("this test needs real API servers (%s): run make test", assets)
	}
	ctrl.SetLogger(logr.Discard())
	scheme, err := hub.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	sites := []*site{{name: "hub", env: &envtest.Environment{CRDDirectoryPaths: []string{"../../charts/namesake/crds"}, ErrorIfCRDPathMissing: true}}}
	for _, name := range members {
		sites = append(sites, &site{name: name, env: &envtest.Environment{}})
	}
	var starting sync.WaitGroup
	errs := make([]error, len(sites))
	for i, s := range sites {
		t.Cleanup(func() {
			if err := s.env.Stop(); err != nil {
				t.Error(err)
			}
		})
		starting.Go(func() {
			if s.config, errs[i] = s.env.Start(); errs[i] == nil {
				s.config.QPS = -1
				s.Client, errs[i] = client.New(s.config, client.Options{Scheme: scheme})
			}
		})
	}
	starting.Wait()
	for i, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
		sites[i].kubeconfig = filepath.Join(t.TempDir(), sites[i].name+".kubeconfig")
		writeKubeconfig(t, sites[i].config, sites[i].kubeconfig)
	}
	return sites[0], sites[1:]
}

// writeKubeconfig writes a client's configuration as a person has it.
func writeKubeconfig(t *testing.T, from *rest.Config, file string) {
	t.Helper()
	config := clientcmdapi.NewConfig()
	config.Clusters["c"] = &clientcmdapi.Cluster{Server: strings.TrimSuffix(from.Host, "/"), CertificateAuthorityData: from.CAData}
	config.AuthInfos["c"] = &clientcmdapi.AuthInfo{ClientCertificateData: from.CertData, ClientKeyData: from.KeyData}
	config.Contexts["c"] = &clientcmdapi.Context{Cluster: "c", AuthInfo: "c"}
	config.CurrentContext = "c"
	if err := clientcmd.WriteToFile(*config, file); err != nil {
		t.Fatal(err)
	}
}

// ctl runs namesakectl against the hub, and returns what it says.
func (s *site) ctl(t *testing.T, args ...string) string {
	t.Helper()
	code, said := s.try(t, args...)
	if code != 0 {
		t.Fatalf("%s: exit code %d\n%s", strings.Join(args, " "), code, said)
	}
	return said
}

// try runs namesakectl against the hub.
func (s *site) try(t *testing.T, args ...string) (code int, said string) {
	t.Helper()
	var out bytes.Buffer
	args = append([]string{"namesakectl", "--kubeconfig", s.kubeconfig}, args...)
	code = cli.Run(t.Context(), args, genericiooptions.IOStreams{In: strings.NewReader(""), Out: &out, ErrOut: &out})
	return code, out.String()
}

// create makes objects.
func (s *site) create(t *testing.T, objects ...client.Object) {
	t.Helper()
	for _, obj := range objects {
		if err := s.Create(t.Context(), obj); err != nil {
			t.Fatalf("%s: %v", s.name, err)
		}
	}
}

// eventually waits until check says nothing any more.
func eventually(t *testing.T, what string, check func(context.Context) string) {
	t.Helper()
	var missing string
	err := wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, waitAtMost, true, func(ctx context.Context) (bool, error) {
		now := check(ctx)
		if now == "" || ctx.Err() == nil {
			missing = now
		}
		return now == "", nil
	})
	if err != nil {
		t.Fatalf("%s: after %s: %s", what, waitAtMost, missing)
	}
}

// holds waits until a member has just these slices in namespace shop.
func (s *site) holds(t *testing.T, names ...string) {
	t.Helper()
	slices.Sort(names)
	eventually(t, "slices in "+s.name, func(ctx context.Context) string {
		if got := s.slices(ctx); !slices.Equal(got, names) {
			return fmt.Sprintf("has %v, want %v", got, names)
		}
		return ""
	})
}

// slices are the names of a member's slices in namespace shop.
func (s *site) slices(ctx context.Context) []string {
	list := &discoveryv1.EndpointSliceList{}
	if err := s.List(ctx, list, client.InNamespace("shop")); err != nil {
		return []string{err.Error()}
	}
	var out []string
	for i := range list.Items {
		out = append(out, list.Items[i].Name)
	}
	slices.Sort(out)
	return out
}

// clusterReason waits until a Cluster's condition Ready has this reason.
func (s *site) clusterReason(t *testing.T, name, reason string) {
	t.Helper()
	eventually(t, "Cluster "+name, func(ctx context.Context) string {
		cluster := &clusterv1alpha1.Cluster{}
		if err := s.Get(ctx, client.ObjectKey{Name: name}, cluster); err != nil {
			return err.Error()
		}
		ready := meta.FindStatusCondition(cluster.Status.Conditions, clusterv1alpha1.ConditionReady)
		if ready == nil || ready.Reason != reason {
			return fmt.Sprintf("Ready is %+v, want reason %s", ready, reason)
		}
		return ""
	})
}

// serviceReason waits until a wish's condition Ready has this reason.
func (s *site) serviceReason(t *testing.T, name, reason string) {
	t.Helper()
	eventually(t, "MultiClusterService "+name, func(ctx context.Context) string {
		mcs := &networkingv1alpha1.MultiClusterService{}
		if err := s.Get(ctx, client.ObjectKey{Namespace: "shop", Name: name}, mcs); err != nil {
			return err.Error()
		}
		ready := meta.FindStatusCondition(mcs.Status.Conditions, networkingv1alpha1.ConditionReady)
		if ready == nil || ready.Reason != reason || ready.ObservedGeneration != mcs.Generation {
			return fmt.Sprintf("conditions %+v, want Ready with reason %s; clusters %+v", mcs.Status.Conditions, reason, mcs.Status.Clusters)
		}
		return ""
	})
}

// runHub runs the controllers until the test ends.
func runHub(t *testing.T, s *site) {
	t.Helper()
	opts, err := hub.NewOptions()
	if err != nil {
		t.Fatal(err)
	}
	opts.LeaderElect, opts.MetricsBindAddress, opts.ProbeBindAddress, opts.Webhook.BindAddress = false, "0", "0", "0"
	opts.ClusterStatusUpdateFrequency, opts.ClusterMonitorGracePeriod = time.Second, 4*time.Second
	run(t, "hub", func(ctx context.Context) error { return hub.RunWith(ctx, s.config, opts) })
}

// runAgent runs an agent until the test ends, or stop is called.
func runAgent(t *testing.T, kubeconfig string) (stop func()) {
	t.Helper()
	own, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	opts := agent.NewOptions()
	opts.MetricsBindAddress, opts.ProbeBindAddress = "0", "0"
	opts.ClusterStatusUpdateFrequency, opts.ClusterLeaseRenewInterval = time.Second, time.Second
	return run(t, "agent", func(ctx context.Context) error { return agent.RunWith(ctx, own, opts) })
}

// run runs something in the background.
func run(t *testing.T, what string, f func(context.Context) error) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- f(ctx) }()
	var once sync.Once
	stop = func() {
		once.Do(func() {
			cancel()
			if err := <-ended; err != nil {
				t.Errorf("the %s ended with: %v", what, err)
			}
		})
	}
	t.Cleanup(stop)
	return stop
}

var (
	requestTotal = regexp.MustCompile(`(?m)^apiserver_request_total\{(.*)\} (\S+)$`)
	metricLabel  = regexp.MustCompile(`(\w+)="([^"]*)"`)
	writeVerbs   = []string{"POST", "PUT", "PATCH", "APPLY", "DELETE", "DELETECOLLECTION"}
	// notCounted are what an API server writes by itself, and the leases of agents.
	notCounted = []string{"leases", "flowschemas", "prioritylevelconfigurations"}
)

// writes are what the API server itself has counted.
func (s *site) writes(t *testing.T) map[string]float64 {
	t.Helper()
	c, err := rest.HTTPClientFor(s.config)
	if err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, strings.TrimSuffix(s.config.Host, "/")+"/metrics", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := c.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]float64{}
	for _, line := range requestTotal.FindAllStringSubmatch(string(text), -1) {
		labels := map[string]string{}
		for _, l := range metricLabel.FindAllStringSubmatch(line[1], -1) {
			labels[l[1]] = l[2]
		}
		if !slices.Contains(writeVerbs, labels["verb"]) || slices.Contains(notCounted, labels["resource"]) {
			continue
		}
		count, err := strconv.ParseFloat(line[2], 64)
		if err != nil {
			t.Fatal(err)
		}
		out[labels["verb"]+" "+labels["resource"]+" "+labels["subresource"]] += count
	}
	if len(out) == 0 {
		t.Fatalf("%s counts no writes", s.name)
	}
	return out
}

// tick passes a while, unless the test ends before.
func tick(t *testing.T, d time.Duration) {
	t.Helper()
	select {
	case <-time.After(d):
	case <-t.Context().Done():
	}
}

// providerSlice is a slice of Service foo as a cluster's own controller makes it.
func providerSlice(name string, addresses ...string) *discoveryv1.EndpointSlice {
	port, portName, ready := int32(8080), "http", true
	out := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, Labels: map[string]string{
			discoveryv1.LabelServiceName: "foo", discoveryv1.LabelManagedBy: "endpointslice-controller.k8s.io",
		}},
		AddressType: discoveryv1.AddressTypeIPv4,
		Ports:       []discoveryv1.EndpointPort{{Name: &portName, Port: &port}},
	}
	for _, address := range addresses {
		out.Endpoints = append(out.Endpoints, discoveryv1.Endpoint{
			Addresses: []string{address}, Conditions: discoveryv1.EndpointConditions{Ready: &ready},
		})
	}
	return out
}

// shop makes the namespace and a Service on the hub.
func shop(t *testing.T, s *site, services ...string) {
	t.Helper()
	s.create(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}})
	for _, name := range services {
		s.create(t, &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name},
			Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Name: "http", Port: 80}}},
		})
	}
}

// wish is a MultiClusterService.
func wish(name string, edits ...func(*networkingv1alpha1.MultiClusterServiceSpec)) *networkingv1alpha1.MultiClusterService {
	out := &networkingv1alpha1.MultiClusterService{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name},
		Spec:       networkingv1alpha1.MultiClusterServiceSpec{Types: []networkingv1alpha1.ExposureType{networkingv1alpha1.ExposureTypeCrossCluster}},
	}
	for _, edit := range edits {
		edit(&out.Spec)
	}
	return out
}
