package membersim

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// A simulated member answers as a real API server does, in both encodings.
func TestConformance(t *testing.T) {
	if os.Getenv("KUBEBUILDER_ASSETS") == "" {
		t.Fatal("this test needs a real API server (KUBEBUILDER_ASSETS): run make test")
	}
	env := &envtest.Environment{}
	genuine, err := env.Start()
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := env.Stop(); err != nil {
			t.Error(err)
		}
	}()
	server := httptest.NewTLSServer(NewFleet("a"))
	defer server.Close()
	simulated := &rest.Config{Host: server.URL + "/a", TLSClientConfig: rest.TLSClientConfig{Insecure: true}}

	for _, encoding := range []string{runtime.ContentTypeJSON, runtime.ContentTypeProtobuf} {
		t.Run(encoding, func(t *testing.T) {
			said := map[string][]string{}
			for server, config := range map[string]*rest.Config{"real": genuine, "simulated": simulated} {
				config := rest.CopyConfig(config)
				config.ContentType, config.AcceptContentTypes = encoding, encoding
				set, err := kubernetes.NewForConfig(config)
				if err != nil {
					t.Fatal(err)
				}
				tr := &transcript{t: t, set: set, ns: "conformance-" + encoding[len(encoding)-4:]}
				tr.run(t.Context())
				said[server] = tr.lines
			}
			if len(said["real"]) < 30 {
				t.Fatalf("only %d lines: %q", len(said["real"]), said["real"])
			}
			if diff := cmp.Diff(said["real"], said["simulated"]); diff != "" {
				t.Errorf("(- real, + simulated):\n%s", diff)
			}
		})
	}
}

// transcript notes what a server answers, without what no two servers have in common.
type transcript struct {
	t     *testing.T
	set   kubernetes.Interface
	ns    string
	lines []string
}

// note adds a line.
func (tr *transcript) note(what string, obj metav1.Object, err error) {
	switch {
	case err != nil:
		tr.lines = append(tr.lines, fmt.Sprintf("%s: %s %d", what, apierrors.ReasonForError(err), codeOf(err)))
		return
	case obj == nil:
		tr.lines = append(tr.lines, what)
		return
	}
	var managers []string
	for _, e := range obj.GetManagedFields() {
		managers = append(managers, e.Manager)
	}
	slices.Sort(managers)
	line := fmt.Sprintf("%s: %s/%s labels %v generation %d uid %v managers %v", what, obj.GetNamespace(), obj.GetName(),
		obj.GetLabels(), obj.GetGeneration(), obj.GetUID() != "", managers)
	switch o := obj.(type) {
	case *discoveryv1.EndpointSlice:
		line += fmt.Sprintf(" %s %d endpoints %d ports", o.AddressType, len(o.Endpoints), len(o.Ports))
	case *corev1.Service:
		line += fmt.Sprintf(" %s ip %v %s port %s %s", o.Spec.Type, o.Spec.ClusterIP != "", o.Spec.SessionAffinity,
			o.Spec.Ports[0].Protocol, o.Spec.Ports[0].TargetPort.String())
	case *corev1.Namespace:
		line += string(o.Status.Phase)
	}
	tr.lines = append(tr.lines, line)
}

func codeOf(err error) int32 {
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		return status.Status().Code
	}
	return 0
}

func newSlice(name string, edits ...func(*discoveryv1.EndpointSlice)) *discoveryv1.EndpointSlice {
	s := &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Name: name, Labels: map[string]string{discoveryv1.LabelServiceName: "foo"}},
		AddressType: discoveryv1.AddressTypeIPv4,
		Endpoints:   []discoveryv1.Endpoint{{Addresses: []string{"10.0.0.1"}}},
		Ports:       []discoveryv1.EndpointPort{{Name: ptr.To("http"), Port: ptr.To[int32](80), Protocol: ptr.To(corev1.ProtocolTCP)}},
	}
	for _, edit := range edits {
		edit(s)
	}
	return s
}

// run does the same to whatever server it is.
func (tr *transcript) run(ctx context.Context) {
	create, get, list := metav1.CreateOptions{FieldManager: "tester"}, metav1.GetOptions{}, metav1.ListOptions{}
	api := tr.set.DiscoveryV1().EndpointSlices(tr.ns)
	_, err := api.Create(ctx, newSlice("early"), create)
	tr.note("create in a namespace that is missing", nil, err)
	ns, err := tr.set.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: tr.ns}}, create)
	tr.note("create a namespace", ns, err)
	svc, err := tr.set.CoreV1().Services(tr.ns).Create(ctx, &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "foo"}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}},
	}, create)
	tr.note("create a service", svc, err)

	before, err := api.List(ctx, list)
	tr.note(fmt.Sprintf("list of none: %d", len(before.Items)), nil, err)
	all := tr.watch(ctx, "", before.ResourceVersion)
	labelled := tr.watch(ctx, discoveryv1.LabelServiceName+"=foo", before.ResourceVersion)

	made, err := api.Create(ctx, newSlice("s1"), create)
	tr.note("create", made, err)
	_, err = api.Create(ctx, newSlice("s1"), create)
	tr.note("create again", nil, err)
	_, err = api.Create(ctx, newSlice("s2", func(s *discoveryv1.EndpointSlice) { s.ResourceVersion = "5" }), create)
	tr.note("create with a version", nil, err)
	other, err := api.Create(ctx, newSlice("s2", func(s *discoveryv1.EndpointSlice) { s.Labels = nil }), create)
	tr.note("create another", other, err)
	read, err := api.Get(ctx, "s1", get)
	tr.note("get", read, err)
	_, err = api.Get(ctx, "s3", get)
	tr.note("get of none", nil, err)

	tr.updates(ctx, made)
	tr.lists(ctx)
	tr.deletes(ctx, other)
	tr.told("all", all)
	tr.told("those of a service", labelled)
}

// updates of a slice as it was made.
func (tr *transcript) updates(ctx context.Context, made *discoveryv1.EndpointSlice) {
	api, options := tr.set.DiscoveryV1().EndpointSlices(tr.ns), metav1.UpdateOptions{FieldManager: "second"}
	same, err := api.Update(ctx, made.DeepCopy(), options)
	tr.note(fmt.Sprintf("update without a change, version kept %v", err == nil && same.ResourceVersion == made.ResourceVersion), same, err)
	changed := made.DeepCopy()
	changed.Endpoints = append(changed.Endpoints, discoveryv1.Endpoint{Addresses: []string{"10.0.0.2"}})
	current, err := api.Update(ctx, changed, options)
	tr.note("update", current, err)
	_, err = api.Update(ctx, made.DeepCopy(), options)
	tr.note("update of an old version", nil, err)
	blind := newSlice("s1", func(s *discoveryv1.EndpointSlice) { s.Labels["more"] = "yes" })
	blind.Endpoints = current.Endpoints
	current, err = api.Update(ctx, blind, options)
	tr.note("update of labels, without a version", current, err)
	foreign := current.DeepCopy()
	foreign.UID = "another"
	_, err = api.Update(ctx, foreign, options)
	tr.note("update of another one of that name", nil, err)
	gone := newSlice("s3")
	gone.ResourceVersion = "1"
	_, err = api.Update(ctx, gone, options)
	tr.note("update of none", nil, err)
	current.Labels = map[string]string{discoveryv1.LabelServiceName: "bar"}
	current, err = api.Update(ctx, current, options)
	tr.note("update that takes it to another service", current, err)
}

// lists by namespace and label.
func (tr *transcript) lists(ctx context.Context) {
	for _, selector := range []string{"", discoveryv1.LabelServiceName + "=bar", "!" + discoveryv1.LabelServiceName, "nobody in (a, b)"} {
		found, err := tr.set.DiscoveryV1().EndpointSlices(tr.ns).List(ctx, metav1.ListOptions{LabelSelector: selector})
		tr.note(fmt.Sprintf("list by %q: %d", selector, len(found.Items)), nil, err)
		for i := range found.Items {
			tr.note(" item", &found.Items[i], nil)
		}
	}
	found, err := tr.set.DiscoveryV1().EndpointSlices("").List(ctx, metav1.ListOptions{LabelSelector: discoveryv1.LabelServiceName + "=bar", ResourceVersion: "0"})
	tr.note(fmt.Sprintf("list everywhere, from memory, at least one %v", len(found.Items) > 0), nil, err)
	_, err = tr.set.DiscoveryV1().EndpointSlices(tr.ns).List(ctx, metav1.ListOptions{LabelSelector: "=="})
	tr.note("list by nonsense", nil, err)
}

// deletes with and without preconditions.
func (tr *transcript) deletes(ctx context.Context, other *discoveryv1.EndpointSlice) {
	api := tr.set.DiscoveryV1().EndpointSlices(tr.ns)
	tr.note("delete of another one of that name", nil, api.Delete(ctx, "s2", metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: ptr.To[types.UID]("another")},
	}))
	tr.note("delete of an old version", nil, api.Delete(ctx, "s2", metav1.DeleteOptions{Preconditions: &metav1.Preconditions{ResourceVersion: ptr.To("1")}}))
	tr.note("delete exactly", nil, api.Delete(ctx, "s2", metav1.DeleteOptions{Preconditions: &metav1.Preconditions{
		UID: &other.UID, ResourceVersion: &other.ResourceVersion,
	}}))
	tr.note("delete again", nil, api.Delete(ctx, "s2", metav1.DeleteOptions{}))
	tr.note("delete", nil, api.Delete(ctx, "s1", metav1.DeleteOptions{}))
}

// watch watches slices from a version.
func (tr *transcript) watch(ctx context.Context, selector, version string) watch.Interface {
	w, err := tr.set.DiscoveryV1().EndpointSlices(tr.ns).Watch(ctx, metav1.ListOptions{LabelSelector: selector, ResourceVersion: version})
	if err != nil {
		tr.t.Fatal(err)
	}
	tr.t.Cleanup(w.Stop)
	return w
}

// told notes what a watch tells until s1 has been deleted, as far as it can see.
func (tr *transcript) told(who string, w watch.Interface) {
	late := time.NewTimer(30 * time.Second)
	defer late.Stop()
	for {
		select {
		case event := <-w.ResultChan():
			obj, ok := event.Object.(metav1.Object)
			if !ok {
				tr.t.Fatalf("told %s of a %T", event.Type, event.Object)
			}
			tr.note(fmt.Sprintf("told to %s: %s", who, event.Type), obj, nil)
			if event.Type == watch.Deleted && obj.GetName() == "s1" {
				return
			}
		case <-late.C:
			tr.t.Fatal("a deletion was not told")
		}
	}
}
