package member

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	networkingv1alpha1 "github.com/namesake-io/namesake/api/networking/v1alpha1"
	"github.com/namesake-io/namesake/internal/discovery"
)

var (
	foo = types.NamespacedName{Namespace: "shop", Name: "foo"}
	bar = types.NamespacedName{Namespace: "shop", Name: "bar"}
)

// slice is one of foo with an endpoint, at a version.
func slice(name, version string, edits ...func(*discoveryv1.EndpointSlice)) *discoveryv1.EndpointSlice {
	s := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: name, UID: types.UID("uid-" + name), ResourceVersion: version, Generation: 1,
			Labels:        map[string]string{discoveryv1.LabelServiceName: "foo", "example.com/label": "kept"},
			ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "endpointslice-controller"}},
		},
		AddressType: discoveryv1.AddressTypeIPv4,
		Endpoints:   []discoveryv1.Endpoint{{Addresses: []string{"10.0.0.1"}}},
		Ports:       []discoveryv1.EndpointPort{{Port: new(int32)}},
	}
	for _, edit := range edits {
		edit(s)
	}
	return s
}

// dispatched makes a slice one that a hub put there; unmarked edits the labels
// and annotations of such a one away.
func dispatched(s *discoveryv1.EndpointSlice) {
	s.Labels[discoveryv1.LabelManagedBy] = networkingv1alpha1.DispatchedManagedBy
	s.Annotations = map[string]string{networkingv1alpha1.ProvisionClusterAnnotation: "b"}
	s.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: discovery.FieldManager}}
}

func unmarked(s *discoveryv1.EndpointSlice) { s.Labels, s.Annotations = nil, nil }

func ofBar(s *discoveryv1.EndpointSlice) { s.Labels[discoveryv1.LabelServiceName] = "bar" }

func madeAnew(s *discoveryv1.EndpointSlice) { s.UID += "-new" }

// recorded is a store that notes what it tells.
type recorded struct {
	*SliceStore
	told   []string
	synced int
	// listed is what the member answers when it is asked for one service.
	listed []discoveryv1.EndpointSlice
	asked  int
	// since is the version that it was asked for last.
	since string
	err   error
}

func newRecorded() *recorded {
	r := &recorded{SliceStore: newSliceStore(newContents())}
	r.SliceStore.synced = func() { r.synced++ }
	r.SliceStore.changed = func(old, current *discoveryv1.EndpointSlice) {
		r.told = append(r.told, version(old)+" → "+version(current))
	}
	r.SliceStore.list = func(_ context.Context, _ types.NamespacedName, version string) ([]discoveryv1.EndpointSlice, error) {
		r.asked++
		r.since = version
		return r.listed, r.err
	}
	return r
}

// version names a slice as the tests compare it: with how many endpoints.
func version(s *discoveryv1.EndpointSlice) string {
	if s == nil {
		return "none"
	}
	return fmt.Sprintf("%s@%s", s.Name, s.ResourceVersion)
}

func versions(list []*discoveryv1.EndpointSlice) []string {
	var out []string
	for _, s := range list {
		out = append(out, version(s))
	}
	slices.Sort(out)
	return out
}

func (r *recorded) update(t *testing.T, list ...*discoveryv1.EndpointSlice) {
	t.Helper()
	for _, s := range list {
		if err := r.Update(s); err != nil {
			t.Fatal(err)
		}
	}
}

func (r *recorded) replace(t *testing.T, at string, list ...*discoveryv1.EndpointSlice) {
	t.Helper()
	var items []any
	for _, s := range list {
		items = append(items, s)
	}
	if err := r.Replace(items, at); err != nil {
		t.Fatal(err)
	}
}

func (r *recorded) remove(t *testing.T, s *discoveryv1.EndpointSlice) {
	t.Helper()
	if err := r.Delete(s); err != nil {
		t.Fatal(err)
	}
}

// nativeOf are foo's own slices.
func (r *recorded) nativeOf(t *testing.T, service types.NamespacedName) []string {
	t.Helper()
	found, err := r.Native(t.Context(), service)
	if err != nil {
		t.Fatal(err)
	}
	return versions(found)
}

func expect[T any](t *testing.T, what string, want, got T) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func TestSlicesOfNobodyKeepNoEndpoints(t *testing.T) {
	r := newRecorded()
	in := slice("s1", "1")
	before := in.DeepCopy()
	r.update(t, in, slice("member2-x", "2", dispatched))

	trimmed := r.entries[types.NamespacedName{Namespace: "shop", Name: "s1"}].slice
	expect(t, "kept of a slice that nobody wants", &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: "s1", UID: "uid-s1", ResourceVersion: "1", Generation: 1,
			Labels: map[string]string{discoveryv1.LabelServiceName: "foo"},
		},
	}, trimmed)
	got := r.Dispatched(foo, nil)
	if len(got) != 1 || len(got[0].Endpoints) != 1 || got[0].ManagedFields[0].Manager != discovery.FieldManager {
		t.Errorf("dispatched %+v, want it whole, with the mark of its manager", got)
	}
	expect(t, "the reflector's object", before, in)
}

func TestNative(t *testing.T) {
	r := newRecorded()
	r.replace(t, "5", slice("s1", "1"), slice("s2", "2"), slice("other", "3", ofBar), slice("member2-x", "4", dispatched))
	r.listed = []discoveryv1.EndpointSlice{*slice("s1", "1"), *slice("s2", "2"), *slice("member2-x", "4", dispatched), *slice("unseen", "6")}

	expect(t, "own slices", []string{"s1@1", "s2@2"}, r.nativeOf(t, foo))
	expect(t, "endpoints", 1, len(r.entries[types.NamespacedName{Namespace: "shop", Name: "s1"}].slice.Endpoints))
	expect(t, "requests", 1, r.asked)
	expect(t, "version that is recent enough", "2", r.since)

	r.update(t, slice("s1", "7"), slice("s3", "8"))
	expect(t, "own slices after changes", []string{"s1@7", "s2@2", "s3@8"}, r.nativeOf(t, foo))
	expect(t, "requests: those that are wanted come whole", 1, r.asked)

	r.Forget(foo)
	expect(t, "endpoints of a service that nobody wants any more", 0, len(r.entries[types.NamespacedName{Namespace: "shop", Name: "s1"}].slice.Endpoints))
	r.listed = []discoveryv1.EndpointSlice{*slice("s1", "7"), *slice("s2", "2"), *slice("s3", "8")}
	expect(t, "own slices wanted again", []string{"s1@7", "s2@2", "s3@8"}, r.nativeOf(t, foo))
	expect(t, "requests", 2, r.asked)
}

// A list that is behind what is known does not bring endpoints back.
func TestNativeWhileChanging(t *testing.T) {
	r := newRecorded()
	r.replace(t, "5", slice("s1", "4"))
	r.listed = []discoveryv1.EndpointSlice{*slice("s1", "3")}
	if _, err := r.Native(t.Context(), foo); !errors.Is(err, errSlicesChanging) {
		t.Errorf("error %v, want that the slices are changing", err)
	}
	r.update(t, slice("s1", "6"))
	expect(t, "next try", []string{"s1@6"}, r.nativeOf(t, foo))

	r = newRecorded()
	r.replace(t, "5", slice("s1", "4"))
	r.err = ErrUnreachable
	if _, err := r.Native(t.Context(), foo); !errors.Is(err, ErrUnreachable) {
		t.Errorf("error %v, want that the member cannot be reached", err)
	}
}

// The index follows the label (C15), and the marks of a dispatched slice follow
// the field manager when everything else is edited away (C32).
func TestMoves(t *testing.T) {
	r := newRecorded()
	r.replace(t, "3", slice("s1", "1"), slice("member2-x", "2", dispatched))
	r.listed = []discoveryv1.EndpointSlice{*slice("s1", "1")}
	expect(t, "foo's", []string{"s1@1"}, r.nativeOf(t, foo))

	r.update(t, slice("s1", "4", ofBar))
	r.listed = []discoveryv1.EndpointSlice{*slice("s1", "4", ofBar)}
	expect(t, "foo's after the label changed", nil, r.nativeOf(t, foo))
	expect(t, "bar's after the label changed", []string{"s1@4"}, r.nativeOf(t, bar))

	r.update(t, slice("s1", "5", func(s *discoveryv1.EndpointSlice) { s.Labels = nil }))
	expect(t, "bar's after the label went", nil, r.nativeOf(t, bar))

	r.update(t, slice("member2-x", "6", dispatched, unmarked))
	expect(t, "foo's: what a hub put there is never its own", nil, r.nativeOf(t, foo))
	expect(t, "dispatched, by label", nil, versions(r.Dispatched(foo, nil)))
	expect(t, "dispatched, by name", []string{"member2-x@6"}, versions(r.Dispatched(foo, []discovery.SliceName{"member2-x", "s1"})))
	if r.IsNative(types.NamespacedName{Namespace: "shop", Name: "member2-x"}) || !r.IsNative(types.NamespacedName{Namespace: "shop", Name: "s1"}) {
		t.Error("IsNative: want s1 only")
	}
	expect(t, "services of dispatched slices", []types.NamespacedName{{Namespace: "shop"}}, r.DispatchedServices())
	expect(t, "events", []string{
		"s1@1 → s1@4", "s1@4 → s1@5", "member2-x@2 → member2-x@6",
	}, r.told)
}

// What we wrote is visible at once, and the watch that lags behind it changes and
// tells nothing.
func TestOwnWrites(t *testing.T) {
	x := func(version string, edits ...func(*discoveryv1.EndpointSlice)) *discoveryv1.EndpointSlice {
		return slice("member2-x", version, append([]func(*discoveryv1.EndpointSlice){dispatched}, edits...)...)
	}
	for title, tc := range map[string]struct {
		do       func(*testing.T, *recorded)
		want     []string
		wantTold []string
	}{
		"made": {
			do:   func(_ *testing.T, r *recorded) { r.Wrote(x("5")) },
			want: []string{"member2-x@5"},
		},
		"made, then told": {
			do:   func(t *testing.T, r *recorded) { r.Wrote(x("5")); r.update(t, x("5")) },
			want: []string{"member2-x@5"},
		},
		"changed twice, then told of the first": {
			do:   func(t *testing.T, r *recorded) { r.Wrote(x("5")); r.Wrote(x("7")); r.update(t, x("5")) },
			want: []string{"member2-x@7"},
		},
		"changed, then by somebody else": {
			do:   func(t *testing.T, r *recorded) { r.Wrote(x("5")); r.update(t, x("8")) },
			want: []string{"member2-x@8"}, wantTold: []string{"member2-x@5 → member2-x@8"},
		},
		"versions are numbers": {
			do:   func(t *testing.T, r *recorded) { r.Wrote(x("10")); r.update(t, x("9")) },
			want: []string{"member2-x@10"},
		},
		"deleted": {
			do: func(_ *testing.T, r *recorded) { r.Wrote(x("5")); r.Deleted(x("5")) },
		},
		"deleted, then told of how it was": {
			do: func(t *testing.T, r *recorded) { r.Wrote(x("5")); r.Deleted(x("5")); r.update(t, x("4"), x("5")) },
		},
		"deleted, then told": {
			do: func(t *testing.T, r *recorded) { r.Wrote(x("5")); r.Deleted(x("5")); r.remove(t, x("6")) },
		},
		"deleted, made anew by somebody": {
			do: func(t *testing.T, r *recorded) {
				r.Wrote(x("5"))
				r.Deleted(x("5"))
				r.remove(t, x("6"))
				r.update(t, x("7", madeAnew))
			},
			want: []string{"member2-x@7"}, wantTold: []string{"none → member2-x@7"},
		},
		"deleted and made anew by us, then told of the deletion": {
			do: func(t *testing.T, r *recorded) {
				r.Wrote(x("5"))
				r.Deleted(x("5"))
				r.Wrote(x("7", madeAnew))
				r.remove(t, x("6"))
			},
			want: []string{"member2-x@7"},
		},
		"another one of that name is not what we deleted": {
			do:   func(_ *testing.T, r *recorded) { r.Wrote(x("7", madeAnew)); r.Deleted(x("5")) },
			want: []string{"member2-x@7"},
		},
		"deleted by somebody": {
			do:       func(t *testing.T, r *recorded) { r.Wrote(x("5")); r.remove(t, x("6")) },
			wantTold: []string{"member2-x@5 → none"},
		},
		"of what is not known, nothing is told to be gone": {
			do: func(t *testing.T, r *recorded) { r.remove(t, x("6")) },
		},
		"a list that was made before the write": {
			do:   func(t *testing.T, r *recorded) { r.Wrote(x("5")); r.replace(t, "4") },
			want: []string{"member2-x@5"},
		},
		"a list that was made after it: it has gone": {
			do:       func(t *testing.T, r *recorded) { r.replace(t, "1"); r.Wrote(x("5")); r.replace(t, "6") },
			wantTold: []string{"member2-x@5 → none"},
		},
		"a list that was made before the deletion": {
			do: func(t *testing.T, r *recorded) { r.Wrote(x("5")); r.Deleted(x("5")); r.replace(t, "5", x("5")) },
		},
		"a list ends the memory of deletions": {
			do: func(t *testing.T, r *recorded) {
				r.Wrote(x("5"))
				r.Deleted(x("5"))
				r.replace(t, "9")
				r.update(t, x("5")) // a server restored from an earlier time
			},
			want: []string{"member2-x@5"}, wantTold: []string{"none → member2-x@5"},
		},
	} {
		t.Run(title, func(t *testing.T) {
			r := newRecorded()
			tc.do(t, r)
			expect(t, "dispatched", tc.want, versions(r.Dispatched(foo, nil)))
			expect(t, "told", tc.wantTold, r.told)
		})
	}
}

// A full list tells the differences alone, and the first one that it has come.
func TestReplace(t *testing.T) {
	r := newRecorded()
	if r.Synced() {
		t.Error("synced before any list")
	}
	r.update(t, slice("early", "1"))
	if r.Synced() {
		t.Error("synced by an event")
	}
	r.replace(t, "5", slice("s1", "2"), slice("s2", "3"), slice("early", "1"))
	r.replace(t, "9", slice("s1", "2"), slice("s2", "7"), slice("s3", "8"))
	if !r.Synced() || r.synced != 1 {
		t.Errorf("synced %v, told %d times, want once", r.Synced(), r.synced)
	}
	expect(t, "told", []string{"none → early@1", "s2@3 → s2@7", "none → s3@8", "early@1 → none"}, r.told)

	r.told = nil
	r.replace(t, "9", slice("s1", "2"), slice("s2", "7"), slice("s3", "8"))
	expect(t, "told of the same", nil, r.told)
	if err := r.Replace([]any{"x"}, "9"); err == nil {
		t.Error("a list of words was taken for slices")
	}
}

// What a reflector gathers for the full list is trimmed at once. Who wants a service
// may have changed until the list is whole.
func TestGathered(t *testing.T) {
	r := newRecorded()
	r.nativeOf(t, foo)
	var gathered []any
	for _, s := range []*discoveryv1.EndpointSlice{slice("s1", "1"), slice("other", "2", ofBar), slice("member2-x", "3", dispatched)} {
		item, err := r.Transformer()(s)
		if err != nil {
			t.Fatal(err)
		}
		gathered = append(gathered, item)
	}
	var endpoints []int
	for _, item := range gathered {
		if s, ok := item.(*discoveryv1.EndpointSlice); ok {
			endpoints = append(endpoints, len(s.Endpoints))
		}
	}
	expect(t, "endpoints gathered", []int{1, 0, 1}, endpoints)

	r.Forget(foo)
	bar := types.NamespacedName{Namespace: "shop", Name: "bar"}
	r.nativeOf(t, bar)
	if err := r.Replace(gathered, "5"); err != nil {
		t.Fatal(err)
	}
	expect(t, "kept", Counts{Native: 2, Dispatched: 1, DispatchedEndpoints: 1}, r.Counts())
	r.listed = []discoveryv1.EndpointSlice{*slice("other", "2", ofBar)}
	expect(t, "own slices of the service that is wanted since", []string{"other@2"}, r.nativeOf(t, bar))
	expect(t, "requests", 1, r.asked)
	if _, err := r.Transformer()("x"); err == nil {
		t.Error("a word was gathered as a slice")
	}
}

func TestCounts(t *testing.T) {
	r := newRecorded()
	r.replace(t, "5", slice("s1", "1"), slice("s2", "2", ofBar), slice("member2-x", "4", dispatched))
	r.listed = []discoveryv1.EndpointSlice{*slice("s1", "1")}
	r.nativeOf(t, foo)
	expect(t, "counts", Counts{Native: 2, Wanted: 1, Dispatched: 1, WantedEndpoints: 1, DispatchedEndpoints: 1}, r.Counts())
}

// Slices of a service that is expected to be asked for keep their endpoints from
// the first list on, so that nothing is read twice.
func TestSliceStoreExpected(t *testing.T) {
	s := newSliceStore(newContents())
	expected := map[types.NamespacedName]bool{{Namespace: "shop", Name: "foo"}: true}
	s.expected = func(service types.NamespacedName) bool { return expected[service] }
	s.changed, s.synced = func(_, _ *discoveryv1.EndpointSlice) {}, func() {}
	lists := 0
	s.list = func(context.Context, types.NamespacedName, string) ([]discoveryv1.EndpointSlice, error) {
		lists++
		return nil, nil
	}
	slice := func(name string) *discoveryv1.EndpointSlice {
		return &discoveryv1.EndpointSlice{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: "shop", Name: name + "-a", UID: types.UID(name), ResourceVersion: "1",
				Labels: map[string]string{discoveryv1.LabelServiceName: name},
			},
			AddressType: discoveryv1.AddressTypeIPv4,
			Endpoints:   []discoveryv1.Endpoint{{Addresses: []string{"198.18.0.1"}}},
		}
	}
	if err := s.Replace([]any{slice("foo"), slice("bar")}, "2"); err != nil {
		t.Fatal(err)
	}
	foo := types.NamespacedName{Namespace: "shop", Name: "foo"}
	found, err := s.Native(t.Context(), foo)
	if err != nil || len(found) != 1 || len(found[0].Endpoints) != 1 || lists != 0 {
		t.Errorf("foo: %v, %v after %d lists; want its endpoints without one", found, err, lists)
	}
	if c := s.Counts(); c.Wanted != 1 || c.Native != 2 {
		t.Errorf("the store keeps the endpoints of %d of %d slices, want 1 of 2", c.Wanted, c.Native)
	}
	s.Forget(foo)
	if c := s.Counts(); c.Wanted != 0 {
		t.Error("it was forgotten, though expected, and is kept")
	}
	delete(expected, foo)
	s.Forget(foo)
	if len(s.wanted) != 0 {
		t.Errorf("it remembers that nobody wants %v", s.wanted)
	}
}
