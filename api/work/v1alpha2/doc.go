// Package v1alpha2 holds ResourceBinding: in which members a resource stands.
//
// +kubebuilder:object:generate=true
// +groupName=work.karmada.io
package v1alpha2
