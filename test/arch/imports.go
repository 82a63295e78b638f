package arch

import (
	"go/ast"
	"slices"
	"strings"
)

// layers says what the packages of a folder may not import. The first folder
// that fits counts, so the last line of internal is for the rest of it.
//
//	api ◀── discovery ◀── controller/<name> ◀── hub, agent ◀── cmd
//	              ▲               │
//	              └── member, apply, condition, event, … (the rest of internal)
var layers = []struct {
	dir    string
	denied []string
}{
	{"api", []string{"internal", "cmd", "test", "sandbox"}},
	{"internal/discovery", []string{"internal", "cmd", "test", "sandbox"}},
	{"internal/controller", []string{"internal/controller", "internal/hub", "internal/agent", "internal/cli", "cmd", "test", "sandbox"}},
	{"internal/hub", []string{"internal/agent", "internal/cli", "cmd", "test", "sandbox"}},
	{"internal/agent", []string{"internal/hub", "internal/cli", "cmd", "test", "sandbox"}},
	{"internal/cli", []string{"internal/controller", "internal/hub", "internal/agent", "cmd", "test", "sandbox"}},
	{"internal", []string{"internal/controller", "internal/hub", "internal/agent", "internal/cli", "cmd", "test", "sandbox"}},
	{"cmd", []string{"cmd", "test", "sandbox"}},
	{"sandbox", []string{"internal", "cmd", "test"}},
}

func importsPointDown(t *Tree) []Finding {
	var found []Finding
	for _, file := range t.Go {
		for _, imported := range file.Imports() {
			if target, ours := ownPath(imported); ours && !mayImport(file, target) {
				found = append(found, file.whole("imports %s", target))
			}
		}
	}
	return found
}

func mayImport(file *GoFile, target string) bool {
	if within(target, unit(file)) {
		return true
	}
	for _, layer := range layers {
		if file.In(layer.dir) {
			return !within(target, layer.denied...)
		}
	}
	return true
}

// unit is the folder whose packages may import each other whatever the layer
// says.
func unit(file *GoFile) string {
	switch {
	case file.In(controllers):
		return controllerDir(file)
	case file.In("internal/discovery"):
		return "internal/discovery"
	default:
		return file.Dir()
	}
}

// apiMayImport are the prefixes of what api/ may import beside the standard library.
var apiMayImport = []string{"k8s.io/api", "k8s.io/apimachinery", Module + "/api"}

func apiStandsAlone(t *Tree) []Finding {
	var found []Finding
	for _, file := range t.Go {
		if !file.In("api") || file.Test {
			continue
		}
		for _, imported := range file.Imports() {
			if !standard(imported) && !within(imported, apiMayImport...) {
				found = append(found, file.whole("imports %s", imported))
			}
		}
	}
	return found
}

// impure are packages that read or write something outside the program, or
// that exist to do so.
var impure = []string{
	"context", "crypto/rand", "io/ioutil", "log", "math/rand", "net", "os", "sync", "syscall", "testing/synctest",
	"github.com/go-logr", "k8s.io/client-go", "k8s.io/klog", "k8s.io/apiserver", "k8s.io/component-base",
	"sigs.k8s.io/controller-runtime",
}

// pure are packages below an impure path that compute only.
var pure = []string{"net/netip", "net/url"}

// clocks are the names of package time that read the clock or wait for it.
var clocks = []string{"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "Tick", "NewTimer", "NewTicker"}

// coreMayImport are the prefixes of what internal/discovery may import beside
// the standard library.
var coreMayImport = []string{"k8s.io/api", "k8s.io/apimachinery", "k8s.io/utils", Module + "/api", Module + "/internal/discovery"}

func coreIsPure(t *Tree) []Finding {
	inCore := func(file *GoFile) bool { return file.In("internal/discovery") && !file.Test }
	keep := func(file *GoFile) bool {
		return inCore(file) || file.In("internal/controller") && file.Name() == "plan.go"
	}
	var found []Finding
	for _, file := range t.Go {
		if !keep(file) {
			continue
		}
		for _, imported := range file.Imports() {
			foreign := inCore(file) && !standard(imported) && !within(imported, coreMayImport...)
			if foreign || within(imported, impure...) && !within(imported, pure...) {
				found = append(found, file.whole("imports %s", imported))
			}
		}
	}
	t.inspect(keep, func(file *GoFile, node ast.Node) {
		pkg, name, ok := file.selects(node)
		if ok && (pkg == "time" && slices.Contains(clocks, name) || strings.HasPrefix(pkg, "k8s.io/") && name == "Now") {
			found = append(found, file.at(node, "reads the clock by %s", name))
		}
	})
	return found
}

func blackBox(t *Tree) []Finding {
	var found []Finding
	for _, file := range t.Go {
		if !file.In("test/e2e", "test/bench", "test/chaos") {
			continue
		}
		for _, imported := range file.Imports() {
			if target, ours := ownPath(imported); ours && slices.Contains(strings.Split(target, "/"), "internal") {
				found = append(found, file.whole("imports %s", target))
			}
		}
	}
	return found
}

// writers may call the writing methods of a client: the one helper, the
// commands that a person runs, and the connection to a member, which asks for
// its own tokens.
var writers = []string{"internal/apply", "internal/cli", "internal/member", "test", "sandbox"}

// writes are the writing methods of client-go and controller-runtime clients.
var writes = []string{
	"Create", "Update", "UpdateStatus", "Patch", "Apply", "ApplyStatus", "Delete", "DeleteAllOf", "DeleteCollection", "Evict", "Bind",
}

// helpers are names under which code holds our apply helper, whose methods may
// have the same names as a client's.
var helpers = []string{"apply", "applier", "writer"}

func onePackageWrites(t *Tree) []Finding {
	var found []Finding
	keep := func(file *GoFile) bool { return !file.Test && !file.In(writers...) }
	t.inspect(keep, func(file *GoFile, node ast.Node) {
		call, ok := node.(*ast.CallExpr)
		if !ok || len(call.Args) < 2 || !isContext(call.Args[0]) {
			return
		}
		method, ok := call.Fun.(*ast.SelectorExpr)
		if !ok || !slices.Contains(writes, method.Sel.Name) || slices.Contains(helpers, lastName(method.X)) {
			return
		}
		found = append(found, file.at(call, "calls %s.%s(ctx, …)", lastName(method.X), method.Sel.Name))
	})
	return found
}

// isContext guesses from its name whether an expression is a context: ctx,
// somethingCtx, x.Context(), context.Background().
func isContext(expr ast.Expr) bool {
	switch e := expr.(type) {
	case *ast.Ident:
		return strings.HasSuffix(strings.ToLower(e.Name), "ctx")
	case *ast.CallExpr:
		selector, ok := e.Fun.(*ast.SelectorExpr)
		return ok && (selector.Sel.Name == "Context" || lastName(selector.X) == "context")
	}
	return false
}

// lastName is the rightmost name of an expression: c for c, client for
// r.client, Status for c.Status().
func lastName(expr ast.Expr) string {
	switch e := expr.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return e.Sel.Name
	case *ast.CallExpr:
		return lastName(e.Fun)
	}
	return ""
}

// ownPath returns the folder of an import path of ours.
func ownPath(imported string) (string, bool) {
	return strings.CutPrefix(imported, Module+"/")
}

// standard tells whether an import path belongs to the standard library: its
// first element has no dot.
func standard(imported string) bool {
	first, _, _ := strings.Cut(imported, "/")
	return !strings.Contains(first, ".")
}
