// Package v1alpha1 holds the kind that users write to give a Service one name
// in many clusters: MultiClusterService.
//
// +kubebuilder:object:generate=true
// +groupName=networking.karmada.io
package v1alpha1
