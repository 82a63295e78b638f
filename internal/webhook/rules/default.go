package rules

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	networkingv1alpha1 "github.com/namesake-io/namesake/api/networking/v1alpha1"
)

// Default fills in what a MultiClusterService does not say: its permanent id,
// which newID makes, and the values that a missing field stands for. old is the
// object before an update, nil on creation: an id that the object had, it keeps.
//
// The object may have any shape, since the schema is checked after this: what
// does not have the shape of a MultiClusterService stays as it is.
func Default(obj, old *unstructured.Unstructured, newID func() string) {
	defaultID(obj, old, newID)
	defaultField(obj, string(networkingv1alpha1.DiscoveryRemoteAndLocal), "spec", "discoveryStrategy")
	defaultField(obj, string(networkingv1alpha1.ConflictAdopt), "spec", "conflictResolution")
	if _, found, err := unstructured.NestedMap(obj.Object, "spec", "unreachableProviders"); err == nil && found {
		defaultField(obj, string(networkingv1alpha1.UnreachableRetain), "spec", "unreachableProviders", "policy")
	}
}

// defaultID makes sure that the object has an id, and always the same.
func defaultID(obj, old *unstructured.Unstructured, newID func() string) {
	id := obj.GetLabels()[networkingv1alpha1.PermanentIDLabel]
	var had string
	if old != nil {
		had = old.GetLabels()[networkingv1alpha1.PermanentIDLabel]
	}
	switch {
	case had != "":
		id = had
	case id == "":
		id = newID()
	}
	path := []string{"metadata", "labels", networkingv1alpha1.PermanentIDLabel}
	if is, _, err := unstructured.NestedString(obj.Object, path...); err == nil && is != id {
		set(obj, id, path...)
	}
}

// defaultField sets a field that is missing or empty.
func defaultField(obj *unstructured.Unstructured, value string, path ...string) {
	if is, _, err := unstructured.NestedString(obj.Object, path...); err == nil && is == "" {
		set(obj, value, path...)
	}
}

// set sets a field. It does nothing where something else than an object is on the
// way to it, which the schema will refuse.
func set(obj *unstructured.Unstructured, value string, path ...string) {
	_ = unstructured.SetNestedField(obj.Object, value, path...)
}
