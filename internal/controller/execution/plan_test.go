package execution

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	workv1alpha1 "github.com/namesake-io/namesake/api/work/v1alpha1"
)

// wantService is the Service of a Work, as the binding controller makes it.
const wantService = `
apiVersion: v1
kind: Service
metadata: {namespace: shop, name: foo, labels: {app: foo}}
spec:
  type: ClusterIP
  ports:
  - {name: http, port: 80, protocol: TCP, targetPort: 8080}
`

// haveService is the same Service as it stands in the member.
const haveService = `
apiVersion: v1
kind: Service
metadata:
  namespace: shop
  name: foo
  uid: member-uid
  resourceVersion: "5"
  labels: {app: foo, karmada.io/managed: "true"}
  annotations: {work.karmada.io/name: foo-1, work.karmada.io/namespace: karmada-es-a}
spec:
  type: ClusterIP
  clusterIP: 10.1.0.7
  clusterIPs: [10.1.0.7]
  ipFamilies: [IPv4]
  ipFamilyPolicy: SingleStack
  internalTrafficPolicy: Cluster
  sessionAffinity: None
  ports:
  - {name: http, port: 80, protocol: TCP, targetPort: 8080}
status: {loadBalancer: {}}
`

// edit changes a part of an object.
type edit func(map[string]any)

func parsed(t *testing.T, text string, edits ...edit) *unstructured.Unstructured {
	t.Helper()
	data, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	u := &unstructured.Unstructured{}
	if err := u.UnmarshalJSON(data); err != nil {
		t.Fatal(err)
	}
	for _, e := range edits {
		e(u.Object)
	}
	return u
}

// wanted is an object of the Work karmada-es-a/foo-1.
func wanted(t *testing.T, text string, edits ...edit) *unstructured.Unstructured {
	t.Helper()
	u := parsed(t, text, edits...)
	mark(u, &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-es-a", Name: "foo-1"}})
	return u
}

// set sets one field; a nil value takes it off.
func set(value any, path ...string) edit {
	return func(o map[string]any) {
		if value == nil {
			unstructured.RemoveNestedField(o, path...)
			return
		}
		if err := unstructured.SetNestedField(o, value, path...); err != nil {
			panic(err)
		}
	}
}

func ports(list ...any) edit { return set(slices.Clone(list), "spec", "ports") }

// port is written as "name TCP/53", and assigned as "nodePort=30053".
func port(text string, fields map[string]any) map[string]any {
	name, rest, _ := strings.Cut(text, " ")
	protocol, _, _ := strings.Cut(rest, "/")
	out := map[string]any{"name": name, "protocol": protocol}
	for k, v := range fields {
		out[k] = v
	}
	return out
}

func onConflict(word string) edit {
	return set(word, "metadata", "annotations", workv1alpha1.ConflictResolutionAnnotation)
}

// foreign takes all of our marks off; byHand edits the labels and annotations
// away, which leaves the field manager.
var foreign = []edit{set(nil, "metadata", "annotations"), set(nil, "metadata", "labels")}

func byHand(o map[string]any) {
	for _, e := range foreign {
		e(o)
	}
	set([]any{map[string]any{"manager": workv1alpha1.ExecutionFieldManager}}, "metadata", "managedFields")(o)
}

func TestPlan(t *testing.T) {
	verbs := map[verb]string{none: "none", create: "create", update: "update", adopt: "adopt", refuse: "refuse", await: "await"}
	const namespace = "{apiVersion: v1, kind: Namespace, metadata: {name: shop}}"
	deleting := set("2026-08-01T12:00:00Z", "metadata", "deletionTimestamp")
	have := func(edits ...edit) *unstructured.Unstructured { return parsed(t, haveService, edits...) }
	want := func(edits ...edit) *unstructured.Unstructured { return wanted(t, wantService, edits...) }

	for title, tc := range map[string]struct {
		want, have  *unstructured.Unstructured
		wantVerb    string
		wantMessage string
	}{
		"missing":               {want: want(), wantVerb: "create"},
		"stands as it should":   {want: want(), have: have(), wantVerb: "none"},
		"edited (C32)":          {want: want(), have: have(set(map[string]any{"app": "evil"}, "spec", "selector")), wantVerb: "update"},
		"a label of ours gone":  {want: want(), have: have(set(map[string]any{"app": "foo"}, "metadata", "labels")), wantVerb: "update"},
		"labels of others stay": {want: want(), have: have(set("x", "metadata", "labels", "example.com/theirs"), set("y", "metadata", "annotations", "example.com/theirs")), wantVerb: "none"},
		"all marks edited away: ours still, by field manager (C32)": {want: want(), have: have(byHand), wantVerb: "update"},
		"another Work of the member made it":                        {want: want(), have: have(set("foo-0", "metadata", "annotations", workv1alpha1.NameAnnotation)), wantVerb: "update"},
		"being deleted":                                             {want: want(), have: have(deleting), wantVerb: "await", wantMessage: "Service shop/foo is being deleted in the cluster; it is made again when it is gone"},

		"foreign, nothing said: refused (C18)": {
			want: want(), have: have(foreign...), wantVerb: "refuse",
			wantMessage: "Service shop/foo already stands in the cluster and was not made by Namesake: delete or rename it there, or set spec.conflictResolution to Adopt or Overwrite",
		},
		"foreign, abort: refused (C18)": {
			want: want(onConflict("abort")), have: have(foreign...), wantVerb: "refuse",
			wantMessage: "Service shop/foo already stands in the cluster and was not made by Namesake: delete or rename it there, or set spec.conflictResolution to Adopt or Overwrite",
		},
		"foreign, adopt: used as it is (C18)": {want: want(onConflict("adopt")), have: have(foreign...), wantVerb: "adopt"},
		"foreign, adopt, but callers would reach nobody": {
			want: want(onConflict("adopt")), have: have(append(foreign, ports(port("web TCP/80", map[string]any{"port": int64(80)})))...), wantVerb: "refuse",
			wantMessage: "Service shop/foo already stands in the cluster and has no port http (TCP/80), so callers would reach nobody there: add it, or set spec.conflictResolution to Overwrite",
		},
		"foreign, overwrite: taken over (C18)": {want: want(onConflict("overwrite")), have: have(foreign...), wantVerb: "update"},
		"of another hub: foreign": {
			want: want(), have: have(set("karmada-es-other", "metadata", "annotations", workv1alpha1.NamespaceAnnotation)), wantVerb: "refuse",
			wantMessage: "Service shop/foo already stands in the cluster and was not made by Namesake: delete or rename it there, or set spec.conflictResolution to Adopt or Overwrite",
		},

		"a namespace is made":             {want: wanted(t, namespace), wantVerb: "create"},
		"and never changed, whose ever":   {want: wanted(t, namespace, set("blue", "metadata", "labels", "team")), have: parsed(t, namespace), wantVerb: "none"},
		"a namespace that is going (C20)": {want: wanted(t, namespace), have: parsed(t, namespace, deleting), wantVerb: "await", wantMessage: "Namespace shop is being deleted in the cluster; it is made again when it is gone"},
	} {
		t.Run(title, func(t *testing.T) {
			wantBefore, haveBefore := tc.want.DeepCopy(), tc.have.DeepCopy()
			got := plan(object{want: tc.want, have: tc.have})
			if verbs[got.verb] != tc.wantVerb || got.message != tc.wantMessage {
				t.Errorf("%s %q, want %s %q", verbs[got.verb], got.message, tc.wantVerb, tc.wantMessage)
			}
			if !cmp.Equal(wantBefore, tc.want) || !cmp.Equal(haveBefore, tc.have) {
				t.Error("the plan changed what it reads")
			}
			if got.verb == update {
				if again := plan(object{want: tc.want, have: got.obj}); again.verb != none {
					t.Errorf("planned on what is written: %s, want none", verbs[again.verb])
				}
			}
		})
	}
}

// What is written over a standing Service, and what stays of it.
func TestMergeService(t *testing.T) {
	nodePort := func(n int64) map[string]any { return map[string]any{"port": int64(53), "nodePort": n} }
	bare := map[string]any{"port": int64(53)}
	for title, tc := range map[string]struct {
		want, have []edit
		// merged changes the standing Service to what is written.
		merged []edit
	}{
		"what the cluster assigned stays (C16, C17)": {
			have: []edit{set(int64(31000), "spec", "healthCheckNodePort"), set("lb.example.com/x", "spec", "loadBalancerClass")},
		},
		"addresses of the hub are not taken over (C16)": {
			want: []edit{set("10.96.0.1", "spec", "clusterIP"), set([]any{"10.96.0.1"}, "spec", "clusterIPs"), set("RequireDualStack", "spec", "ipFamilyPolicy")},
		},
		"nor is a port for health checks (C17)": {want: []edit{set(int64(32000), "spec", "healthCheckNodePort")}},
		"node ports stay, by protocol and number (C17, C23)": {
			want:   []edit{set("NodePort", "spec", "type"), ports(port("dns UDP/53", nodePort(1)), port("dns-tcp TCP/53", bare))},
			have:   []edit{set("NodePort", "spec", "type"), ports(port("dns-tcp TCP/53", nodePort(30054)), port("dns UDP/53", nodePort(30053)))},
			merged: []edit{ports(port("dns UDP/53", nodePort(30053)), port("dns-tcp TCP/53", nodePort(30054)))},
		},
		"a port renamed keeps its node port": {
			want:   []edit{set("NodePort", "spec", "type"), ports(port("dns UDP/53", bare))},
			have:   []edit{set("NodePort", "spec", "type"), ports(port("old UDP/53", nodePort(30053)))},
			merged: []edit{ports(port("dns UDP/53", nodePort(30053)))},
		},
		"a port that is no longer exposed goes (C11)": {
			have:   []edit{ports(port("http TCP/80", map[string]any{"port": int64(80), "targetPort": int64(8080)}), port("admin TCP/9", map[string]any{"port": int64(9)}))},
			merged: []edit{ports(port("http TCP/80", map[string]any{"port": int64(80), "targetPort": int64(8080)}))},
		},
		"what a server fills in is no difference": {
			want: []edit{set(nil, "spec", "type"), ports(map[string]any{"name": "http", "port": int64(80)})},
			have: []edit{ports(map[string]any{"name": "http", "port": int64(80), "protocol": "TCP", "targetPort": int64(80)})},
		},
		"what somebody added to the spec goes": {
			have:   []edit{set(map[string]any{"app": "evil"}, "spec", "selector"), set([]any{"1.2.3.4"}, "spec", "externalIPs")},
			merged: []edit{set(nil, "spec", "selector"), set(nil, "spec", "externalIPs")},
		},
		"fields of tomorrow are passed on": {
			want: []edit{set("x", "spec", "fieldOfTomorrow")}, merged: []edit{set("x", "spec", "fieldOfTomorrow")},
		},
		"headless where there is no address yet": {
			want:   []edit{set("None", "spec", "clusterIP")},
			have:   []edit{set("ExternalName", "spec", "type"), set(nil, "spec", "clusterIP"), set(nil, "spec", "clusterIPs"), set("x.example.com", "spec", "externalName")},
			merged: []edit{set("ClusterIP", "spec", "type"), set("None", "spec", "clusterIP"), set(nil, "spec", "externalName")},
		},
		"a Service with an address cannot become headless": {want: []edit{set("None", "spec", "clusterIP")}},
		"labels and annotations are set, none is taken": {
			want:   []edit{set("new", "metadata", "labels", "app")},
			have:   []edit{set("theirs", "metadata", "labels", "example.com/x")},
			merged: []edit{set("new", "metadata", "labels", "app")},
		},
		"the status is the cluster's": {have: []edit{set([]any{map[string]any{"ip": "1.2.3.4"}}, "status", "loadBalancer", "ingress")}},
	} {
		t.Run(title, func(t *testing.T) {
			have := parsed(t, haveService, tc.have...)
			got := merge(wanted(t, wantService, tc.want...), have)
			expected := have.DeepCopy()
			for _, e := range tc.merged {
				e(expected.Object)
			}
			if diff := cmp.Diff(expected.Object, got.Object); diff != "" {
				t.Errorf("merged (-want +got):\n%s", diff)
			}
		})
	}
}

// A Service may stand there in any shape; that is never a panic.
func TestOddShapes(t *testing.T) {
	for title, e := range map[string]edit{
		"no spec":           set(nil, "spec"),
		"no ports":          set(nil, "spec", "ports"),
		"ports of nothing":  set([]any{}, "spec", "ports"),
		"a port of a word":  set([]any{"x"}, "spec", "ports"),
		"a port of nothing": set([]any{nil}, "spec", "ports"),
	} {
		t.Run(title, func(t *testing.T) {
			plan(object{want: wanted(t, wantService, e), have: parsed(t, haveService)})
			plan(object{want: wanted(t, wantService), have: parsed(t, haveService, e)})
			plan(object{want: wanted(t, wantService, onConflict("adopt"), e), have: parsed(t, haveService, append(foreign, e)...)})
		})
	}
}
