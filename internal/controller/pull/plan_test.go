package pull

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	clusterv1alpha1 "github.com/namesake-io/namesake/api/cluster/v1alpha1"
	networkingv1alpha1 "github.com/namesake-io/namesake/api/networking/v1alpha1"
	workv1alpha1 "github.com/namesake-io/namesake/api/work/v1alpha1"
	"github.com/namesake-io/namesake/internal/discovery"
	"github.com/namesake-io/namesake/internal/manifest"
)

var shopFoo = types.NamespacedName{Namespace: "shop", Name: "foo"}

// slice is a provider's own, with endpoints at addresses that start with a prefix.
func slice(name string, endpoints int, prefix string) *discoveryv1.EndpointSlice {
	out := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: name, Generation: 1, Labels: map[string]string{discoveryv1.LabelServiceName: "foo"},
		},
		AddressType: discoveryv1.AddressTypeIPv4,
	}
	for i := range endpoints {
		out.Endpoints = append(out.Endpoints, discoveryv1.Endpoint{Addresses: []string{fmt.Sprintf("%s.%d.%d", prefix, i/250, i%250)}})
	}
	return out
}

// planOf is the plan of shop/foo, which every cluster provides and consumes.
func planOf(clusters map[discovery.ClusterName][]*discoveryv1.EndpointSlice) *discovery.Plan {
	s := discovery.Snapshot{Service: shopFoo, MCS: &networkingv1alpha1.MultiClusterService{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "foo", UID: "uid"},
		Spec:       networkingv1alpha1.MultiClusterServiceSpec{Types: []networkingv1alpha1.ExposureType{networkingv1alpha1.ExposureTypeCrossCluster}},
	}}
	for name, own := range clusters {
		s.Clusters = append(s.Clusters, discovery.Cluster{Name: name, Slices: own, Authoritative: true})
	}
	return discovery.NewPlan(s)
}

// world is the hub and one pull member, m.
type world struct {
	t *testing.T
	m *memberState
	// works of the member by name, and the plan that they are for.
	works map[string]*workv1alpha1.Work
	st    *state
}

// newWorld has no Works.
func newWorld(t *testing.T) *world {
	return &world{t: t, m: &memberState{name: "m", agent: true}, works: map[string]*workv1alpha1.Work{}, st: &state{service: shopFoo, permanentID: "id-1"}}
}

// observe gives the plan what stands.
func (w *world) observe() {
	var works []*workv1alpha1.Work
	for _, work := range w.works {
		works = append(works, work)
	}
	slices.SortFunc(works, func(a, b *workv1alpha1.Work) int { return strings.Compare(a.Name, b.Name) })
	cluster := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "m"}, Spec: clusterv1alpha1.ClusterSpec{SyncMode: clusterv1alpha1.Pull}}
	cluster.Status.Conditions = []metav1.Condition{{Type: clusterv1alpha1.ConditionReady, Status: metav1.ConditionTrue, Reason: clusterv1alpha1.ReasonClusterReady}}
	w.m = observeMember(cluster, works)
}

// step plans and carries out one step, and returns what it was. At no time, if
// the writes are made one by one, does a slice of always leave.
func (w *world) step(p *discovery.Plan, always ...string) changes {
	w.t.Helper()
	w.st.plan = p
	w.observe()
	out, err := plan(w.st, w.m)
	if err != nil {
		w.t.Fatal(err)
	}
	check := func() {
		held := w.held()
		for _, name := range always {
			if !slices.Contains(held, name) {
				w.t.Errorf("%s is in no delivery for a moment", name)
			}
		}
	}
	for _, work := range out.Create {
		if w.works[work.Name] != nil {
			w.t.Errorf("Work %s is created and stands", work.Name)
		}
		w.put(work)
		check()
	}
	for _, work := range out.Update {
		w.put(work)
		check()
	}
	for _, work := range out.Delete {
		delete(w.works, work.Name)
		check()
	}
	return out
}

// put stores a Work as an API server does.
func (w *world) put(work *workv1alpha1.Work) {
	work.Generation++
	w.works[work.Name] = work
	if size := sizeOfWork(work); size > 512<<10 {
		w.t.Errorf("Work %s has %d bytes", work.Name, size)
	}
}

func sizeOfWork(work *workv1alpha1.Work) int {
	encoded, err := manifest.Encode(work)
	if err != nil {
		return 0
	}
	return len(encoded.Raw)
}

// answer is what the agent says of all deliveries.
func (w *world) answer(status metav1.ConditionStatus, reason string) {
	for _, work := range w.works {
		if manifest.IsDelivery(work) {
			work.Status.Conditions = []metav1.Condition{{
				Type: workv1alpha1.ConditionApplied, Status: status, Reason: reason, Message: "said", ObservedGeneration: work.Generation,
			}}
		}
	}
}

// held are the names of all slices in deliveries, sorted.
func (w *world) held() []string {
	var out []string
	for _, work := range w.works {
		if !manifest.IsDelivery(work) {
			continue
		}
		found, err := manifest.Collected(work)
		if err != nil {
			w.t.Fatal(err)
		}
		for _, s := range found {
			out = append(out, s.Name)
		}
	}
	slices.Sort(out)
	return out
}

// deliveries are how many there are.
func (w *world) deliveries() (n int) {
	for _, work := range w.works {
		if manifest.IsDelivery(work) {
			n++
		}
	}
	return n
}

// A service comes, changes and goes: one order, one delivery, and nothing to do
// once they are right.
func TestOneService(t *testing.T) {
	w := newWorld(t)
	two := map[discovery.ClusterName][]*discoveryv1.EndpointSlice{"a": {slice("s1", 2, "10.0")}, "m": {slice("own", 1, "10.1")}}
	out := w.step(planOf(two))
	if len(out.Create) != 2 || len(out.Update)+len(out.Delete) > 0 || out.Outcome != nil {
		t.Errorf("first step: %+v, want an order and a delivery, and no outcome", out)
	}
	if diff := cmp.Diff([]string{"a-s1"}, w.held()); diff != "" {
		t.Errorf("held (-want +got):\n%s", diff)
	}
	for _, work := range w.works {
		if manifest.ServiceOf(work) != shopFoo || work.Namespace != "karmada-es-m" || work.Labels[networkingv1alpha1.PermanentIDLabel] != "id-1" {
			t.Errorf("Work %s/%s with labels %v", work.Namespace, work.Name, work.Labels)
		}
		if manifest.IsOrder(work) == manifest.IsDelivery(work) || manifest.IsApplied(work) || manifest.IsCollected(work) {
			t.Errorf("Work %s is not just an order or a delivery", work.Name)
		}
	}
	if out = w.step(planOf(two)); len(out.Create)+len(out.Update)+len(out.Delete) > 0 || out.Outcome != nil {
		t.Errorf("at rest, unanswered: %+v", out)
	}
	w.answer(metav1.ConditionTrue, workv1alpha1.ReasonAppliedSuccessful)
	if out = w.step(planOf(two)); out.Outcome == nil || out.Outcome.Reason != "" {
		t.Errorf("answered: outcome %+v, want that it arrived", out.Outcome)
	}
	two["a"] = []*discoveryv1.EndpointSlice{slice("s1", 3, "10.0"), slice("s2", 1, "10.2")}
	if out = w.step(planOf(two), "a-s1"); len(out.Update) != 1 || len(out.Create)+len(out.Delete) > 0 || out.Outcome != nil {
		t.Errorf("after a change: %+v, want one update and no outcome", out)
	}
	w.answer(metav1.ConditionFalse, workv1alpha1.ReasonNamespaceNotFound)
	if out = w.step(planOf(two)); out.Outcome == nil || out.Outcome.Reason != networkingv1alpha1.ReasonNamespaceNotFound {
		t.Errorf("refused: outcome %+v", out.Outcome)
	}
	if out = w.step(discovery.NewPlan(discovery.Snapshot{Service: shopFoo})); len(out.Delete) != 2 || len(w.works) > 0 {
		t.Errorf("the wish is gone: %+v, and %d Works are left", out, len(w.works))
	}
}

// A provider that cannot be asked takes nothing out of a delivery.
func TestAbsenceProvesNothing(t *testing.T) {
	w := newWorld(t)
	w.step(planOf(map[discovery.ClusterName][]*discoveryv1.EndpointSlice{"a": {slice("s1", 2, "10.0")}, "m": nil}))
	s := discovery.Snapshot{Service: shopFoo, MCS: &networkingv1alpha1.MultiClusterService{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "foo", UID: "uid"},
		Spec:       networkingv1alpha1.MultiClusterServiceSpec{Types: []networkingv1alpha1.ExposureType{networkingv1alpha1.ExposureTypeCrossCluster}},
	}, Clusters: []discovery.Cluster{{Name: "a"}, {Name: "m"}}}
	if out := w.step(discovery.NewPlan(s), "a-s1"); len(out.Update)+len(out.Delete) > 0 {
		t.Errorf("changes %+v, want none", out)
	}
}

// Many endpoints take several deliveries, none too large, and no slice is in none
// while they are packed anew.
func TestSplit(t *testing.T) {
	w := newWorld(t)
	providers := map[discovery.ClusterName][]*discoveryv1.EndpointSlice{"m": nil}
	var want []string
	for i := range 12 {
		providers["a"] = append(providers["a"], slice(fmt.Sprintf("s%02d", i), 900, fmt.Sprintf("10.%d", i)))
		want = append(want, fmt.Sprintf("a-s%02d", i))
	}
	w.step(planOf(providers))
	if w.deliveries() < 2 {
		t.Errorf("%d deliveries, want several", w.deliveries())
	}
	if diff := cmp.Diff(want, w.held()); diff != "" {
		t.Errorf("held (-want +got):\n%s", diff)
	}
	if out := w.step(planOf(providers)); len(out.Create)+len(out.Update)+len(out.Delete) > 0 {
		t.Errorf("at rest: %d created, %d updated, %d deleted", len(out.Create), len(out.Update), len(out.Delete))
	}
	// All of them grow: the fullest deliveries must give some away.
	for i, s := range providers["a"] {
		for j := range s.Endpoints {
			s.Endpoints[j].Hostname = new(fmt.Sprintf("host-%d-%d-with-a-rather-long-name", i, j))
		}
	}
	w.step(planOf(providers), want...)
	if diff := cmp.Diff(want, w.held()); diff != "" {
		t.Errorf("held after growth (-want +got):\n%s", diff)
	}
	if out := w.step(planOf(providers)); len(out.Create)+len(out.Update)+len(out.Delete) > 0 {
		t.Errorf("at rest after growth: %d created, %d updated, %d deleted", len(out.Create), len(out.Update), len(out.Delete))
	}
	providers["a"] = providers["a"][:1]
	w.step(planOf(providers), "a-s00")
	if w.deliveries() != 1 || len(w.held()) != 1 {
		t.Errorf("%d deliveries with %v, want one of one", w.deliveries(), w.held())
	}
}

// A slice that gets another name stays until the agent says that its successor
// stands.
func TestRename(t *testing.T) {
	w := newWorld(t)
	own := map[discovery.ClusterName][]*discoveryv1.EndpointSlice{"a": {slice("b-c", 1, "10.0")}, "m": nil}
	w.step(planOf(own))
	w.answer(metav1.ConditionTrue, workv1alpha1.ReasonAppliedSuccessful)
	own["a-b"] = nil // now a-b-c may be a-b's c
	w.step(planOf(own), "a-b-c")
	if len(w.held()) != 2 {
		t.Fatalf("held %v, want both names", w.held())
	}
	if out := w.step(planOf(own), "a-b-c"); out.Outcome != nil {
		t.Errorf("outcome %+v while the old name waits", out.Outcome)
	}
	w.answer(metav1.ConditionTrue, workv1alpha1.ReasonAppliedSuccessful)
	w.step(planOf(own))
	if got := w.held(); len(got) != 1 || got[0] == "a-b-c" {
		t.Errorf("held %v, want the new name alone", got)
	}
}

// A delivery that was damaged is written anew, and one that is going is not counted on.
func TestDamage(t *testing.T) {
	w := newWorld(t)
	own := map[discovery.ClusterName][]*discoveryv1.EndpointSlice{"a": {slice("s1", 1, "10.0"), slice("s2", 1, "10.1")}, "m": nil}
	w.step(planOf(own))
	for name, damage := range map[string]func(*workv1alpha1.Work){
		"unreadable": func(work *workv1alpha1.Work) {
			work.Spec.Workload.Manifests[0].Raw = []byte(`{"kind":"EndpointSlice","metadata":7}`)
		},
		"emptied": func(work *workv1alpha1.Work) { work.Spec.Workload.Manifests = nil },
		"doubled": func(work *workv1alpha1.Work) {
			work.Spec.Workload.Manifests = append(work.Spec.Workload.Manifests, work.Spec.Workload.Manifests[0])
		},
		"going": func(work *workv1alpha1.Work) { work.DeletionTimestamp = new(metav1.Now()) },
	} {
		for _, work := range w.works {
			if manifest.IsDelivery(work) && work.DeletionTimestamp == nil {
				damage(work)
			}
		}
		w.step(planOf(own))
		out := w.step(planOf(own))
		if len(out.Create)+len(out.Update)+len(out.Delete) > 0 {
			t.Errorf("%s: not at rest: %+v", name, out)
		}
		for key, work := range w.works {
			if work.DeletionTimestamp != nil {
				delete(w.works, key)
			}
		}
		if diff := cmp.Diff([]string{"a-s1", "a-s2"}, w.held()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
