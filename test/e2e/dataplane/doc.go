// Package dataplane holds the end-to-end tests that send packets: kubeconfigs
// and `sandbox exec` in, answers of pods out. They need root, for the data plane
// of the sandbox; without it they are skipped and say so.
//
// One fleet of three members serves all tests, each in namespaces of its own,
// one after the other.
package dataplane
