package arch

// examples holds a tree for each rule, in the format of parseExample: findings
// are in the order in which the rule reports them.
var examples = []struct{ rule, tree string }{
	{"imports point down", `
== api/work/v1alpha1/types.go
package v1alpha1
import _ "github.com/namesake-io/namesake/internal/discovery"
!! api/work/v1alpha1/types.go: imports internal/discovery
== cmd/agent/main.go
package main
import _ "github.com/namesake-io/namesake/internal/agent"
== internal/agent/agent.go
package agent
import _ "github.com/namesake-io/namesake/internal/hub"
import _ "github.com/namesake-io/namesake/internal/controller/one"
!! internal/agent/agent.go: imports internal/hub
== internal/apply/apply.go
package apply
import _ "github.com/namesake-io/namesake/internal/condition"
import _ "github.com/namesake-io/namesake/internal/controller/one"
!! internal/apply/apply.go: imports internal/controller/one
== internal/cli/cli.go
package cli
import _ "github.com/namesake-io/namesake/internal/hub"
!! internal/cli/cli.go: imports internal/hub
== internal/controller/one/controller.go
package one
import _ "github.com/namesake-io/namesake/internal/apply"
import _ "github.com/namesake-io/namesake/internal/controller/two"
import _ "github.com/namesake-io/namesake/internal/discovery"
!! internal/controller/one/controller.go: imports internal/controller/two
== internal/controller/one/controller_test.go
package one_test
import _ "github.com/namesake-io/namesake/internal/controller/one"
== internal/discovery/names/names.go
package names
import _ "github.com/namesake-io/namesake/api/work/v1alpha1"
import _ "github.com/namesake-io/namesake/internal/apply"
import _ "github.com/namesake-io/namesake/internal/discovery"
!! internal/discovery/names/names.go: imports internal/apply
== internal/hub/hub.go
package hub
import _ "github.com/namesake-io/namesake/cmd/agent"
!! internal/hub/hub.go: imports cmd/agent
== sandbox/internal/fleet/fleet.go
package fleet
import _ "github.com/namesake-io/namesake/internal/cli"
import _ "github.com/namesake-io/namesake/sandbox/internal/pki"
!! sandbox/internal/fleet/fleet.go: imports internal/cli
`},
	{"api stands alone", `
== api/work/v1alpha1/types.go
package v1alpha1
import (
	_ "fmt"
	_ "github.com/namesake-io/namesake/api/cluster/v1alpha1"
	_ "k8s.io/api/core/v1"
	_ "k8s.io/apimachinery/pkg/runtime"
	_ "k8s.io/apiserver/pkg/server"
	_ "sigs.k8s.io/controller-runtime/pkg/scheme"
)
!! api/work/v1alpha1/types.go: imports k8s.io/apiserver/pkg/server
!! api/work/v1alpha1/types.go: imports sigs.k8s.io/controller-runtime/pkg/scheme
== api/work/v1alpha1/types_test.go
package v1alpha1
import _ "github.com/google/go-cmp/cmp"
`},
	{"the core is pure", `
== internal/controller/one/observe.go
package one
import _ "context"
== internal/controller/one/plan.go
package one
import "k8s.io/utils/set"
import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
import _ "sigs.k8s.io/controller-runtime/pkg/client"
var now = metav1.Now()
!! internal/controller/one/plan.go: imports sigs.k8s.io/controller-runtime/pkg/client
== internal/discovery/plan.go
package discovery
import "context"
import _ "net/netip"
import _ "net/http"
import clock "time"
import _ "github.com/google/go-cmp/cmp"
import _ "k8s.io/client-go/tools/cache"
var limit = 2 * clock.Second
var start = clock.Now
!! internal/discovery/plan.go: imports context
!! internal/discovery/plan.go: imports net/http
!! internal/discovery/plan.go: imports github.com/google/go-cmp/cmp
!! internal/discovery/plan.go: imports k8s.io/client-go/tools/cache
== internal/discovery/plan_test.go
package discovery
import _ "math/rand/v2"
!! internal/controller/one/plan.go:5: reads the clock by Now
!! internal/discovery/plan.go:9: reads the clock by Now
`},
	{"black-box tests stay outside", `
== test/bench/bench.go
package main
import _ "github.com/namesake-io/namesake/sandbox/internal/fleet"
!! test/bench/bench.go: imports sandbox/internal/fleet
== test/e2e/e2e_test.go
package e2e
import _ "github.com/namesake-io/namesake/api/work/v1alpha1"
import _ "github.com/namesake-io/namesake/internal/discovery"
!! test/e2e/e2e_test.go: imports internal/discovery
`},
	{"one package writes", `
== internal/apply/apply.go
package apply
func f() { c.Create(ctx, object) }
== internal/controller/one/apply.go
package one
func f() {
	apply.Create(ctx, object)
	r.writer.Delete(ctx, object)
	r.Client.Create(ctx, object)
	r.Status().Update(ctx, object)
	services.Namespace(n).Delete(context.Background(), name, options)
	reader.Get(ctx, key, object)
	cache.Delete(key)
	os.Create(name)
	handler.Update(memberCtx, event, queue)
}
!! internal/controller/one/apply.go:5: calls Client.Create(ctx, …)
!! internal/controller/one/apply.go:6: calls Status.Update(ctx, …)
!! internal/controller/one/apply.go:7: calls Namespace.Delete(ctx, …)
!! internal/controller/one/apply.go:11: calls handler.Update(ctx, …)
== internal/controller/one/apply_test.go
package one
func f() { c.Create(ctx, object) }
`},
	{"controllers have the same files", `
== internal/controller/doc.go
package controller
!! internal/controller/doc.go: is not in a folder internal/controller/<name>
== internal/controller/one/controller.go
package one
== internal/controller/one/doc.go
package one
== internal/controller/one/names.go
package one
!! internal/controller/one/names.go: is no name for a controller's file
== internal/controller/one/names_test.go
package one
== internal/controller/one/sub/plan.go
package sub
!! internal/controller/one/sub/plan.go: is not in a folder internal/controller/<name>
== internal/controller/two/plan.go
package two
!! internal/controller/two: has no doc.go
!! internal/controller/two: has no controller.go
`},
	{"controllers say what they touch", `
== internal/controller/one/doc.go
// Package one does one thing.
//
// Watches: this. It also Owns that, in the middle of a line.
//
// Reads: this.
//
// Writes: this.
//
// Fails: so.
package one
!! internal/controller/one/doc.go: has no line that begins with "Owns"
== internal/controller/two/doc.go
// Package two does another thing.
//
// Watches, Reads, Owns: this.
//
//	Writes: that.
//
// Reads: all.
//
// Owns: all.
//
// Fails: never.
package two
!! internal/controller/two/doc.go: has no line that begins with "Writes"
`},
	{"names say something", `
== internal/apply/helpers.go
package apply
!! internal/apply/helpers.go: is a file named helpers
== internal/database/database.go
package database
== internal/misc/a.go
package a
!! internal/misc/a.go: is in a folder named misc
== internal/names/names.go
package nameutil
!! internal/names/names.go: is in a package named nameutil
== sandbox/internal/fleet/utils_test.go
package fleet_test
!! sandbox/internal/fleet/utils_test.go: is a file named utils_test
`},
	{"main is thin", `
== cmd/agent/main.go
package main
{{lines 59}}
== cmd/controller-manager/main.go
package main
{{lines 60}}
!! cmd/controller-manager/main.go: has 61 lines, more than 60
== sandbox/cmd/sandbox/main.go
package main
{{lines 60}}
!! sandbox/cmd/sandbox/main.go: has 61 lines, more than 60
`},
	{"files and functions are short", `
== internal/a/a.go
package a
{{lines 600}}
!! internal/a/a.go: has 601 lines, more than 600
== internal/a/a_test.go
package a
func TestLong() {
{{lines 81}}
}
== internal/a/b.go
package a
func fits() {
{{lines 80}}
}
func (b *B) Long() {
{{lines 81}}
}
!! internal/a/b.go:84: Long has 81 lines, more than 80
== internal/a/zz_generated.deepcopy.go
// Code generated by controller-gen. DO NOT EDIT.

package a
{{lines 900}}
`},
	{"signatures are short", `
== internal/a/a.go
package a
func fits(a, b int, c, d, e string) (f, g int, err error)
func (a *A) wide(a, b int, c, d, e string, f bool)
func many() (a, b, c int, err error)
!! internal/a/a.go:3: wide has 6 parameters, more than 5
!! internal/a/a.go:4: many has 4 results, more than 3
`},
	{"no init functions", `
== api/work/v1alpha1/zz_generated.go
// Code generated by a tool. DO NOT EDIT.

package v1alpha1
func init() {}
== internal/a/a.go
package a
func (a *A) init() {}
func init() {}
!! internal/a/a.go:3: declares init
`},
	{"no context in a struct", `
== internal/a/a.go
package a
import std "context"
type A struct {
	run func(context std.Context)
	std.Context
	stop std.CancelFunc
	in struct { ctx std.Context }
}
!! internal/a/a.go:5: keeps a context in a struct
!! internal/a/a.go:7: keeps a context in a struct
`},
	{"no sleep", `
== internal/a/a.go
package a
import "time"
func f() { clock.Sleep(time.Second) }
== sandbox/internal/a/a_test.go
package a
import "testing/synctest"
import "time"
func f() { synctest.Test(t, func() { time.Sleep(time.Hour) }) }
func g() { wait(time.Sleep) }
!! sandbox/internal/a/a_test.go:5: uses time.Sleep
`},
	{"no forks", `
== go.mod
module github.com/namesake-io/namesake

replace example.com/a v1.0.0 => ../a // a local copy
!! go.mod: replaces example.com/a by ../a
== sandbox/go.mod
module github.com/namesake-io/namesake/sandbox

replace (
	k8s.io/api => k8s.io/api v0.37.2
	github.com/namesake-io/namesake => ../
	example.com/b => example.com/fork v1.2.3
)
!! sandbox/go.mod: replaces example.com/b by example.com/fork
`},
	{"waivers are rare", `
== internal/a/a.go
package a
var a int //nolint:unused // needed later
var b = "//nolint:unused"
//nolint:unused // needed later
var c int
!! internal/a/a.go:2: is a waiver
!! internal/a/a.go:4: is a waiver
== internal/a/zz_generated.go
// Code generated by a tool. DO NOT EDIT.

package a
var d int //nolint:all
`},
	{"text is for everyone", `
== README.md
Types are in api/work/v1alpha1 and ./work/shared, and in $DIR/work/ too.
See /wo` + `rk/main for more.
See file:///ro` + `ot/x for more.
!! README.md:2: says " /wo` + `rk/"
== docs/a.yaml
path: "/ro` + `ot/.kube/config"
by: Clau` + `de
!! docs/a.yaml:1: says "\"/ro` + `ot/"
!! docs/a.yaml:2: says "Clau` + `de"
`},
}
