package v1alpha2

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// ResourceBinding says in which members a resource of the hub stands.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=resourcebindings,shortName=rb,scope=Namespaced,categories=karmada-io
// +kubebuilder:printcolumn:name="RESOURCE",type=string,JSONPath=`.spec.resource.kind`
// +kubebuilder:printcolumn:name="FULLYAPPLIED",type=string,JSONPath=`.status.conditions[?(@.type=="FullyApplied")].status`
// +kubebuilder:printcolumn:name="AGE",type=date,JSONPath=`.metadata.creationTimestamp`
type ResourceBinding struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec names the resource and the members.
	Spec ResourceBindingSpec `json:"spec"`

	// Status tells how far the members hold it.
	// +optional
	Status ResourceBindingStatus `json:"status,omitempty"`
}

// ResourceBindingList is a list of ResourceBindings.
//
// +kubebuilder:object:root=true
type ResourceBindingList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []ResourceBinding `json:"items"`
}

// ResourceBindingSpec names a resource and the members that hold it. Fields that
// are not modelled here (placement and others) are preserved.
//
// +kubebuilder:pruning:PreserveUnknownFields
type ResourceBindingSpec struct {
	// Resource on the hub.
	Resource ObjectReference `json:"resource"`

	// Clusters that hold the resource.
	// +optional
	// +listType=atomic
	Clusters []TargetCluster `json:"clusters,omitempty"`

	// RequiredBy lists other claims on the resource, each with its own clusters.
	// +optional
	// +listType=atomic
	RequiredBy []BindingSnapshot `json:"requiredBy,omitempty"`

	// ConflictResolution says what happens to an object of this name that
	// already stands in a member.
	// +optional
	// +kubebuilder:default=Abort
	ConflictResolution ConflictResolution `json:"conflictResolution,omitempty"`
}

// ConflictResolution says what happens to a foreign object in a member. Adopt is
// an addition of Namesake's.
//
// +kubebuilder:validation:Enum=Abort;Overwrite;Adopt
type ConflictResolution string

const (
	// ConflictAbort leaves the foreign object alone and reports it.
	ConflictAbort ConflictResolution = "Abort"
	// ConflictOverwrite takes the foreign object over.
	ConflictOverwrite ConflictResolution = "Overwrite"
	// ConflictAdopt leaves the foreign object alone and is content with it.
	ConflictAdopt ConflictResolution = "Adopt"
)

// ObjectReference names an object on the hub.
type ObjectReference struct {
	// APIVersion of the object.
	APIVersion string `json:"apiVersion"`
	// Kind of the object.
	Kind string `json:"kind"`
	// Namespace of the object.
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// Name of the object.
	Name string `json:"name"`
	// UID of the object.
	// +optional
	UID types.UID `json:"uid,omitempty"`
	// ResourceVersion of the object.
	// +optional
	ResourceVersion string `json:"resourceVersion,omitempty"`
}

// TargetCluster is one member that holds the resource.
type TargetCluster struct {
	// Name of the member.
	Name string `json:"name"`
	// Replicas in that member, where the resource has replicas.
	// +optional
	Replicas int32 `json:"replicas,omitempty"`
}

// BindingSnapshot is another claim on the resource.
type BindingSnapshot struct {
	// Namespace of the claimant.
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// Name of the claimant.
	Name string `json:"name"`
	// Clusters that the claimant wants.
	// +optional
	// +listType=atomic
	Clusters []TargetCluster `json:"clusters,omitempty"`
}

// ResourceBindingStatus tells how far the members hold the resource. Fields that
// are not modelled here are preserved.
//
// +kubebuilder:pruning:PreserveUnknownFields
type ResourceBindingStatus struct {
	// Conditions: FullyApplied.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}
