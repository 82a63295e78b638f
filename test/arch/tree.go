package arch

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"strconv"
	"strings"
)

// Module is the path of the root module; the sandbox module is below it.
const Module = "github.com/namesake-io/namesake"

// Tree is the source of both modules, read once for all rules.
type Tree struct {
	Go   []*GoFile  // sorted by path
	Text []TextFile // every text file, the Go files too, sorted by path
}

// TextFile is a file that a person may read.
type TextFile struct {
	Path    string // slash-separated, relative to the root
	Content string
}

// GoFile is a parsed Go file outside testdata.
type GoFile struct {
	Path      string // slash-separated, relative to the root
	Lines     int
	Test      bool // its name ends in _test.go
	Generated bool
	Syntax    *ast.File

	fset *token.FileSet
}

// Finding is one place that breaks a rule.
type Finding struct {
	Where string // path or path:line
	What  string
}

func (f Finding) String() string { return f.Where + ": " + f.What }

// skipped are folders that hold nothing of ours. In a linked worktree .git is a
// file.
var skipped = map[string]bool{".git": true, "bin": true, "vendor": true, "tmp": true, ".idea": true, ".vscode": true}

// maxText is the size in bytes above which a file is data, not text.
const maxText = 1 << 20

// Load reads the tree below the root of fsys.
func Load(fsys fs.FS) (*Tree, error) {
	tree := &Tree{}
	fset := token.NewFileSet()
	err := fs.WalkDir(fsys, ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && skipped[entry.Name()]:
			return fs.SkipDir
		case !entry.Type().IsRegular() || name == ".git":
			return nil
		}
		content, err := fs.ReadFile(fsys, name)
		if err != nil {
			return fmt.Errorf("reading %s: %w", name, err)
		}
		if len(content) > maxText || bytes.IndexByte(content, 0) >= 0 {
			return nil
		}
		tree.Text = append(tree.Text, TextFile{Path: name, Content: string(content)})
		if path.Ext(name) != ".go" || strings.Contains("/"+name, "/testdata/") {
			return nil
		}
		syntax, err := parser.ParseFile(fset, name, content, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return fmt.Errorf("parsing %s: %w", name, err)
		}
		tree.Go = append(tree.Go, &GoFile{
			Path:      name,
			Lines:     bytes.Count(content, []byte("\n")),
			Test:      strings.HasSuffix(name, "_test.go"),
			Generated: ast.IsGenerated(syntax),
			Syntax:    syntax,
			fset:      fset,
		})
		return nil
	})
	return tree, err
}

// Dir is the folder of the file, for example "internal/discovery".
func (f *GoFile) Dir() string { return path.Dir(f.Path) }

// Name is the last element of the file's path.
func (f *GoFile) Name() string { return path.Base(f.Path) }

// In tells whether the file is in one of the folders or below.
func (f *GoFile) In(dirs ...string) bool { return within(f.Path, dirs...) }

// Imports lists the import paths of the file.
func (f *GoFile) Imports() []string {
	var paths []string
	for _, spec := range f.Syntax.Imports {
		if p, err := strconv.Unquote(spec.Path.Value); err == nil {
			paths = append(paths, p)
		}
	}
	return paths
}

// selects tells whether expr is a name of an imported package, such as
// time.Now, and returns the package's import path and the name.
func (f *GoFile) selects(expr ast.Node) (pkg, name string, ok bool) {
	selector, ok := expr.(*ast.SelectorExpr)
	if !ok {
		return "", "", false
	}
	ident, ok := selector.X.(*ast.Ident)
	if !ok {
		return "", "", false
	}
	for _, spec := range f.Syntax.Imports {
		p, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			continue
		}
		known := path.Base(p)
		if spec.Name != nil {
			known = spec.Name.Name
		}
		if known == ident.Name {
			return p, selector.Sel.Name, true
		}
	}
	return "", "", false
}

// at makes a finding at a node of the file.
func (f *GoFile) at(node ast.Node, format string, args ...any) Finding {
	line := f.fset.Position(node.Pos()).Line
	return Finding{Where: fmt.Sprintf("%s:%d", f.Path, line), What: fmt.Sprintf(format, args...)}
}

// whole makes a finding about the file as such.
func (f *GoFile) whole(format string, args ...any) Finding {
	return Finding{Where: f.Path, What: fmt.Sprintf(format, args...)}
}

// within tells whether a path is one of the folders or below one.
func within(name string, dirs ...string) bool {
	for _, dir := range dirs {
		if name == dir || strings.HasPrefix(name, dir+"/") {
			return true
		}
	}
	return false
}

// inspect calls visit with each node of each file that keep lets through.
func (t *Tree) inspect(keep func(*GoFile) bool, visit func(*GoFile, ast.Node)) {
	for _, file := range t.Go {
		if !keep(file) {
			continue
		}
		ast.Inspect(file.Syntax, func(node ast.Node) bool {
			if node != nil {
				visit(file, node)
			}
			return true
		})
	}
}
