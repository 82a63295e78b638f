// Package v1alpha1 holds the kind that describes a joined cluster: Cluster.
//
// +kubebuilder:object:generate=true
// +groupName=cluster.karmada.io
package v1alpha1
