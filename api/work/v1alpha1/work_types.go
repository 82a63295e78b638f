package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Work holds objects for one member: the member is named by the Work's
// namespace (karmada-es-<member>).
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=works,shortName=wk,scope=Namespaced,categories=karmada-io
// +kubebuilder:printcolumn:name="WORKLOAD-KIND",type=string,JSONPath=`.spec.workload.manifests[*].kind`
// +kubebuilder:printcolumn:name="APPLIED",type=string,JSONPath=`.status.conditions[?(@.type=="Applied")].status`
// +kubebuilder:printcolumn:name="AGE",type=date,JSONPath=`.metadata.creationTimestamp`
type Work struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec holds the objects.
	Spec WorkSpec `json:"spec"`

	// Status tells what became of them in the member.
	// +optional
	Status WorkStatus `json:"status,omitempty"`
}

// WorkList is a list of Works.
//
// +kubebuilder:object:root=true
type WorkList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Work `json:"items"`
}

// WorkSpec holds the objects of a Work.
type WorkSpec struct {
	// Workload is what stands, or shall stand, in the member.
	// +optional
	Workload WorkloadTemplate `json:"workload,omitempty"`

	// SuspendDispatching true: the Work is the hub's memory of the member and is
	// never applied to it.
	// +optional
	SuspendDispatching *bool `json:"suspendDispatching,omitempty"`

	// PreserveResourcesOnDeletion true: the objects stay in the member when the
	// Work goes; only our marks are taken off them.
	// +optional
	PreserveResourcesOnDeletion *bool `json:"preserveResourcesOnDeletion,omitempty"`
}

// WorkloadTemplate is a list of objects.
type WorkloadTemplate struct {
	// Manifests are the objects, whole.
	// +optional
	// +listType=atomic
	Manifests []Manifest `json:"manifests,omitempty"`
}

// Manifest is one object of any kind.
//
// +kubebuilder:pruning:PreserveUnknownFields
type Manifest struct {
	runtime.RawExtension `json:",inline"`
}

// WorkStatus tells what became of a Work's objects in the member.
type WorkStatus struct {
	// Conditions: Applied, Progressing, Available, Degraded, Dispatching.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// ManifestStatuses is the status of each object in the member.
	// +optional
	// +listType=atomic
	ManifestStatuses []ManifestStatus `json:"manifestStatuses,omitempty"`
}

// ManifestStatus is the status of one object in the member.
type ManifestStatus struct {
	// Identifier says which object.
	Identifier ResourceIdentifier `json:"identifier"`

	// Status is the object's own status in the member.
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	Status *runtime.RawExtension `json:"status,omitempty"`

	// Health of the object, as far as it can be told.
	// +optional
	Health ResourceHealth `json:"health,omitempty"`
}

// ResourceIdentifier says which object of a Work.
type ResourceIdentifier struct {
	// Ordinal is the index in spec.workload.manifests, from 0.
	Ordinal int `json:"ordinal"`
	// Group of the resource.
	// +optional
	Group string `json:"group,omitempty"`
	// Version of the resource.
	Version string `json:"version"`
	// Kind of the object.
	Kind string `json:"kind"`
	// Resource is the plural name.
	Resource string `json:"resource"`
	// Namespace of the object; empty for a cluster-scoped one.
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// Name of the object.
	Name string `json:"name"`
}

// ResourceHealth is the health of an object in a member.
//
// +kubebuilder:validation:Enum=Healthy;Unhealthy;Unknown
type ResourceHealth string

const (
	// ResourceHealthy: the object works.
	ResourceHealthy ResourceHealth = "Healthy"
	// ResourceUnhealthy: the object does not work.
	ResourceUnhealthy ResourceHealth = "Unhealthy"
	// ResourceUnknown: nobody can tell.
	ResourceUnknown ResourceHealth = "Unknown"
)
