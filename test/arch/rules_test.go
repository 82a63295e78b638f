package arch

import (
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

// TestRules shows each rule a small tree that breaks it, beside code that comes
// close and is allowed. A rule without an example fails.
func TestRules(t *testing.T) {
	cases := map[string]string{}
	for _, example := range examples {
		if _, twice := cases[example.rule]; twice {
			t.Errorf("rule %q has two examples", example.rule)
		}
		cases[example.rule] = example.tree
	}
	for _, rule := range Rules() {
		t.Run(rule.Name, func(t *testing.T) {
			text, ok := cases[rule.Name]
			if !ok {
				t.Fatal("the rule has no example that breaks it")
			}
			delete(cases, rule.Name)
			if rule.WayOut == "" {
				t.Error("the rule does not say the way out")
			}
			tree, want := parseExample(t, text)
			var got []string
			for _, finding := range rule.Check(tree) {
				got = append(got, finding.String())
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("findings (-want +got):\n%s", diff)
			}
		})
	}
	for name := range cases {
		t.Errorf("no rule is named %q", name)
	}
}

func TestLoadSkips(t *testing.T) {
	tree, err := Load(fstest.MapFS{
		".git/config":              {Data: []byte("text")},
		"bin/kubebox":              {Data: []byte("text")},
		"vendor/x/x.go":            {Data: []byte("package x\n")},
		"internal/testdata/bad.go": {Data: []byte("not Go\n")},
		"docs/picture.png":         {Data: []byte("\x89PNG\x00")},
		"internal/a/a.go":          {Data: []byte("package a\n")},
	})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, file := range tree.Go {
		got = append(got, "go "+file.Path)
	}
	for _, file := range tree.Text {
		got = append(got, "text "+file.Path)
	}
	want := []string{"go internal/a/a.go", "text internal/a/a.go", "text internal/testdata/bad.go"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
}

func TestLoadReportsSyntaxErrors(t *testing.T) {
	_, err := Load(fstest.MapFS{"a.go": {Data: []byte("package\n")}})
	if err == nil || !strings.Contains(err.Error(), "parsing a.go") {
		t.Errorf("Load of a file that does not parse: error %v, want one that names a.go", err)
	}
}

// parseExample reads files, each after a line "== path", and the findings
// wanted, each in a line "!! where: what". {{lines N}} stands for N lines of
// comment. The text is assembled so that the rules do not find it here.
func parseExample(t *testing.T, text string) (*Tree, []string) {
	t.Helper()
	files := fstest.MapFS{}
	var want []string
	var current *fstest.MapFile
	for line := range strings.Lines(text) {
		trimmed := strings.TrimSuffix(line, "\n")
		var count int
		if name, ok := strings.CutPrefix(trimmed, "== "); ok {
			current = &fstest.MapFile{}
			files[name] = current
		} else if finding, ok := strings.CutPrefix(trimmed, "!! "); ok {
			want = append(want, finding)
		} else if n, _ := fmt.Sscanf(trimmed, "{{lines %d}}", &count); n == 1 {
			current.Data = append(current.Data, strings.Repeat("// line\n", count)...)
		} else if current != nil {
			current.Data = append(current.Data, line...)
		}
	}
	if len(want) == 0 {
		t.Fatal("the example breaks nothing")
	}
	tree, err := Load(files)
	if err != nil {
		t.Fatal(err)
	}
	return tree, want
}
