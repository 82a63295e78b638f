package execution

import (
	"context"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	workv1alpha1 "github.com/namesake-io/namesake/api/work/v1alpha1"
)

// apiServer is a real one, of a member.
type apiServer struct{ client.Client }

func startMember(t *testing.T) apiServer {
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
	return apiServer{c}
}

// bring applies what a Work has, until nothing is left to do, and returns what
// stands. It fails when that takes more than one write.
func (m apiServer) bring(t *testing.T, want *unstructured.Unstructured) *unstructured.Unstructured {
	t.Helper()
	for writes := 0; ; writes++ {
		have := &unstructured.Unstructured{}
		have.SetGroupVersionKind(want.GroupVersionKind())
		o := object{want: want}
		if err := m.Get(t.Context(), client.ObjectKeyFromObject(want), have); err == nil {
			o.have = have
		} else if !apierrors.IsNotFound(err) {
			t.Fatal(err)
		}
		var err error
		switch s := plan(o); s.verb {
		case create:
			err = m.Create(t.Context(), s.obj.DeepCopy(), client.FieldOwner(workv1alpha1.ExecutionFieldManager))
		case update:
			err = m.Update(t.Context(), s.obj, client.FieldOwner(workv1alpha1.ExecutionFieldManager))
		case none:
			return have
		case adopt, refuse, await:
			t.Fatalf("verb %d: %s", s.verb, s.message)
		}
		if err != nil {
			t.Fatal(err)
		}
		if writes > 0 {
			t.Fatalf("a second write: %s", cmp.Diff(o.have.Object, want.Object))
		}
	}
}

// A Service changes its kind and its ports in any order, on a server that defaults
// and validates: each change is one write, and then nothing is left to do.
func TestServicesOnAServer(t *testing.T) {
	m := startMember(t)
	kind := func(name string) edit { return set(name, "spec", "type") }
	dns := ports(
		map[string]any{"name": "dns", "port": int64(53), "protocol": "UDP", "targetPort": int64(5353)},
		map[string]any{"name": "dns-tcp", "port": int64(53), "protocol": "TCP", "targetPort": "dns"})
	inDefault := set("default", "metadata", "namespace")

	for title, steps := range map[string][][]edit{
		"types":          {{}, {kind("NodePort")}, {kind("LoadBalancer")}, {kind("ClusterIP")}, {kind("LoadBalancer"), set("Local", "spec", "externalTrafficPolicy")}, {kind("NodePort")}},
		"TCP and UDP":    {{dns}, {dns, kind("NodePort")}, {kind("NodePort")}, {dns, kind("NodePort")}},
		"session":        {{set("ClientIP", "spec", "sessionAffinity")}, {set("None", "spec", "sessionAffinity")}, {}},
		"local traffic":  {{set("Local", "spec", "internalTrafficPolicy")}, {set("Cluster", "spec", "internalTrafficPolicy")}},
		"headless":       {{set("None", "spec", "clusterIP")}, {set("None", "spec", "clusterIP"), dns}},
		"no ports":       {{set("None", "spec", "clusterIP"), set(nil, "spec", "ports")}},
		"least":          {{set(nil, "spec", "type"), ports(map[string]any{"port": int64(80)})}},
		"two stacks":     {{set("PreferDualStack", "spec", "ipFamilyPolicy")}},
		"not ready ones": {{set(true, "spec", "publishNotReadyAddresses")}, {}},
		"selector":       {{set(map[string]any{"app": "foo"}, "spec", "selector")}, {set(map[string]any{"app": "bar"}, "spec", "selector")}, {}},
		"external name":  {{kind("ExternalName"), set("x.example.com", "spec", "externalName"), set(nil, "spec", "ports")}, {}},
		"becomes headless": {
			{kind("ExternalName"), set("x.example.com", "spec", "externalName"), set(nil, "spec", "ports")}, {set("None", "spec", "clusterIP")},
		},
	} {
		t.Run(title, func(t *testing.T) {
			t.Cleanup(func() {
				if err := m.Delete(context.Background(), wanted(t, wantService, inDefault)); err != nil {
					t.Error(err)
				}
			})
			var address any
			for i, edits := range steps {
				want := wanted(t, wantService, append(edits, inDefault)...)
				got := m.bring(t, want)
				spec, _ := got.Object["spec"].(map[string]any)
				wantSpec, _ := want.Object["spec"].(map[string]any)
				if wantSpec["type"] != nil && spec["type"] != wantSpec["type"] {
					t.Errorf("step %d: type %v, want %v", i, spec["type"], wantSpec["type"])
				}
				if wantSpec["clusterIP"] == "None" && spec["clusterIP"] != "None" {
					t.Errorf("step %d: address %v, want a headless Service", i, spec["clusterIP"])
				}
				if i > 0 && address != nil && spec["clusterIP"] != address {
					t.Errorf("step %d: address %v, want %v as before", i, spec["clusterIP"], address)
				}
				address = spec["clusterIP"]
			}
		})
	}
}
