package binding

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	networkingv1alpha1 "github.com/namesake-io/namesake/api/networking/v1alpha1"
	workv1alpha1 "github.com/namesake-io/namesake/api/work/v1alpha1"
	workv1alpha2 "github.com/namesake-io/namesake/api/work/v1alpha2"
	"github.com/namesake-io/namesake/internal/discovery"
	"github.com/namesake-io/namesake/internal/manifest"
)

var fooID = manifest.Identity{Kind: "Service", Namespace: "shop", Name: "foo"}

// hubService is the template as the hub's API server gives it.
const hubService = `
apiVersion: v1
kind: Service
metadata:
  namespace: shop
  name: foo
  uid: hub-uid
  resourceVersion: "12"
  generation: 3
  creationTimestamp: "2026-08-01T12:00:00Z"
  labels: {app: foo}
  annotations:
    example.com/note: kept
    kubectl.kubernetes.io/last-applied-configuration: '{}'
  managedFields: [{manager: kubectl}]
spec:
  type: NodePort
  clusterIP: 10.96.0.7
  clusterIPs: [10.96.0.7]
  ipFamilies: [IPv4]
  ipFamilyPolicy: SingleStack
  healthCheckNodePort: 31000
  fieldOfTomorrow: {x: 1}
  ports:
  - {name: http, port: 80, protocol: TCP, targetPort: 8080, nodePort: 30080}
  - {name: admin, port: 9090, protocol: TCP, targetPort: admin, nodePort: 30090}
status: {loadBalancer: {}}
`

func object(t *testing.T, text string, edits ...func(map[string]any)) *unstructured.Unstructured {
	t.Helper()
	data, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	u := &unstructured.Unstructured{}
	if err := u.UnmarshalJSON(data); err != nil {
		t.Fatal(err)
	}
	for _, edit := range edits {
		edit(u.Object)
	}
	return u
}

func spec(edit func(map[string]any)) func(map[string]any) {
	return func(o map[string]any) {
		s, _ := o["spec"].(map[string]any)
		edit(s)
	}
}

// bound is a binding to some clusters, all of them joined.
func bound(t *testing.T, clusters ...string) *state {
	t.Helper()
	st := &state{
		binding: &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: "foo-service", Finalizers: []string{workv1alpha2.Finalizer},
		}},
		id: fooID, resource: object(t, hubService), joined: map[string]bool{},
	}
	for _, c := range clusters {
		st.binding.Spec.Clusters = append(st.binding.Spec.Clusters, workv1alpha2.TargetCluster{Name: c})
		st.joined[c] = true
	}
	return st
}

// standing is the Work that the plan makes for a cluster.
func standing(t *testing.T, cluster string, edits ...func(*workv1alpha1.Work)) *workv1alpha1.Work {
	t.Helper()
	p, err := plan(bound(t, cluster))
	if err != nil {
		t.Fatal(err)
	}
	work := p.Create[0]
	for _, edit := range edits {
		edit(work)
	}
	return work
}

func called(name string) func(*workv1alpha1.Work) {
	return func(w *workv1alpha1.Work) { w.Name = name }
}

func going(w *workv1alpha1.Work) { w.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)} }

func outdated(w *workv1alpha1.Work) {
	w.Spec.Workload.Manifests[0].Raw = []byte(`{"apiVersion":"v1","kind":"Service","metadata":{"namespace":"shop","name":"foo"}}`)
}

// verbs says what a plan does.
func verbs(p changes) []string {
	var out []string
	for verb, works := range map[string][]*workv1alpha1.Work{"create": p.Create, "update": p.Update, "delete": p.Delete} {
		for _, w := range works {
			out = append(out, verb+" "+w.Namespace+"/"+w.Name)
		}
	}
	if p.Prepare {
		out = append(out, "prepare")
	}
	if p.Release {
		out = append(out, "release")
	}
	if p.Again == markInterval {
		out = append(out, "look again")
	}
	slices.Sort(out)
	return out
}

func TestPlan(t *testing.T) {
	foo := manifest.WorkName(fooID)
	ofWish := func(st *state) {
		st.binding.Labels = map[string]string{
			workv1alpha2.ManagedByLabel:         networkingv1alpha1.ClaimedByMultiClusterService,
			networkingv1alpha1.PermanentIDLabel: "id",
		}
	}
	marked := func(st *state) { st.resource.SetLabels(map[string]string{networkingv1alpha1.PermanentIDLabel: "id"}) }
	leaving := func(st *state) { st.binding.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)} }
	for title, tc := range map[string]struct {
		clusters []string
		edit     func(*state)
		works    []*workv1alpha1.Work
		want     []string
	}{
		"one Work in each target": {
			clusters: []string{"b", "a"},
			want:     []string{"create karmada-es-a/" + foo, "create karmada-es-b/" + foo},
		},
		"not before the Service shows the mark that it was given for this binding": {
			clusters: []string{"a"}, edit: ofWish, want: []string{"look again"},
		},
		"but then": {
			clusters: []string{"a"}, edit: func(st *state) { ofWish(st); marked(st) },
			want: []string{"create karmada-es-a/" + foo},
		},
		"a mark that is lost later hinders nothing": {
			clusters: []string{"a", "b"}, edit: ofWish, works: []*workv1alpha1.Work{standing(t, "a", outdated)},
			want: []string{"create karmada-es-b/" + foo, "update karmada-es-a/" + foo},
		},
		"a binding that somebody else made without our finalizer gets it": {
			clusters: []string{"a"}, edit: func(st *state) { st.binding.Finalizers = []string{"example.com/theirs"} },
			want: []string{"create karmada-es-a/" + foo, "prepare"},
		},
		"what stands right is left alone": {
			clusters: []string{"a"}, works: []*workv1alpha1.Work{standing(t, "a")},
		},
		"what stands wrong is updated": {
			clusters: []string{"a"}, works: []*workv1alpha1.Work{standing(t, "a", outdated)},
			want: []string{"update karmada-es-a/" + foo},
		},
		"labels of others stay, so no write": {
			clusters: []string{"a"}, works: []*workv1alpha1.Work{standing(t, "a", func(w *workv1alpha1.Work) {
				w.Labels = map[string]string{"example.com/x": "y"}
			})},
		},
		"a cluster that is no target any more loses it (C33)": {
			clusters: []string{"a"}, works: []*workv1alpha1.Work{standing(t, "a"), standing(t, "b")},
			want: []string{"delete karmada-es-b/" + foo},
		},
		"a cluster that has not joined gets none": {
			clusters: []string{"a"}, edit: func(st *state) { st.joined = map[string]bool{} },
		},
		"a cluster that leaves loses it": {
			clusters: []string{"a"}, edit: func(st *state) { st.joined["a"] = false },
			works: []*workv1alpha1.Work{standing(t, "a")}, want: []string{"delete karmada-es-a/" + foo},
		},
		"the union of all claims": {
			clusters: []string{"a"},
			edit: func(st *state) {
				st.joined["b"], st.joined["c"] = true, true
				st.binding.Spec.RequiredBy = []workv1alpha2.BindingSnapshot{
					{Name: "x", Clusters: []workv1alpha2.TargetCluster{{Name: "b"}, {Name: "a"}}},
					{Name: "y", Clusters: []workv1alpha2.TargetCluster{{Name: "c"}}},
				}
			},
			want: []string{"create karmada-es-a/" + foo, "create karmada-es-b/" + foo, "create karmada-es-c/" + foo},
		},
		"the resource is gone: so is what was made of it": {
			clusters: []string{"a"}, edit: func(st *state) { st.resource = nil },
			works: []*workv1alpha1.Work{standing(t, "a")}, want: []string{"delete karmada-es-a/" + foo},
		},
		"the wish cannot be read: nothing is changed": {
			clusters: []string{"a"}, edit: func(st *state) { st.hold = true },
			works: []*workv1alpha1.Work{standing(t, "b"), standing(t, "a", outdated)},
		},
		"the wish cannot be read, but the binding goes": {
			clusters: []string{"a"}, edit: func(st *state) { st.hold = true; leaving(st) },
			works: []*workv1alpha1.Work{standing(t, "a")}, want: []string{"delete karmada-es-a/" + foo},
		},
		"a binding that goes takes its Works first": {
			clusters: []string{"a"}, edit: leaving,
			works: []*workv1alpha1.Work{standing(t, "a")}, want: []string{"delete karmada-es-a/" + foo},
		},
		"and waits for them": {
			clusters: []string{"a"}, edit: leaving, works: []*workv1alpha1.Work{standing(t, "a", going)},
		},
		"but not for those in a cluster that does not answer": {
			clusters: []string{"a"}, edit: func(st *state) { leaving(st); st.silent = map[string]bool{"a": true} },
			works: []*workv1alpha1.Work{standing(t, "a", going)}, want: []string{"release"},
		},
		"which must be told first": {
			clusters: []string{"a"}, edit: func(st *state) { leaving(st); st.silent = map[string]bool{"a": true} },
			works: []*workv1alpha1.Work{standing(t, "a")}, want: []string{"delete karmada-es-a/" + foo},
		},
		"and then goes itself": {
			clusters: []string{"a"}, edit: leaving, want: []string{"release"},
		},
		"a Work of the resource under another name is taken over": {
			clusters: []string{"a"}, works: []*workv1alpha1.Work{standing(t, "a", called("foo-karmada"), outdated)},
			want: []string{"update karmada-es-a/foo-karmada"},
		},
		"a second Work for the resource goes": {
			clusters: []string{"a"}, works: []*workv1alpha1.Work{standing(t, "a", called("z")), standing(t, "a", called("b"))},
			want: []string{"delete karmada-es-a/z"},
		},
		"a Work that is going is waited for": {
			clusters: []string{"a"}, works: []*workv1alpha1.Work{standing(t, "a", going, outdated)},
		},
		"of two Works the one that stays is kept": {
			clusters: []string{"a"}, works: []*workv1alpha1.Work{standing(t, "a", called("b"), going), standing(t, "a", called("z"))},
		},
	} {
		t.Run(title, func(t *testing.T) {
			st := bound(t, tc.clusters...)
			if tc.edit != nil {
				tc.edit(st)
			}
			st.works = tc.works
			before := clone(st)
			first, err := plan(st)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, verbs(first)); diff != "" {
				t.Errorf("changes (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(before, clone(st)); diff != "" {
				t.Errorf("the plan changed what it reads:\n%s", diff)
			}
			slices.Reverse(st.works)
			slices.Reverse(st.binding.Spec.Clusters)
			second, err := plan(st)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(first, second); diff != "" {
				t.Errorf("planned from the same in another order (-first +second):\n%s", diff)
			}
		})
	}
}

// cloned is a copy of what a plan reads.
type cloned struct {
	Binding  *workv1alpha2.ResourceBinding
	Resource *unstructured.Unstructured
	Works    []*workv1alpha1.Work
}

func clone(st *state) cloned {
	out := cloned{Binding: st.binding.DeepCopy()}
	if st.resource != nil {
		out.Resource = st.resource.DeepCopy()
	}
	for _, w := range st.works {
		out.Works = append(out.Works, w.DeepCopy())
	}
	return out
}

// What a member is sent: nothing that belongs to the hub, and nothing that each
// cluster assigns itself (C16, C17).
func TestManifest(t *testing.T) {
	const sent = `
apiVersion: v1
kind: Service
metadata:
  namespace: shop
  name: foo
  labels: {app: foo}
  annotations:
    example.com/note: kept
    resourcetemplate.karmada.io/uid: hub-uid
    resourcetemplate.karmada.io/generation: "3"
spec:
  type: NodePort
  fieldOfTomorrow: {x: 1}
  ports:
  - {name: http, port: 80, protocol: TCP, targetPort: 8080}
  - {name: admin, port: 9090, protocol: TCP, targetPort: admin}
`
	exposing := func(ports ...networkingv1alpha1.ExposurePort) func(*state) {
		return func(st *state) {
			st.wish = &networkingv1alpha1.MultiClusterService{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "foo"}}
			st.wish.Spec.Ports = ports
			st.consumers = []discovery.ClusterName{"a"}
		}
	}
	ports := func(list ...any) func(map[string]any) {
		return spec(func(s map[string]any) { s["ports"] = list })
	}
	http := map[string]any{"name": "http", "port": int64(80), "protocol": "TCP", "targetPort": int64(8080)}
	admin := map[string]any{"name": "admin", "port": int64(9090), "protocol": "TCP", "targetPort": "admin"}

	for title, tc := range map[string]struct {
		resource func(map[string]any)
		edit     func(*state)
		cluster  string
		want     func(map[string]any)
	}{
		"stripped, with the marks of its template": {},
		"headless stays headless (C12)": {
			resource: spec(func(s map[string]any) { s["clusterIP"], s["clusterIPs"] = "None", []any{"None"} }),
			want:     spec(func(s map[string]any) { s["clusterIP"] = "None" }),
		},
		"a wish for two stacks is passed on": {
			resource: spec(func(s map[string]any) { s["ipFamilyPolicy"] = "PreferDualStack" }),
			want:     spec(func(s map[string]any) { s["ipFamilyPolicy"] = "PreferDualStack" }),
		},
		"what to do about a Service that stands there (C18)": {
			edit: func(st *state) { st.binding.Spec.ConflictResolution = workv1alpha2.ConflictAdopt },
			want: func(o map[string]any) {
				_ = unstructured.SetNestedField(o, "adopt", "metadata", "annotations", workv1alpha1.ConflictResolutionAnnotation)
			},
		},
		"a consumer gets the exposed port only (C11)": {
			edit: exposing(networkingv1alpha1.ExposurePort{Name: "http", Port: 80}), want: ports(http),
		},
		"a provider that is no consumer keeps all its ports": {
			edit: exposing(networkingv1alpha1.ExposurePort{Name: "http", Port: 80}), cluster: "b", want: ports(http, admin),
		},
		"no port is left: it keeps all, since it could not exist": {
			edit: exposing(networkingv1alpha1.ExposurePort{Name: "nope", Port: 1}), want: ports(http, admin),
		},
		"TCP and UDP on one number are two ports (C23)": {
			resource: ports(
				map[string]any{"name": "dns", "port": int64(53), "protocol": "UDP", "nodePort": int64(30053)},
				map[string]any{"name": "dns-tcp", "port": int64(53), "protocol": "TCP", "nodePort": int64(30054)}),
			want: ports(
				map[string]any{"name": "dns", "port": int64(53), "protocol": "UDP"},
				map[string]any{"name": "dns-tcp", "port": int64(53), "protocol": "TCP"}),
		},
	} {
		t.Run(title, func(t *testing.T) {
			if tc.cluster == "" {
				tc.cluster = "a"
			}
			st := bound(t, tc.cluster)
			if tc.resource != nil {
				tc.resource(st.resource.Object)
			}
			if tc.edit != nil {
				tc.edit(st)
			}
			p, err := plan(st)
			if err != nil {
				t.Fatal(err)
			}
			got, err := manifest.Decode(p.Create[0].Spec.Workload.Manifests[0])
			if err != nil {
				t.Fatal(err)
			}
			want := object(t, sent)
			if tc.want != nil {
				tc.want(want.Object)
			}
			if diff := cmp.Diff(want.Object, got.Object); diff != "" {
				t.Errorf("manifest (-want +got):\n%s", diff)
			}
		})
	}
}

// A Work says which MultiClusterService it is for while there is one, and is
// guarded by a finalizer from the start.
func TestWorkMarks(t *testing.T) {
	st := bound(t, "a")
	st.binding.Labels = map[string]string{networkingv1alpha1.PermanentIDLabel: "id-1"}
	st.wish = &networkingv1alpha1.MultiClusterService{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "foo"}}
	p, err := plan(st)
	if err != nil {
		t.Fatal(err)
	}
	work := p.Create[0]
	want := map[string]string{
		networkingv1alpha1.NameKey: "foo", networkingv1alpha1.NamespaceKey: "shop", networkingv1alpha1.PermanentIDLabel: "id-1",
	}
	if diff := cmp.Diff(want, work.Labels); diff != "" {
		t.Errorf("labels (-want +got):\n%s", diff)
	}
	if !slices.Contains(work.Finalizers, workv1alpha1.ExecutionFinalizer) {
		t.Errorf("finalizers %v, want the one of execution", work.Finalizers)
	}

	st.wish, st.works = nil, []*workv1alpha1.Work{work}
	if p, err = plan(st); err != nil {
		t.Fatal(err)
	}
	if len(p.Update) != 1 || len(p.Update[0].Labels) != 0 {
		t.Errorf("the wish has gone, others hold the binding: %v, want an update that takes the labels off", verbs(p))
	}
}

// A Service may say anything; a spec that is none is an error, never a panic.
func TestOddResource(t *testing.T) {
	for title, raw := range map[string]string{
		"no spec":         `{"apiVersion":"v1","kind":"Service","metadata":{"namespace":"shop","name":"foo"}}`,
		"no ports":        `{"apiVersion":"v1","kind":"Service","metadata":{"namespace":"shop","name":"foo"},"spec":{}}`,
		"ports of a kind": `{"apiVersion":"v1","kind":"Service","metadata":{"namespace":"shop","name":"foo"},"spec":{"ports":["x",null]}}`,
	} {
		t.Run(title, func(t *testing.T) {
			st := bound(t, "a")
			st.resource = object(t, raw)
			st.wish = &networkingv1alpha1.MultiClusterService{}
			st.wish.Spec.Ports = []networkingv1alpha1.ExposurePort{{Port: 80}}
			st.consumers = []discovery.ClusterName{"a"}
			p, err := plan(st)
			if err != nil {
				t.Fatal(err)
			}
			if len(p.Create) != 1 || !json.Valid(p.Create[0].Spec.Workload.Manifests[0].Raw) {
				t.Errorf("plan %v, want one Work with a manifest", verbs(p))
			}
		})
	}
}
