package hub

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	clusterv1alpha1 "github.com/namesake-io/namesake/api/cluster/v1alpha1"
	networkingv1alpha1 "github.com/namesake-io/namesake/api/networking/v1alpha1"
	workv1alpha1 "github.com/namesake-io/namesake/api/work/v1alpha1"
)

// waitAtMost bounds how long the test waits for anything.
const waitAtMost = time.Minute

// site is a real API server, without the controllers that usually stand beside it.
type site struct {
	name   string
	env    *envtest.Environment
	config *rest.Config
	client.Client
}

// startSites starts a hub and members side by side, which live as long as the test.
func startSites(t *testing.T, members ...string) (hub *site, all []*site) {
	t.Helper()
	const assets = "KUBEBUILDER_ASSETS"
	if os.Getenv(assets) == "" {
		t.Fatalf("this test needs real API servers (%s): run make test", assets)
	}
	ctrl.SetLogger(logr.Discard())
	scheme, err := NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	hub = &site{name: "hub", env: &envtest.Environment{CRDDirectoryPaths: []string{"../../charts/namesake/crds"}, ErrorIfCRDPathMissing: true}}
	sites := []*site{hub}
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
				s.Client, errs[i] = client.New(s.config, client.Options{Scheme: scheme})
			}
		})
	}
	starting.Wait()
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
	return hub, sites[1:]
}

func (s *site) create(t *testing.T, objects ...client.Object) {
	t.Helper()
	for _, obj := range objects {
		if err := s.Create(t.Context(), obj); err != nil {
			t.Fatalf("%s: %v", s.name, err)
		}
	}
}

// join makes a member one of the hub, with a token that may do everything.
func (s *site) join(t *testing.T, hub *site) {
	t.Helper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "namesake"}}
	s.create(t, account, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "namesake"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: account.Namespace, Name: account.Name}},
	})
	token := &authenticationv1.TokenRequest{}
	if err := s.SubResource("token").Create(t.Context(), account, token); err != nil {
		t.Fatal(err)
	}
	hub.create(t,
		&corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: clusterv1alpha1.SystemNamespace, Name: s.name},
			Data: map[string][]byte{
				clusterv1alpha1.SecretTokenKey: []byte(token.Status.Token), clusterv1alpha1.SecretCABundleKey: s.config.CAData,
			},
		},
		&clusterv1alpha1.Cluster{
			ObjectMeta: metav1.ObjectMeta{Name: s.name},
			Spec: clusterv1alpha1.ClusterSpec{
				SyncMode: clusterv1alpha1.Push, APIEndpoint: strings.TrimSuffix(s.config.Host, "/"),
				SecretRef: &clusterv1alpha1.LocalSecretReference{Namespace: clusterv1alpha1.SystemNamespace, Name: s.name},
			},
		})
}

// eventually waits until check says nothing any more.
func eventually(t *testing.T, check func(context.Context) string) {
	t.Helper()
	var missing string
	err := wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, waitAtMost, true, func(ctx context.Context) (bool, error) {
		missing = check(ctx)
		return missing == "", nil
	})
	if err != nil {
		t.Fatalf("after %s: %s", waitAtMost, missing)
	}
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

var (
	requestTotal = regexp.MustCompile(`(?m)^apiserver_request_total\{(.*)\} (\S+)$`)
	metricLabel  = regexp.MustCompile(`(\w+)="([^"]*)"`)
	writeVerbs   = []string{"POST", "PUT", "PATCH", "APPLY", "DELETE", "DELETECOLLECTION"}
	// serversOwn are what an API server writes by itself.
	serversOwn = []string{"leases", "flowschemas", "prioritylevelconfigurations"}
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
		if !slices.Contains(writeVerbs, labels["verb"]) || slices.Contains(serversOwn, labels["resource"]) {
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

// allWrites are those of every site.
func allWrites(t *testing.T, sites []*site) map[string]map[string]float64 {
	t.Helper()
	out := map[string]map[string]float64{}
	for _, s := range sites {
		out[s.name] = s.writes(t)
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

// The whole hub: a Service of two members is known in both, nothing is written
// while nothing happens, and nothing is left when the wish goes.
//
// make test has client-go watch that nobody changes what is in a cache
// (KUBE_CACHE_MUTATION_DETECTOR): it ends the process otherwise.
func TestRun(t *testing.T) {
	hub, members := startSites(t, "a", "b")
	opts, err := NewOptions()
	if err != nil {
		t.Fatal(err)
	}
	opts.LeaderElect, opts.MetricsBindAddress, opts.ProbeBindAddress, opts.Webhook.BindAddress = false, "0", "0", "0"
	opts.ClusterStatusUpdateFrequency = time.Second
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- RunWith(ctx, hub.config, opts) }()
	defer func() {
		stop()
		if err := <-ended; err != nil {
			t.Errorf("the hub ended with: %v", err)
		}
	}()

	hub.create(t,
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: clusterv1alpha1.SystemNamespace}},
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}},
		&corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "foo"}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Name: "http", Port: 80}}}},
	)
	for _, m := range members {
		m.join(t, hub)
	}
	for i, m := range members {
		eventually(t, func(ctx context.Context) string { return m.lacksNamespace(ctx, "shop") })
		m.create(t, providerSlice("foo-"+m.name, fmt.Sprintf("10.%d.0.1", i)))
	}
	mcs := &networkingv1alpha1.MultiClusterService{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "foo"},
		Spec:       networkingv1alpha1.MultiClusterServiceSpec{Types: []networkingv1alpha1.ExposureType{networkingv1alpha1.ExposureTypeCrossCluster}},
	}
	hub.create(t, mcs)
	spread := map[string][]string{"a": {"b-foo-b", "foo-a"}, "b": {"a-foo-a", "foo-b"}}
	for _, m := range members {
		eventually(t, func(ctx context.Context) string { return cmp.Diff(spread[m.name], m.slices(ctx)) })
	}
	eventually(t, func(ctx context.Context) string {
		if err := hub.Get(ctx, client.ObjectKeyFromObject(mcs), mcs); err != nil {
			return err.Error()
		}
		if !meta.IsStatusConditionTrue(mcs.Status.Conditions, networkingv1alpha1.ConditionReady) {
			return fmt.Sprintf("conditions %+v", mcs.Status.Conditions)
		}
		return ""
	})

	t.Run("no write at rest", func(t *testing.T) { staysAtRest(t, append(members, hub)) })
	t.Run("edits are undone", func(t *testing.T) {
		edited := &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "b-foo-b"}}
		if err := members[0].Get(t.Context(), client.ObjectKeyFromObject(edited), edited); err != nil {
			t.Fatal(err)
		}
		edited.Labels, edited.Annotations, edited.Endpoints = nil, nil, nil
		if err := members[0].Update(t.Context(), edited); err != nil {
			t.Fatal(err)
		}
		eventually(t, func(ctx context.Context) string {
			if err := members[0].Get(ctx, client.ObjectKeyFromObject(edited), edited); err != nil {
				return err.Error()
			}
			if len(edited.Endpoints) != 1 || edited.Labels[discoveryv1.LabelServiceName] != "foo" {
				return fmt.Sprintf("slice %+v", edited)
			}
			return ""
		})
		if diff := cmp.Diff(spread["b"], members[1].slices(t.Context())); diff != "" {
			t.Errorf("slices in b (-want +got):\n%s", diff)
		}
	})
	t.Run("a second Work of the Service goes, the Service stays", func(t *testing.T) { secondWorkGoes(t, hub, members[0]) })
	t.Run("nothing is left", func(t *testing.T) {
		if err := hub.Delete(t.Context(), mcs); err != nil {
			t.Fatal(err)
		}
		eventually(t, func(ctx context.Context) string {
			if err := hub.Get(ctx, client.ObjectKeyFromObject(mcs), mcs); !apierrors.IsNotFound(err) {
				return fmt.Sprintf("the MultiClusterService stands: %v", err)
			}
			return ""
		})
		for _, m := range members {
			if diff := cmp.Diff([]string{"foo-" + m.name}, m.slices(t.Context())); diff != "" {
				t.Errorf("slices in %s (-want +got):\n%s", m.name, diff)
			}
			err := m.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: "foo"}, &corev1.Service{})
			if !apierrors.IsNotFound(err) {
				t.Errorf("the Service in %s: %v, want that it is gone", m.name, err)
			}
		}
	})
}

// secondWorkGoes makes another Work for the Service, as one made by Karmada might
// be. It is taken away again, and the Service of the first stays through it all.
func secondWorkGoes(t *testing.T, hub, member *site) {
	before := &corev1.Service{}
	key := client.ObjectKey{Namespace: "shop", Name: "foo"}
	if err := member.Get(t.Context(), key, before); err != nil {
		t.Fatal(err)
	}
	second := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{
		Namespace: clusterv1alpha1.ExecutionNamespace(member.name), Name: "zz-second", Finalizers: []string{workv1alpha1.ExecutionFinalizer},
	}}
	m := workv1alpha1.Manifest{}
	m.Raw = []byte(`{"apiVersion":"v1","kind":"Service","metadata":{"namespace":"shop","name":"foo"},"spec":{"ports":[{"name":"http","port":80}]}}`)
	second.Spec.Workload.Manifests = []workv1alpha1.Manifest{m}
	hub.create(t, second)
	eventually(t, func(ctx context.Context) string {
		if err := hub.Get(ctx, client.ObjectKeyFromObject(second), second); !apierrors.IsNotFound(err) {
			return fmt.Sprintf("the second Work stands: %v", err)
		}
		return ""
	})
	after := &corev1.Service{}
	if err := member.Get(t.Context(), key, after); err != nil || after.UID != before.UID || after.DeletionTimestamp != nil {
		t.Errorf("the Service was %s, is %s, error %v: want the same one", before.UID, after.UID, err)
	}
}

// staysAtRest waits until writes stop, and then sees none for five seconds.
func staysAtRest(t *testing.T, sites []*site) {
	before := allWrites(t, sites)
	settled := time.Now()
	for start := time.Now(); time.Since(settled) < 2*time.Second; {
		tick(t, 200*time.Millisecond)
		now := allWrites(t, sites)
		if !cmp.Equal(before, now) {
			if time.Since(start) > waitAtMost {
				t.Fatalf("writes do not stop (-before +now):\n%s", cmp.Diff(before, now))
			}
			before, settled = now, time.Now()
		}
	}
	tick(t, 5*time.Second)
	if diff := cmp.Diff(before, allWrites(t, sites)); diff != "" {
		t.Errorf("writes at rest (-before +after):\n%s", diff)
	}
}

func (s *site) lacksNamespace(ctx context.Context, name string) string {
	if err := s.Get(ctx, client.ObjectKey{Name: name}, &corev1.Namespace{}); err != nil {
		return err.Error()
	}
	return ""
}

// providerSlice is a slice as the endpointslice controller of a member makes it.
func providerSlice(name, address string) *discoveryv1.EndpointSlice {
	port, number, ready := "http", int32(8080), true
	return &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: name,
			Labels: map[string]string{discoveryv1.LabelServiceName: "foo", discoveryv1.LabelManagedBy: "endpointslice-controller.k8s.io"},
		},
		AddressType: discoveryv1.AddressTypeIPv4,
		Endpoints:   []discoveryv1.Endpoint{{Addresses: []string{address}, Conditions: discoveryv1.EndpointConditions{Ready: &ready}}},
		Ports:       []discoveryv1.EndpointPort{{Name: &port, Port: &number}},
	}
}

// A hub that does not answer is waited for; what it then says counts.
func TestKeepRunning(t *testing.T) {
	var asked atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if asked.Add(1) == 1 {
			panic(http.ErrAbortHandler) // the connection breaks
		}
		http.NotFound(w, r) // no kinds at all
	}))
	defer server.Close()
	opts, err := NewOptions()
	if err != nil {
		t.Fatal(err)
	}
	opts.MetricsBindAddress, opts.ProbeBindAddress, opts.Webhook.BindAddress = "0", "0", "0"
	err = serve(t.Context(), &rest.Config{Host: server.URL}, opts)
	if err == nil || !strings.Contains(err.Error(), "asking the hub for kind Cluster") || asked.Load() < 2 {
		t.Errorf("asked %d times, then: %v", asked.Load(), err)
	}
}

// A hub without our kinds says what to do.
func TestRunWithoutKinds(t *testing.T) {
	server := newHubWithoutKinds(t)
	opts, err := NewOptions()
	if err != nil {
		t.Fatal(err)
	}
	opts.LeaderElect, opts.MetricsBindAddress, opts.ProbeBindAddress, opts.Webhook.BindAddress = false, "0", "0", "0"
	err = RunWith(t.Context(), &rest.Config{Host: server}, opts)
	if err == nil || !strings.Contains(err.Error(), "run 'namesakectl install' against it first") {
		t.Errorf("error %v, want what to do", err)
	}
}

// newHubWithoutKinds returns the URL of a hub that serves none of ours.
func newHubWithoutKinds(t *testing.T) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch r.URL.Path {
		case "/api":
			fmt.Fprint(w, `{"kind":"APIVersions","versions":["v1"]}`)
		case "/apis":
			fmt.Fprint(w, `{"kind":"APIGroupList","apiVersion":"v1","groups":[{"name":"coordination.k8s.io","versions":[{"groupVersion":"coordination.k8s.io/v1","version":"v1"}]}]}`)
		case "/apis/coordination.k8s.io/v1":
			fmt.Fprint(w, `{"kind":"APIResourceList","groupVersion":"coordination.k8s.io/v1","resources":[{"name":"leases","kind":"Lease","namespaced":true,"verbs":["list"]}]}`)
		case "/api/v1":
			fmt.Fprint(w, `{"kind":"APIResourceList","groupVersion":"v1","resources":[{"name":"secrets","kind":"Secret","namespaced":true,"verbs":["list"]}]}`)
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(server.Close)
	return server.URL
}
