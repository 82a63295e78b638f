package e2e

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// driftLimit is how long an edit in a member may stand.
const driftLimit = 2 * time.Second

// drift is something that a person does to an object in a member.
type drift struct {
	name string
	// patch is merged into the object. Empty: the object is deleted.
	patch string
}

// C32: what somebody deletes or edits in a member is back within two seconds, and
// a dispatched slice is never taken for the consumer's own, whatever is left of
// its marks.
func TestDrift_C32(t *testing.T) {
	f := alone(t)
	s := f.newSite(t, nil)
	s.createService("foo")
	s.createMCS("foo")
	s.putSlice("member1", "foo", "hand")
	s.runPods("member2", "foo", 2)
	s.waitOwn("member2", "foo", 2)
	s.waitSpread(s.all("foo"))
	s.waitService("foo", f.names()...)
	s.waitReady("foo")

	sliceDrifts := []drift{
		{"deleted", ""},
		{"endpoints changed", `{"endpoints":[{"addresses":["198.18.255.1"]}]}`},
		{"endpoints gone", `{"endpoints":[]}`},
		{"ports changed", `{"ports":[{"name":"http","port":1,"protocol":"TCP"}]}`},
		{"managed-by changed", `{"metadata":{"labels":{"endpointslice.kubernetes.io/managed-by":"endpointslice-controller.k8s.io"}}}`},
		{"managed-by gone", `{"metadata":{"labels":{"endpointslice.kubernetes.io/managed-by":null}}}`},
		{"service-name changed", `{"metadata":{"labels":{"kubernetes.io/service-name":"other"}}}`},
		{"service-name gone", `{"metadata":{"labels":{"kubernetes.io/service-name":null}}}`},
		{"provision-cluster changed", `{"metadata":{"annotations":{"endpointslice.karmada.io/provision-cluster":"member3"}}}`},
		{"provision-cluster gone", `{"metadata":{"annotations":{"endpointslice.karmada.io/provision-cluster":null}}}`},
		{"every label gone", `{"metadata":{"labels":null}}`},
		{"every annotation gone", `{"metadata":{"annotations":null}}`},
		{"every label and annotation gone", `{"metadata":{"labels":null,"annotations":null}}`},
	}
	h := s.watch(f.members["member3"], &discoveryv1.EndpointSliceList{})
	for _, target := range dispatchedNames(s, "member3") {
		for _, d := range sliceDrifts {
			undo(s, h, &discoveryv1.EndpointSlice{ObjectMeta: s.meta(target)}, d)
		}
	}

	serviceDrifts := []drift{
		{"deleted", ""},
		{"ports changed", `{"spec":{"ports":[{"name":"http","port":81,"protocol":"TCP","targetPort":81}]}}`},
		{"selector changed", `{"spec":{"selector":{"app":"other"}}}`},
		{"label of the system gone", `{"metadata":{"labels":{"karmada.io/managed":null}}}`},
		{"work annotations gone", `{"metadata":{"annotations":{"work.karmada.io/name":null,"work.karmada.io/namespace":null}}}`},
		{"every label and annotation gone", `{"metadata":{"labels":null,"annotations":null}}`},
	}
	h = s.watch(f.members["member3"], &corev1.ServiceList{})
	for _, d := range serviceDrifts {
		undo(s, h, &corev1.Service{ObjectMeta: s.meta("foo")}, d)
	}

	s.waitSpread(s.all("foo"))
	s.waitCollected(s.all("foo"))
	s.waitReady("foo")
}

// dispatchedNames returns the names of the slices with endpoints that a member has
// from others.
func dispatchedNames(s *site, member string) []string {
	s.t.Helper()
	_, dispatched, err := s.slicesIn(s.t.Context(), member, "foo")
	s.must(err)
	maps.DeleteFunc(dispatched, func(_ string, slice *discoveryv1.EndpointSlice) bool { return len(slice.Endpoints) == 0 })
	return slices.Sorted(maps.Keys(dispatched))
}

// undo does something to an object and measures until it is as it was.
func undo(s *site, h *history, obj client.Object, d drift) {
	s.t.Helper()
	ctx, c := s.t.Context(), s.members["member3"]
	s.must(c.Get(ctx, client.ObjectKeyFromObject(obj), obj))
	before, uid, version := written(obj), obj.GetUID(), obj.GetResourceVersion()

	start := time.Now()
	if d.patch == "" {
		s.must(c.Delete(ctx, obj))
	} else {
		s.must(c.Patch(ctx, obj, client.RawPatch(types.MergePatchType, []byte(d.patch))))
		if version == obj.GetResourceVersion() {
			s.t.Fatalf("%s: the edit changed nothing", d.name)
		}
		version = obj.GetResourceVersion()
	}
	at := h.waitState(patience, d.name, func(state map[string]client.Object) error {
		is := state[obj.GetName()]
		switch {
		case is == nil:
			return errors.New("it is gone")
		case is.GetUID() == uid && !newer(is.GetResourceVersion(), version):
			return errors.New("nothing was written since")
		}
		if diff := cmp.Diff(before, written(is)); diff != "" {
			return fmt.Errorf("it differs (- before, + now):\n%s", diff)
		}
		return nil
	})
	took := at.Sub(start)
	s.t.Logf("%s %s: back after %s", obj.GetName(), d.name, took.Round(time.Millisecond))
	if took > driftLimit {
		s.t.Errorf("%s %s: back after %s, more than %s", obj.GetName(), d.name, took, driftLimit)
	}
}

// newer says whether one resourceVersion is later than another.
func newer(a, b string) bool {
	left, errLeft := strconv.ParseUint(a, 10, 64)
	right, errRight := strconv.ParseUint(b, 10, 64)
	return errLeft == nil && errRight == nil && left > right
}

// written is what the hub writes of an object.
func written(obj client.Object) any {
	switch o := obj.(type) {
	case *discoveryv1.EndpointSlice:
		return contentOf(o)
	case *corev1.Service:
		return struct {
			Labels, Annotations, Selector map[string]string
			Ports                         []string
		}{o.Labels, o.Annotations, o.Spec.Selector, servicePorts(o)}
	}
	return nil
}

// A whole member wiped by hand is as it was, within seconds.
func TestDrift_everything_deleted_C32(t *testing.T) {
	f := alone(t)
	s := f.newSite(t, nil)
	var spreads []spread
	for i := range 5 {
		name := fmt.Sprintf("svc%d", i)
		s.createService(name, selectorless)
		s.createMCS(name)
		for _, member := range f.names() {
			s.putSlice(member, name, name+"-hand")
		}
		spreads = append(spreads, s.all(name))
	}
	s.waitSpread(spreads...)

	ctx := t.Context()
	s.must(f.members["member2"].DeleteAllOf(ctx, &discoveryv1.EndpointSlice{}, client.InNamespace(s.ns),
		client.MatchingLabels{discoveryv1.LabelManagedBy: "endpointslice-dispatch-controller.karmada.io"}))
	s.must(f.members["member2"].DeleteAllOf(ctx, &corev1.Service{}, client.InNamespace(s.ns)))
	start := time.Now()
	within(t, driftLimit, "everything is back", func(ctx context.Context) error {
		errs := []error{s.checkSpread(ctx, spreads...)}
		for _, sp := range spreads {
			errs = append(errs, s.checkService(ctx, sp.service, f.names()...))
		}
		return errors.Join(errs...)
	})
	t.Logf("10 slices and 5 Services back after %s", time.Since(start).Round(time.Millisecond))
	for _, member := range f.names() {
		for _, name := range dispatchedNames(s, member) {
			if strings.Count(name, "member") > 1 {
				t.Errorf("%s has slice %s, which went round", member, name)
			}
		}
	}
}
