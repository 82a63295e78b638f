package apply

import (
	"os"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// server is a real API server.
type server struct{ client.Client }

func startServer(t *testing.T) server {
	t.Helper()
	const assets = "KUBEBUILDER_ASSETS"
	if os.Getenv(assets) == "" {
		t.Fatalf("this test needs a real API server (%s): run make test", assets)
	}
	env := &envtest.Environment{}
	config, err := env.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := env.Stop(); err != nil {
			t.Error(err)
		}
	})
	c, err := client.New(config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return server{c}
}

// made is a new object with finalizers.
func (s server) made(t *testing.T, finalizers ...string) *corev1.ConfigMap {
	t.Helper()
	o := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, GenerateName: "test-", Finalizers: finalizers}}
	if err := s.Create(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	return o
}

// touched changes an object behind the back of who has read it.
func (s server) touched(t *testing.T, o *corev1.ConfigMap) {
	t.Helper()
	other := o.DeepCopy()
	other.Data = map[string]string{"theirs": "kept"}
	if err := s.Update(t.Context(), other); err != nil {
		t.Fatal(err)
	}
}

// current is the object as it stands, nil when there is none.
func (s server) current(t *testing.T, o client.Object) *corev1.ConfigMap {
	t.Helper()
	out := &corev1.ConfigMap{}
	err := s.Get(t.Context(), client.ObjectKeyFromObject(o), out)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestWriter(t *testing.T) {
	s := startServer(t)
	w := NewWriter(s, "test")
	ctx := t.Context()
	data := func(value string) map[string]any { return map[string]any{"data": map[string]any{"ours": value}} }

	t.Run("create twice", func(t *testing.T) {
		o := s.made(t)
		again := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: o.Namespace, Name: o.Name}}
		if err := w.Create(ctx, again); !apierrors.IsAlreadyExists(err) {
			t.Errorf("error %v, want that it exists", err)
		}
	})
	t.Run("the field manager is the owner", func(t *testing.T) {
		o := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "owned"}, Data: map[string]string{"a": "b"}}
		if err := w.Create(ctx, o); err != nil {
			t.Fatal(err)
		}
		if o.ManagedFields[0].Manager != "test" {
			t.Errorf("managed by %s", o.ManagedFields[0].Manager)
		}
	})
	t.Run("update what has changed", func(t *testing.T) {
		o := s.made(t)
		s.touched(t, o)
		if err := w.Update(ctx, o); !apierrors.IsConflict(err) {
			t.Errorf("error %v, want a conflict", err)
		}
	})
	t.Run("delete", func(t *testing.T) {
		o := s.made(t)
		s.touched(t, o) // that it has changed does not matter
		for range 2 {
			if err := w.Delete(ctx, o); err != nil {
				t.Error(err)
			}
		}
		if s.current(t, o) != nil {
			t.Error("it still stands")
		}
	})
	t.Run("delete one that was made anew", func(t *testing.T) {
		o := s.made(t)
		old := o.DeepCopy()
		old.UID = "of-before"
		if err := w.Delete(ctx, old); err != nil {
			t.Error(err)
		}
		if s.current(t, o) == nil {
			t.Error("another one of that name was deleted")
		}
	})
	t.Run("delete exactly what was read", func(t *testing.T) {
		o := s.made(t)
		s.touched(t, o)
		if err := w.DeleteExact(ctx, o); !apierrors.IsConflict(err) {
			t.Errorf("error %v, want a conflict", err)
		}
		if err := w.DeleteExact(ctx, s.current(t, o)); err != nil {
			t.Error(err)
		}
		if err := w.DeleteExact(ctx, o); err != nil {
			t.Errorf("of one that has gone: %v", err)
		}
	})
	t.Run("patch just what is ours", func(t *testing.T) {
		o := s.made(t)
		s.touched(t, o)
		if err := w.Patch(ctx, o, data("stale")); !apierrors.IsConflict(err) {
			t.Errorf("with the version that was read: %v, want a conflict", err)
		}
		bare := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: o.Namespace, Name: o.Name}}
		if err := w.Patch(ctx, bare, data("set")); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(map[string]string{"theirs": "kept", "ours": "set"}, s.current(t, o).Data); diff != "" {
			t.Errorf("data (-want +got):\n%s", diff)
		}
		if bare.ResourceVersion == "" || bare.Data["theirs"] != "kept" {
			t.Error("what the server returned is not in the object")
		}
	})
	t.Run("finalizers", func(t *testing.T) { s.testFinalizers(t, w) })
	t.Run("status", func(t *testing.T) { s.testStatus(t, w) })
	t.Run("delete all", func(t *testing.T) {
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "all"}}
		if err := s.Create(ctx, namespace); err != nil {
			t.Fatal(err)
		}
		o := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "all", Name: "x"}}
		if err := s.Create(ctx, o); err != nil {
			t.Fatal(err)
		}
		other := s.made(t)
		if err := w.DeleteAll(ctx, &corev1.ConfigMap{}, "all"); err != nil {
			t.Error(err)
		}
		if s.current(t, o) != nil || s.current(t, other) == nil {
			t.Error("want those of the namespace gone, and no other")
		}
	})
	t.Run("no namespace", func(t *testing.T) {
		o := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "nope", Name: "x"}}
		if err := w.Create(ctx, o); !NoNamespace(err) {
			t.Errorf("error %v, want one that says so", err)
		}
		going := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "going"}}
		for _, do := range []error{s.Create(ctx, going), s.Delete(ctx, going)} {
			if do != nil {
				t.Fatal(do)
			}
		}
		o.Namespace = "going"
		if err := w.Create(ctx, o); !NoNamespace(err) {
			t.Errorf("in one that is being deleted: %v, want an error that says so", err)
		}
	})
	t.Run("counted", testCounts)
}

// One finalizer at a time, and only on what was read.
func (s server) testFinalizers(t *testing.T, w Writer) {
	const ours, theirs = "karmada.io/ours", "example.com/theirs"
	ctx := t.Context()
	o := s.made(t, theirs)
	stale := o.DeepCopy()
	if err := w.AddFinalizer(ctx, o, ours); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{theirs, ours}, s.current(t, o).Finalizers); diff != "" {
		t.Errorf("added (-want +got):\n%s", diff)
	}
	version := o.ResourceVersion
	if err := w.AddFinalizer(ctx, o, ours); err != nil || s.current(t, o).ResourceVersion != version {
		t.Errorf("added twice: error %v, or a write", err)
	}
	if err := w.AddFinalizer(ctx, stale, ours); !apierrors.IsConflict(err) {
		t.Errorf("on what was read before: %v, want a conflict", err)
	}
	if err := s.Delete(ctx, o); err != nil {
		t.Fatal(err)
	}
	o = s.current(t, o)
	if err := w.AddFinalizer(ctx, o, "karmada.io/late"); err != nil || slices.Contains(s.current(t, o).Finalizers, "karmada.io/late") {
		t.Errorf("on what is being deleted: %v, or it was added", err)
	}
	if err := w.RemoveFinalizer(ctx, o, "karmada.io/not-there"); err != nil {
		t.Error(err)
	}
	if err := w.RemoveFinalizer(ctx, o, ours); err != nil {
		t.Error(err)
	}
	o = s.current(t, o)
	if diff := cmp.Diff([]string{theirs}, o.Finalizers); diff != "" {
		t.Errorf("removed (-want +got):\n%s", diff)
	}
	last := o.DeepCopy()
	if err := w.RemoveFinalizer(ctx, o, theirs); err != nil || s.current(t, o) != nil {
		t.Errorf("the last one: %v, or it still stands", err)
	}
	if err := w.RemoveFinalizer(ctx, last, theirs); err != nil {
		t.Errorf("of one that has gone: %v", err)
	}
}

// Two writers of one status keep out of each other's way.
func (s server) testStatus(t *testing.T, w Writer) {
	ctx := t.Context()
	service := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "status"},
		Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer, Ports: []corev1.ServicePort{{Port: 80}}},
	}
	if err := s.Create(ctx, service); err != nil {
		t.Fatal(err)
	}
	condition := func(kind string) *unstructured.Unstructured {
		u := &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"conditions": []any{map[string]any{
			"type": kind, "status": "True", "reason": "Test", "message": "", "lastTransitionTime": "2026-08-01T12:00:00Z",
		}}}}}
		u.SetAPIVersion("v1")
		u.SetKind("Service")
		u.SetNamespace(service.Namespace)
		u.SetName(service.Name)
		return u
	}
	first := condition("First")
	for _, err := range []error{w.Status(ctx, first), NewWriter(s, "other").Status(ctx, condition("Second"))} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Get(ctx, client.ObjectKeyFromObject(service), service); err != nil {
		t.Fatal(err)
	}
	if len(service.Status.Conditions) != 2 || first.GetResourceVersion() == "" {
		t.Errorf("conditions %+v, version %q, want both, and what the server returned", service.Status.Conditions, first.GetResourceVersion())
	}
	stale := service.DeepCopy()
	if err := w.StatusPatch(ctx, service, map[string]any{"loadBalancer": map[string]any{"ingress": []any{map[string]any{"ip": "1.2.3.4"}}}}); err != nil {
		t.Fatal(err)
	}
	if len(service.Status.Conditions) != 2 || len(service.Status.LoadBalancer.Ingress) != 1 {
		t.Errorf("status %+v, want the patch beside the conditions", service.Status)
	}
	if err := w.StatusPatch(ctx, stale, map[string]any{}); !apierrors.IsConflict(err) {
		t.Errorf("a patch of what was read before: %v, want a conflict", err)
	}
}

// Every write above is counted, with how it ended.
func testCounts(t *testing.T) {
	registry := prometheus.NewRegistry()
	registry.MustRegister(Collectors()...)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]bool{}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			labels := map[string]string{}
			for _, l := range metric.GetLabel() {
				labels[l.GetName()] = l.GetValue()
			}
			if labels["controller"] == "test" && metric.GetCounter().GetValue() > 0 {
				got[labels["kind"]+" "+labels["verb"]+" "+labels["result"]] = true
			}
		}
	}
	for _, want := range []string{
		"ConfigMap create ok", "ConfigMap create conflict", "ConfigMap create error", "ConfigMap update conflict", "ConfigMap delete ok",
		"ConfigMap delete conflict", "ConfigMap patch ok", "ConfigMap patch conflict", "ConfigMap deletecollection ok", "Service status ok",
	} {
		if !got[want] {
			t.Errorf("%q is not among %v", want, got)
		}
	}
}
