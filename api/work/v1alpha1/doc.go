// Package v1alpha1 holds Work: objects that the hub keeps for one member,
// either to be applied there or, when suspended, as the hub's memory of it.
//
// +kubebuilder:object:generate=true
// +groupName=work.karmada.io
package v1alpha1
