package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Cluster is a joined cluster, called a member.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=clusters,scope=Cluster,categories=karmada-io
// +kubebuilder:printcolumn:name="VERSION",type=string,JSONPath=`.status.kubernetesVersion`
// +kubebuilder:printcolumn:name="MODE",type=string,JSONPath=`.spec.syncMode`
// +kubebuilder:printcolumn:name="READY",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="AGE",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="APIENDPOINT",type=string,JSONPath=`.spec.apiEndpoint`,priority=1
// +kubebuilder:printcolumn:name="REASON",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`,priority=1
// +kubebuilder:validation:XValidation:rule="self.metadata.name.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$') && size(self.metadata.name) <= 48",message="metadata.name must be a DNS-1123 label (lower case letters, digits and '-', no dots) of at most 48 characters, since it becomes part of the names of namespaces and slices"
type Cluster struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec says how the hub and the member reach each other.
	Spec ClusterSpec `json:"spec"`

	// Status is what the hub knows of the member. Written by Namesake.
	// +optional
	Status ClusterStatus `json:"status,omitempty"`
}

// ClusterList is a list of Clusters.
//
// +kubebuilder:object:root=true
type ClusterList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Cluster `json:"items"`
}

// ClusterSpec says how the hub and the member reach each other. Fields that are
// not modelled here are preserved.
//
// +kubebuilder:pruning:PreserveUnknownFields
type ClusterSpec struct {
	// ID identifies the member itself, however it is named: the UID of its
	// kube-system namespace.
	// +optional
	ID string `json:"id,omitempty"`

	// SyncMode says who calls whom: Push, the hub calls the member; Pull, an
	// agent in the member calls the hub.
	SyncMode ClusterSyncMode `json:"syncMode"`

	// APIEndpoint is the URL of the member's API server, for example
	// https://10.0.0.1:6443. Required in Push mode.
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:XValidation:rule="!self.contains('://') || (isURL(self) && url(self).getScheme() in ['https', 'http'] && url(self).getHost() != '')",message="apiEndpoint must be the URL of an API server, for example https://10.0.0.1:6443"
	APIEndpoint string `json:"apiEndpoint,omitempty"`

	// SecretRef names the Secret with the credential for the member: keys
	// "token" and "caBundle".
	// +optional
	SecretRef *LocalSecretReference `json:"secretRef,omitempty"`

	// ImpersonatorSecretRef names a Secret with a credential that may
	// impersonate users. Kept for compatibility; Namesake does not use it.
	// +optional
	ImpersonatorSecretRef *LocalSecretReference `json:"impersonatorSecretRef,omitempty"`

	// InsecureSkipTLSVerification switches off the check of the member's
	// certificate. For tests only.
	// +optional
	InsecureSkipTLSVerification bool `json:"insecureSkipTLSVerification,omitempty"`

	// ProxyURL is an HTTP, HTTPS or SOCKS5 proxy on the way to the member.
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:XValidation:rule="self == '' || (isURL(self) && url(self).getScheme() in ['http', 'https', 'socks5'] && url(self).getHost() != '')",message="proxyURL must be the URL of a proxy, for example http://10.0.0.2:3128; its scheme is http, https or socks5"
	ProxyURL string `json:"proxyURL,omitempty"`

	// ProxyHeader is sent to the proxy with CONNECT.
	// +optional
	ProxyHeader map[string]string `json:"proxyHeader,omitempty"`

	// Provider of the cluster, for example a cloud's name.
	// +optional
	Provider string `json:"provider,omitempty"`

	// Region the cluster stands in.
	// +optional
	Region string `json:"region,omitempty"`

	// Zone the cluster stands in.
	//
	// Deprecated: use zones.
	// +optional
	Zone string `json:"zone,omitempty"`

	// Zones the cluster stands in.
	// +optional
	// +listType=atomic
	Zones []string `json:"zones,omitempty"`

	// Taints of the cluster.
	// +optional
	// +listType=atomic
	Taints []corev1.Taint `json:"taints,omitempty"`
}

// ClusterSyncMode says who calls whom.
//
// +kubebuilder:validation:Enum=Push;Pull
type ClusterSyncMode string

const (
	// Push: the hub calls the member's API server.
	Push ClusterSyncMode = "Push"
	// Pull: an agent in the member calls the hub.
	Pull ClusterSyncMode = "Pull"
)

// LocalSecretReference names a Secret on the hub.
type LocalSecretReference struct {
	// Namespace of the Secret.
	Namespace string `json:"namespace"`
	// Name of the Secret.
	Name string `json:"name"`
}

// ClusterStatus is what the hub knows of a member. Fields that are not modelled
// here are preserved.
//
// +kubebuilder:pruning:PreserveUnknownFields
type ClusterStatus struct {
	// KubernetesVersion of the member's API server, for example v1.37.2.
	// +optional
	KubernetesVersion string `json:"kubernetesVersion,omitempty"`

	// APIEnablements are the kinds that the member serves.
	// +optional
	// +listType=atomic
	APIEnablements []APIEnablement `json:"apiEnablements,omitempty"`

	// Conditions: Ready, CompleteAPIEnablements, SlicesWatched.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// NodeSummary counts the member's nodes.
	// +optional
	NodeSummary *NodeSummary `json:"nodeSummary,omitempty"`
}

// APIEnablement is one group and version that a member serves.
type APIEnablement struct {
	// GroupVersion, for example discovery.k8s.io/v1.
	GroupVersion string `json:"groupVersion"`
	// Resources of that group and version.
	// +optional
	// +listType=atomic
	Resources []APIResource `json:"resources,omitempty"`
}

// APIResource is one resource that a member serves.
type APIResource struct {
	// Name is the plural name, for example endpointslices.
	Name string `json:"name"`
	// Kind is the kind, for example EndpointSlice.
	Kind string `json:"kind"`
}

// NodeSummary counts nodes.
type NodeSummary struct {
	// TotalNum is the number of nodes.
	// +optional
	TotalNum int32 `json:"totalNum,omitempty"`
	// ReadyNum is the number of ready nodes.
	// +optional
	ReadyNum int32 `json:"readyNum,omitempty"`
}
