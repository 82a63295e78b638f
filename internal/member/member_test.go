package member

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha1 "github.com/namesake-io/namesake/api/work/v1alpha1"
	"github.com/namesake-io/namesake/internal/discovery"
)

// observer is a registry whose events a test waits for.
type observer struct {
	*Registry
	events chan Event
}

func observing(t *testing.T) *observer {
	t.Helper()
	o := &observer{
		Registry: NewRegistry(Options{Scheme: clientgoscheme.Scheme, ProbeInterval: time.Minute, QPS: -1}),
		events:   make(chan Event, 10000),
	}
	o.Subscribe(func(e Event) { o.events <- e })
	t.Cleanup(o.Close)
	return o
}

func (o *observer) ensure(t *testing.T, cfg Config) {
	t.Helper()
	if err := o.Ensure(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
}

// await returns the next event that fits.
func (o *observer) await(t *testing.T, what string, fits func(Event) bool) Event {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), waitAtMost)
	defer cancel()
	for {
		select {
		case e := <-o.events:
			if fits(e) {
				return e
			}
		case <-ctx.Done():
			t.Fatalf("waited %s for %s", waitAtMost, what)
		}
	}
}

// synced returns the member once its slices are known.
func (o *observer) synced(t *testing.T, id ID) *Member {
	t.Helper()
	return o.await(t, "the slices of "+string(id.Name), func(e Event) bool { return e.Kind == EventSynced && e.Member.ID() == id }).Member
}

func (o *observer) slice(t *testing.T, name string) Event {
	t.Helper()
	return o.await(t, "slice "+name, func(e Event) bool { return e.Kind == EventSlice && e.New != nil && e.New.Name == name })
}

// sliceIn is a slice of service foo in a namespace, to be created.
func sliceIn(namespace, name string, edits ...func(*discoveryv1.EndpointSlice)) *discoveryv1.EndpointSlice {
	s := slice(name, "", edits...)
	s.Namespace, s.UID, s.ManagedFields, s.Generation = namespace, "", nil, 0
	s.Ports = nil
	return s
}

// A member as it is used: its slices, what is written there, its objects, its end.
func TestMember(t *testing.T) {
	s := needServer(t)
	namespace := s.namespace(t)
	service := types.NamespacedName{Namespace: namespace, Name: "foo"}
	s.create(t, sliceIn(namespace, "before"))
	o := observing(t)
	cfg := s.member(s.config.Host)
	o.ensure(t, cfg)
	m := o.synced(t, cfg.ID)
	if h := m.Health(); h.Known && !h.Ready || !m.Reachable() {
		t.Errorf("health %+v", h)
	}

	found, err := m.Slices().Native(t.Context(), service)
	if err != nil || len(found) != 1 || len(found[0].Endpoints) != 1 {
		t.Fatalf("own slices %v, error %v, want the one that stood there, whole", found, err)
	}
	s.create(t, sliceIn(namespace, "after"))
	if e := o.slice(t, "after"); e.Old != nil || len(e.New.Endpoints) != 1 {
		t.Errorf("event %+v, want a new slice, whole", e)
	}

	own := sliceIn(namespace, "b-x", dispatched)
	if err := m.Client().Create(t.Context(), own, client.FieldOwner(discovery.FieldManager)); err != nil {
		t.Fatal(err)
	}
	m.Slices().Wrote(own)
	if got := m.Slices().Dispatched(service, nil); len(got) != 1 || got[0].ResourceVersion != own.ResourceVersion {
		t.Errorf("dispatched %v, want what was written, at once", versions(got))
	}
	own.Labels, own.Annotations = nil, nil
	if err := s.admin.Update(t.Context(), own); err != nil {
		t.Fatal(err)
	}
	if e := o.slice(t, "b-x"); !discovery.Dispatched(e.New) {
		t.Error("with its labels edited away the slice counts as the member's own (C32)")
	}

	groups, err := m.Discovery().ServerVersion()
	if err != nil || groups.GitVersion == "" {
		t.Errorf("version %v, error %v", groups, err)
	}
	o.Leave("a")
	o.await(t, "the end", func(e Event) bool { return e.Kind == EventLeft && e.Member == m })
	if _, connected := o.Get("a"); connected {
		t.Error("the member is still in the registry")
	}
}

// The view of objects: every Namespace, what bears our label, and what does not,
// from the API server.
func TestObjects(t *testing.T) {
	s := needServer(t)
	namespace := s.namespace(t)
	o := observing(t)
	cfg := s.member(s.config.Host)
	o.ensure(t, cfg)
	m := o.synced(t, cfg.ID)

	get := func(gvk string, key types.NamespacedName) bool {
		t.Helper()
		kind := NamespaceKind
		if gvk == "Service" {
			kind = corev1.SchemeGroupVersion.WithKind("Service")
		}
		_, found, err := m.Object(t.Context(), kind, key)
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	if !get("Namespace", types.NamespacedName{Name: namespace}) || get("Namespace", types.NamespacedName{Name: "nope"}) {
		t.Error("namespaces: want the one that there is, and not the other")
	}
	later := s.namespace(t)
	o.await(t, "a new namespace", func(e Event) bool { return e.Kind == EventObject && e.GVK == NamespaceKind && e.Key.Name == later })
	if !get("Namespace", types.NamespacedName{Name: later}) {
		t.Error("a namespace that was told is not in the view")
	}

	foo, ours := types.NamespacedName{Namespace: namespace, Name: "foo"}, types.NamespacedName{Namespace: namespace, Name: "ours"}
	if get("Service", foo) {
		t.Error("found a Service that there is not")
	}
	service := func(name string) *corev1.Service {
		return &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
			Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}},
		}
	}
	s.create(t, service("foo"))
	if !get("Service", foo) {
		t.Error("a Service without our label is not found")
	}
	marked := service("ours")
	marked.Labels = map[string]string{workv1alpha1.ManagedLabel: workv1alpha1.ManagedValue}
	marked.Annotations = map[string]string{workv1alpha1.NamespaceAnnotation: "karmada-es-a", workv1alpha1.NameAnnotation: "ours-1"}
	s.create(t, marked)
	is := func(e Event) bool { return e.Kind == EventObject && e.Key == ours }
	work := types.NamespacedName{Namespace: "karmada-es-a", Name: "ours-1"}
	if e := o.await(t, "our Service", is); e.Work != work {
		t.Errorf("the event names Work %s, want %s", e.Work, work)
	}
	marked.Annotations = nil
	if err := s.admin.Update(t.Context(), marked); err != nil {
		t.Fatal(err)
	}
	if e := o.await(t, "an edit of the marks", is); e.Work != work {
		t.Errorf("the marks were edited away, and the event names Work %s, want the one that was named", e.Work)
	}
}

// C26: the path to the member is cut and comes back. What was seen stays, writes
// fail at once, and events go on.
func TestPathCut(t *testing.T) {
	s := needServer(t)
	namespace := s.namespace(t)
	service := types.NamespacedName{Namespace: namespace, Name: "foo"}
	s.create(t, sliceIn(namespace, "before"))
	p := newPath(t, s.host())
	o := observing(t)
	cfg := s.member("https://" + p.address)
	o.ensure(t, cfg)
	m := o.synced(t, cfg.ID)
	if _, err := m.Slices().Native(t.Context(), service); err != nil {
		t.Fatal(err)
	}

	p.cut()
	o.await(t, "the member to count as unreachable", func(e Event) bool { return e.Kind == EventHealth && !m.Reachable() })
	if err := m.Client().Create(t.Context(), sliceIn(namespace, "x")); !errors.Is(err, ErrUnreachable) {
		t.Errorf("a write while it is cut: %v, want ErrUnreachable", err)
	}
	s.create(t, sliceIn(namespace, "meanwhile"))
	if err := s.admin.Delete(t.Context(), sliceIn(namespace, "before")); err != nil {
		t.Fatal(err)
	}
	if got, err := m.Slices().Native(t.Context(), service); err != nil || len(got) != 1 || !m.Slices().Synced() {
		t.Errorf("own slices while it is cut: %v, error %v, want the one that was seen", versions(got), err)
	}

	p.restore(t)
	o.await(t, "the member to be back", func(e Event) bool { return e.Kind == EventHealth && m.Reachable() })
	gone, came := false, false
	o.await(t, "what was missed", func(e Event) bool {
		if e.Kind == EventSlice {
			gone = gone || e.New == nil && e.Old.Name == "before"
			came = came || e.New != nil && e.New.Name == "meanwhile"
		}
		return gone && came
	})
	got, err := m.Slices().Native(t.Context(), service)
	if err != nil || len(got) != 1 || got[0].Name != "meanwhile" || len(got[0].Endpoints) != 1 {
		t.Errorf("own slices: %v, error %v, want the new one, whole", versions(got), err)
	}
}

// Changes of a connection: a token in place; anything else make-before-break; and
// of another cluster under the name nothing is kept.
func TestEnsure(t *testing.T) {
	s := needServer(t)
	o := observing(t)
	cfg := s.member(s.config.Host)
	o.ensure(t, cfg)
	first := o.synced(t, cfg.ID)
	current := func() *Member {
		m, _ := o.Get("a")
		return m
	}

	o.ensure(t, cfg)
	renewed := cfg
	renewed.Token = "another"
	o.ensure(t, renewed)
	if current() != first || first.tokens.current() != "another" {
		t.Error("a new token made a new connection, or was not taken over")
	}
	o.ensure(t, cfg)

	p := newPath(t, s.host())
	p.cut()
	moved := cfg
	moved.Endpoint = "https://" + p.address
	o.ensure(t, moved)
	o.await(t, "the new connection to be found wrong", func(e Event) bool { return e.Kind == EventHealth && e.Member != first })
	if current() != first || !first.Reachable() {
		t.Error("a change that does not work cut a connection that does")
	}
	if h, known := o.Health("a"); !known || h.Reachable {
		t.Errorf("health %+v, want that of the connection being made", h)
	}
	p.restore(t)
	second := o.synced(t, cfg.ID)
	if second == first || current() != second {
		t.Error("the new connection did not take the old one's place")
	}

	other := moved
	other.ID.UID = "2"
	o.ensure(t, other)
	if current() == second {
		t.Error("another cluster under the name got the old one's connection (C29)")
	}
	left, synced := false, false
	o.await(t, "the old cluster to leave, and the new one's slices", func(e Event) bool {
		left = left || e.Kind == EventLeft && e.Member == second
		synced = synced || e.Kind == EventSynced && e.Member.ID() == other.ID
		return left && synced
	})
	o.Close()
	if len(o.List()) != 0 {
		t.Error("members are left after Close")
	}
	o.ensure(t, cfg)
	if len(o.List()) != 0 {
		t.Error("a closed registry took a member")
	}
}

// Slices are read as protobuf, which costs a fraction of JSON.
func TestProtobuf(t *testing.T) {
	s := needServer(t)
	onward, err := rest.TransportFor(s.config)
	if err != nil {
		t.Fatal(err)
	}
	target, err := url.Parse(s.config.Host)
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var types []string
	proxy := &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(target); r.Out.Header.Del("Authorization") },
		Transport:     onward,
		FlushInterval: -1,
		ModifyResponse: func(resp *http.Response) error {
			if strings.HasSuffix(resp.Request.URL.Path, "/endpointslices") {
				mu.Lock()
				defer mu.Unlock()
				types = append(types, resp.Header.Get("Content-Type"))
			}
			return nil
		},
	}
	front := httptest.NewTLSServer(proxy)
	defer front.Close()
	o := observing(t)
	cfg := s.member(front.URL)
	cfg.InsecureSkipTLSVerification = true
	o.ensure(t, cfg)
	m := o.synced(t, cfg.ID)
	if _, err := listSlices(m.client)(t.Context(), foo, "0"); err != nil {
		t.Fatal(err)
	}
	o.Close()
	mu.Lock()
	defer mu.Unlock()
	if len(types) < 2 || slices.ContainsFunc(types, func(c string) bool { return !strings.Contains(c, "protobuf") }) {
		t.Errorf("slices came as %q, want protobuf", types)
	}
}
