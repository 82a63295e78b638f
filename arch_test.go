package namesake_test

import (
	"os"
	"testing"

	"github.com/namesake-io/namesake/test/arch"
)

// TestArchitecture checks the layout and the import rules of both modules. The
// rules, and how to add one, are in test/arch.
func TestArchitecture(t *testing.T) {
	tree, err := arch.Load(os.DirFS("."))
	if err != nil {
		t.Fatal(err)
	}
	for _, rule := range arch.Rules() {
		t.Run(rule.Name, func(t *testing.T) {
			for _, finding := range rule.Check(tree) {
				t.Errorf("%s\n\tway out: %s", finding, rule.WayOut)
			}
		})
	}
}
