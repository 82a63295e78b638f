package arch

import (
	"go/ast"
	"path"
	"slices"
	"strings"
)

// Limits, loose enough that nobody has to ask for an exception.
const (
	maxMainLines     = 60
	maxFileLines     = 600
	maxFunctionLines = 80 // tests excepted: their tables are long and plain
	maxParameters    = 5
	maxResults       = 3
)

const controllers = "internal/controller"

// controllerParts are the files that a controller may have; only the first two
// are required.
var controllerParts = []string{"doc", "controller", "observe", "plan", "apply", "status", "events", "metrics"}

func controllerFileList() string {
	return strings.Join(controllerParts, ".go, ") + ".go, *_test.go"
}

// controllerDir is the folder of the controller that a file belongs to.
func controllerDir(file *GoFile) string {
	rest := strings.TrimPrefix(file.Dir(), controllers+"/")
	name, _, _ := strings.Cut(rest, "/")
	return path.Join(controllers, name)
}

func controllerFiles(t *Tree) []Finding {
	var found []Finding
	has := map[string]bool{}
	var dirs []string
	for _, file := range t.Go {
		if !file.In(controllers) {
			continue
		}
		dir := controllerDir(file)
		if file.Dir() != dir || file.Dir() == controllers {
			found = append(found, file.whole("is not in a folder %s/<name>", controllers))
			continue
		}
		if !slices.Contains(dirs, dir) {
			dirs = append(dirs, dir)
		}
		has[file.Path] = true
		part := strings.TrimSuffix(file.Name(), ".go")
		if !file.Test && !file.Generated && !slices.Contains(controllerParts, part) {
			found = append(found, file.whole("is no name for a controller's file"))
		}
	}
	for _, dir := range dirs {
		for _, part := range controllerParts[:2] {
			if name := path.Join(dir, part+".go"); !has[name] {
				found = append(found, Finding{Where: dir, What: "has no " + part + ".go"})
			}
		}
	}
	return found
}

func controllerDocs(t *Tree) []Finding {
	var found []Finding
	for _, file := range t.Go {
		if !file.In(controllers) || file.Name() != "doc.go" {
			continue
		}
		text := file.Syntax.Doc.Text()
		for _, word := range []string{"Watches", "Reads", "Writes", "Owns", "Fails"} {
			if !strings.Contains("\n"+text, "\n"+word) {
				found = append(found, file.whole("has no line that begins with %q", word))
			}
		}
	}
	return found
}

// empty are names that say nothing; emptySuffixes say nothing at the end of one.
var (
	empty         = []string{"common", "misc", "shared", "base", "lib", "stuff"}
	emptySuffixes = []string{"util", "utils", "helper", "helpers"}
)

func saysNothing(name string) bool {
	name = strings.TrimSuffix(name, "_test")
	isSuffix := func(suffix string) bool { return strings.HasSuffix(name, suffix) }
	return slices.Contains(empty, name) || slices.ContainsFunc(emptySuffixes, isSuffix)
}

func speakingNames(t *Tree) []Finding {
	var found []Finding
	for _, file := range t.Go {
		if name := file.Syntax.Name.Name; saysNothing(name) {
			found = append(found, file.whole("is in a package named %s", name))
		}
		if name := strings.TrimSuffix(file.Name(), ".go"); saysNothing(name) {
			found = append(found, file.whole("is a file named %s", name))
		}
		if folder := path.Base(file.Dir()); saysNothing(folder) {
			found = append(found, file.whole("is in a folder named %s", folder))
		}
	}
	return found
}

func thinMain(t *Tree) []Finding {
	var found []Finding
	for _, file := range t.Go {
		if file.Name() == "main.go" && path.Base(path.Dir(file.Dir())) == "cmd" && file.Lines > maxMainLines {
			found = append(found, file.whole("has %d lines, more than %d", file.Lines, maxMainLines))
		}
	}
	return found
}

func shortFilesAndFunctions(t *Tree) []Finding {
	var found []Finding
	for _, file := range t.Go {
		if !file.Generated && file.Lines > maxFileLines {
			found = append(found, file.whole("has %d lines, more than %d", file.Lines, maxFileLines))
		}
	}
	keep := func(file *GoFile) bool { return !file.Generated && !file.Test }
	t.inspect(keep, func(file *GoFile, node ast.Node) {
		fn, ok := node.(*ast.FuncDecl)
		if !ok || fn.Body == nil {
			return
		}
		lines := file.fset.Position(fn.Body.Rbrace).Line - file.fset.Position(fn.Body.Lbrace).Line - 1
		if lines > maxFunctionLines {
			found = append(found, file.at(fn, "%s has %d lines, more than %d", fn.Name.Name, lines, maxFunctionLines))
		}
	})
	return found
}

func shortSignatures(t *Tree) []Finding {
	var found []Finding
	keep := func(file *GoFile) bool { return !file.Generated }
	t.inspect(keep, func(file *GoFile, node ast.Node) {
		fn, ok := node.(*ast.FuncDecl)
		if !ok {
			return
		}
		if n := fn.Type.Params.NumFields(); n > maxParameters {
			found = append(found, file.at(fn, "%s has %d parameters, more than %d", fn.Name.Name, n, maxParameters))
		}
		if n := fn.Type.Results.NumFields(); n > maxResults {
			found = append(found, file.at(fn, "%s has %d results, more than %d", fn.Name.Name, n, maxResults))
		}
	})
	return found
}

func noInit(t *Tree) []Finding {
	var found []Finding
	keep := func(file *GoFile) bool { return !file.Generated && !file.Test }
	t.inspect(keep, func(file *GoFile, node ast.Node) {
		if fn, ok := node.(*ast.FuncDecl); ok && fn.Recv == nil && fn.Name.Name == "init" {
			found = append(found, file.at(fn, "declares init"))
		}
	})
	return found
}

func noContextInStruct(t *Tree) []Finding {
	var found []Finding
	t.inspect(func(*GoFile) bool { return true }, func(file *GoFile, node ast.Node) {
		structure, ok := node.(*ast.StructType)
		if !ok {
			return
		}
		for _, field := range structure.Fields.List {
			if pkg, name, ok := file.selects(field.Type); ok && pkg == "context" && name == "Context" {
				found = append(found, file.at(field, "keeps a context in a struct"))
			}
		}
	})
	return found
}

// noSleep lets only the bubble of synctest.Test sleep, where time is virtual.
func noSleep(t *Tree) []Finding {
	var found []Finding
	for _, file := range t.Go {
		ast.Inspect(file.Syntax, func(node ast.Node) bool {
			if call, ok := node.(*ast.CallExpr); ok {
				if pkg, _, _ := file.selects(call.Fun); pkg == "testing/synctest" {
					return false
				}
			}
			if pkg, name, _ := file.selects(node); pkg == "time" && name == "Sleep" {
				found = append(found, file.at(node, "uses time.Sleep"))
			}
			return true
		})
	}
	return found
}
