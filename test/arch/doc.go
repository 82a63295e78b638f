// Package arch checks the layout of this repository: which package may import
// which, where code may write to an API server, what files are called and how
// long they may be. arch_test.go at the root runs every rule on the whole tree.
//
// A rule is a function from a [Tree] to findings. It reads syntax only, no
// types, so it is fast and works on code that does not compile yet. To add a
// rule, append it to [Rules] and give its test an example that breaks it.
package arch
