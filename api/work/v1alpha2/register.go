package v1alpha2

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion identifies the kinds of this package.
var GroupVersion = schema.GroupVersion{Group: "work.karmada.io", Version: "v1alpha2"}

// AddToScheme registers the kinds of this package with a scheme.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion, &ResourceBinding{}, &ResourceBindingList{})
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}
