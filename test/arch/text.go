package arch

import (
	"fmt"
	"math"
	"path"
	"regexp"
	"strings"
)

// waiversPerLine is the share of lines that may carry a linter waiver.
const waiversPerLine = 0.2 / 1000

func rareWaivers(t *Tree) []Finding {
	var found []Finding
	lines := 0
	for _, file := range t.Go {
		if file.Generated {
			continue
		}
		lines += file.Lines
		for _, group := range file.Syntax.Comments {
			for _, comment := range group.List {
				if strings.HasPrefix(comment.Text, "//nolint") {
					found = append(found, file.at(comment, "is a waiver"))
				}
			}
		}
	}
	if allowed := int(math.Ceil(float64(lines) * waiversPerLine)); len(found) <= allowed {
		return nil
	}
	return found
}

// replaceDirective matches one replacement of a go.mod, in a block or alone:
// the replaced module, its replacement, and the replacement's version if any.
var replaceDirective = regexp.MustCompile(`(?m)^\s*(?:replace\s+)?(\S+)(?:\s+v\S+)?\s+=>\s+(\S+)(?:[ \t]+(v\S+))?`)

func noForks(t *Tree) []Finding {
	var found []Finding
	for _, file := range t.Text {
		if path.Base(file.Path) != "go.mod" {
			continue
		}
		for _, match := range replaceDirective.FindAllStringSubmatch(file.Content, -1) {
			module, replacement, version := match[1], match[2], match[3]
			ours := within(module, Module) && version == ""
			published := module == replacement && version != ""
			if !ours && !published {
				found = append(found, Finding{Where: file.Path, What: fmt.Sprintf("replaces %s by %s", module, replacement)})
			}
		}
	}
	return found
}

// private matches what tells about one machine or one writer. A path counts
// only when it is absolute, since api/work is a folder of ours.
var private = regexp.MustCompile(`(?i)(?:^|[^\w./*})\]>-])/(?:wo` + `rk|ro` + `ot)/|cla` + `ude`)

func textForEveryone(t *Tree) []Finding {
	var found []Finding
	for _, file := range t.Text {
		if path.Base(file.Path) == "go.sum" {
			continue
		}
		for i, line := range strings.Split(file.Content, "\n") {
			if match := private.FindString(line); match != "" {
				found = append(found, Finding{Where: fmt.Sprintf("%s:%d", file.Path, i+1), What: fmt.Sprintf("says %q", match)})
			}
		}
	}
	return found
}
