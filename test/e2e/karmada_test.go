package e2e

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
)

// createFile makes the objects of a file in the site's namespace, as they are.
func (s *site) createFile(path string) {
	s.t.Helper()
	file, err := os.Open(path)
	s.must(err)
	defer file.Close()
	decoder := utilyaml.NewYAMLOrJSONDecoder(file, 4096)
	for {
		obj := &unstructured.Unstructured{}
		err := decoder.Decode(&obj.Object)
		if errors.Is(err, io.EOF) {
			return
		}
		s.must(err)
		obj.SetNamespace(s.ns)
		s.must(s.hub.Create(s.t.Context(), obj))
	}
}

// Manifests that work with Karmada work here as they are: a Service without a
// policy, and a wish in each spelling that there has been.
func TestKarmadaManifests(t *testing.T) {
	f := together(t)
	for name, providers := range map[string][]string{
		"clusters": {"member1"}, "deprecated-lists": {"member1"}, "range": f.names(),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := f.newSite(t, nil)
			s.createFile(filepath.Join("testdata", "karmada", name+".yaml"))
			s.runPods("member1", "serve", 2)
			s.waitOwn("member1", "serve", 2)
			sp := spread{service: "serve", providers: providers, consumers: []string{"member2"}}
			s.waitSpread(sp)
			s.waitCollected(sp)
			s.waitService("serve", append(providers, "member2")...)
			s.waitReady("serve")
		})
	}
}
