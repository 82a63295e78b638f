package manifest_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"
	"pgregory.net/rapid"

	workv1alpha1 "github.com/namesake-io/namesake/api/work/v1alpha1"
	"github.com/namesake-io/namesake/internal/manifest"
)

// name draws what an object may be called: a subdomain of up to 253 characters,
// or what RBAC and others allow beside it.
func name() *rapid.Generator[string] {
	label := rapid.StringMatching(`[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?`)
	return rapid.Custom(func(t *rapid.T) string {
		n := strings.Join(rapid.SliceOfN(label, 1, 6).Draw(t, "labels"), rapid.SampledFrom([]string{".", ":"}).Draw(t, "separator"))
		return strings.TrimRight(n[:min(len(n), 253)], "-.:")
	})
}

func identity() *rapid.Generator[manifest.Identity] {
	return rapid.Custom(func(t *rapid.T) manifest.Identity {
		return manifest.Identity{
			Group:     rapid.SampledFrom([]string{"", "discovery.k8s.io"}).Draw(t, "group"),
			Kind:      rapid.SampledFrom([]string{"Service", "EndpointSlice", "Namespace"}).Draw(t, "kind"),
			Namespace: rapid.SampledFrom([]string{"", "shop", "a", "a-b"}).Draw(t, "namespace"),
			Name:      name().Draw(t, "name"),
		}
	})
}

// The name of a Work is valid whatever it holds, says what that is, and is the
// same every time.
func TestWorkName(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		id := identity().Draw(t, "identity")
		got := manifest.WorkName(id)
		if errs := validation.IsDNS1123Subdomain(got); len(errs) > 0 {
			t.Errorf("%q for %s: %v", got, id, errs)
		}
		if got != manifest.WorkName(id) {
			t.Error("another name the second time")
		}
		front := strings.ReplaceAll(id.Name, ":", ".")
		if !strings.HasPrefix(got, strings.TrimRight(front[:min(len(front), 200)], "-.")) {
			t.Errorf("%q does not begin like %q", got, id.Name)
		}
	})
}

// Objects that differ have Works that differ.
func TestWorkNamesDiffer(t *testing.T) {
	long := strings.Repeat("a", 252)
	ids := []manifest.Identity{
		{Kind: "Service", Namespace: "shop", Name: "foo"},
		{Kind: "Service", Namespace: "shop", Name: "foo-bar"},
		{Kind: "Service", Namespace: "bar", Name: "foo"},
		{Kind: "Namespace", Name: "foo"},
		{Group: "discovery.k8s.io", Kind: "EndpointSlice", Namespace: "shop", Name: "foo"},
		{Group: "discovery.k8s.io", Kind: "EndpointSlice", Namespace: "shop", Name: long + "1"},
		{Group: "discovery.k8s.io", Kind: "EndpointSlice", Namespace: "shop", Name: long + "2"},
		{Kind: "Service", Namespace: "a", Name: "b-c"},
		{Kind: "Service", Namespace: "a-b", Name: "c"},
	}
	seen := map[string]manifest.Identity{}
	for _, id := range ids {
		got := manifest.WorkName(id)
		if other, found := seen[got]; found {
			t.Errorf("%s and %s both have %s", id, other, got)
		}
		seen[got] = id
	}
}

func of(raw ...string) *workv1alpha1.Work {
	work := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-es-a", Name: "w"}}
	for _, r := range raw {
		m := workv1alpha1.Manifest{}
		m.Raw = []byte(r)
		work.Spec.Workload.Manifests = append(work.Spec.Workload.Manifests, m)
	}
	return work
}

const (
	service = `{"apiVersion":"v1","kind":"Service","metadata":{"namespace":"shop","name":"foo"}}`
	slice   = `{"apiVersion":"discovery.k8s.io/v1","kind":"EndpointSlice","metadata":{"namespace":"shop","name":"s1"},"addressType":"IPv4","endpoints":null,"ports":null}`
	broken  = `{"kind":`
)

// What goes into a manifest comes out of it, with fields that we do not know and
// numbers as they were.
func TestRoundTrip(t *testing.T) {
	const thing = `{"apiVersion":"example.com/v1","kind":"Thing","metadata":{"name":"x","unknown":true},"spec":{"big":9007199254740993,"half":0.5,"none":null,"list":[]}}`
	obj, err := manifest.Decode(of(thing).Spec.Workload.Manifests[0])
	if err != nil {
		t.Fatal(err)
	}
	again, err := manifest.Encode(obj)
	if err != nil {
		t.Fatal(err)
	}
	back, err := manifest.Decode(again)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(obj.Object, back.Object); diff != "" {
		t.Errorf("(-first +second):\n%s", diff)
	}
	if big, _, _ := unstructured.NestedInt64(back.Object, "spec", "big"); big != 9007199254740993 {
		t.Errorf("a large number became %d", big)
	}
	if _, err := manifest.Decode(of(broken).Spec.Workload.Manifests[0]); err == nil {
		t.Error("half an object was read")
	}
	if _, err := manifest.Encode(func() {}); err == nil {
		t.Error("a function was encoded")
	}
}

func TestIdentityOf(t *testing.T) {
	for raw, want := range map[string]manifest.Identity{
		service: {Kind: "Service", Namespace: "shop", Name: "foo"},
		slice:   {Group: "discovery.k8s.io", Kind: "EndpointSlice", Namespace: "shop", Name: "s1"},
		`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"shop"}}`: {Kind: "Namespace", Name: "shop"},
		broken:                            {},
		`{"metadata":{"name":"x"}}`:       {},
		`{"kind":"Service","metadata":1}`: {},
		`{"kind":"Service"}`:              {},
	} {
		got, err := manifest.IdentityOf(of(raw).Spec.Workload.Manifests[0])
		if got != want || (err != nil) != (want == manifest.Identity{}) {
			t.Errorf("%s: %s, error %v, want %s", raw, got, err, want)
		}
	}
}

func TestCollected(t *testing.T) {
	got, err := manifest.Collected(of(service, slice))
	if err != nil || len(got) != 1 || got[0].Name != "s1" || got[0].AddressType != discoveryv1.AddressTypeIPv4 {
		t.Errorf("%v, error %v, want the slice alone", got, err)
	}
	if _, err := manifest.Collected(of(slice, broken)); err == nil || !strings.Contains(err.Error(), "manifest 1 of Work karmada-es-a/w") {
		t.Errorf("error %v, want one that names the manifest", err)
	}
	for suspended, want := range map[*bool]bool{nil: false, new(bool): false, new(true): true} {
		work := of(slice)
		work.Spec.SuspendDispatching = suspended
		if manifest.IsCollected(work) != want {
			t.Errorf("suspendDispatching %v: collected %v", suspended, !want)
		}
	}
}
