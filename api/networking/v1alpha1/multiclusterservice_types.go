package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// MultiClusterService gives the Service of its own name and namespace one name
// in many clusters: callers in consumer clusters reach the backends that run in
// provider clusters.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=multiclusterservices,shortName=mcs,scope=Namespaced,categories=karmada-io
// +kubebuilder:printcolumn:name="TYPES",type=string,JSONPath=`.spec.types[0]`
// +kubebuilder:printcolumn:name="PROVIDERS",type=string,JSONPath=`.status.providers`
// +kubebuilder:printcolumn:name="CONSUMERS",type=string,JSONPath=`.status.consumers`
// +kubebuilder:printcolumn:name="READY",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="REASON",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`,priority=1
// +kubebuilder:printcolumn:name="AGE",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$') && size(self.metadata.name) <= 63",message="metadata.name is also the name of the Service: a DNS-1035 label (lower case letters, digits and '-', starting with a letter, at most 63 characters)"
type MultiClusterService struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec says which clusters provide the service, which consume it, and how.
	Spec MultiClusterServiceSpec `json:"spec"`

	// Status tells what stands in the clusters. Written by Namesake.
	// +optional
	Status MultiClusterServiceStatus `json:"status,omitempty"`
}

// MultiClusterServiceList is a list of MultiClusterServices.
//
// +kubebuilder:object:root=true
type MultiClusterServiceList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []MultiClusterService `json:"items"`
}

// MultiClusterServiceSpec is the wish of the person who made the object.
type MultiClusterServiceSpec struct {
	// Types says how the service is exposed. Exactly one; it cannot be changed,
	// since another type is another meaning: delete the object and make a new one.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=1
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="spec.types cannot be changed: delete this MultiClusterService and create one of the other type"
	// +listType=atomic
	Types []ExposureType `json:"types"`

	// Ports exposes only these ports of the Service. Empty means all.
	// +optional
	// +kubebuilder:validation:MaxItems=100
	// +kubebuilder:validation:XValidation:rule="self.all(p, self.exists_one(q, q.port == p.port && (has(q.name) ? q.name : '') == (has(p.name) ? p.name : '')))",message="spec.ports must not name a port twice"
	// +kubebuilder:validation:XValidation:rule="self.all(p, !has(p.name) || p.name == '' || self.exists_one(q, has(q.name) && q.name == p.name))",message="spec.ports must not use a name twice"
	// +listType=atomic
	Ports []ExposurePort `json:"ports,omitempty"`

	// ProviderClusters are the clusters whose pods back the service. Empty means
	// every joined cluster.
	// +optional
	// +kubebuilder:validation:MaxItems=1000
	// +listType=atomic
	ProviderClusters []ClusterSelector `json:"providerClusters,omitempty"`

	// ConsumerClusters are the clusters whose pods may call the service. Empty
	// means every joined cluster.
	// +optional
	// +kubebuilder:validation:MaxItems=1000
	// +listType=atomic
	ConsumerClusters []ClusterSelector `json:"consumerClusters,omitempty"`

	// DiscoveryStrategy says which backends a consumer that is also a provider
	// prefers.
	// +optional
	// +kubebuilder:default=RemoteAndLocal
	DiscoveryStrategy DiscoveryStrategy `json:"discoveryStrategy,omitempty"`

	// ConflictResolution says what happens to a Service of this name that
	// already stands in a cluster and was not made by Namesake.
	// +optional
	// +kubebuilder:default=Adopt
	ConflictResolution ConflictResolution `json:"conflictResolution,omitempty"`

	// UnreachableProviders says what happens to the endpoints of a provider
	// cluster whose control plane cannot be reached.
	// +optional
	UnreachableProviders *UnreachableProviders `json:"unreachableProviders,omitempty"`

	// ServiceProvisionClusters names provider clusters. Honoured when
	// providerClusters is empty.
	//
	// Deprecated: use providerClusters.
	// +optional
	// +listType=atomic
	ServiceProvisionClusters []ClusterName `json:"serviceProvisionClusters,omitempty"`

	// ServiceConsumptionClusters names consumer clusters. Honoured when
	// consumerClusters is empty.
	//
	// Deprecated: use consumerClusters.
	// +optional
	// +listType=atomic
	ServiceConsumptionClusters []ClusterName `json:"serviceConsumptionClusters,omitempty"`

	// Range names consumer clusters. Honoured when consumerClusters and
	// serviceConsumptionClusters are empty.
	//
	// Deprecated: use consumerClusters.
	// +optional
	Range *ExposureRange `json:"range,omitempty"`
}

// ClusterName is the name of a joined cluster: a DNS-1123 label of at most 48
// characters.
//
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=48
// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
type ClusterName string

// ExposureType says how a service is exposed to callers.
//
// +kubebuilder:validation:Enum=CrossCluster;LoadBalancer
type ExposureType string

const (
	// ExposureTypeCrossCluster makes the service callable by its own name from
	// the pods of other clusters.
	ExposureTypeCrossCluster ExposureType = "CrossCluster"
	// ExposureTypeLoadBalancer makes the backends of all clusters available to a
	// load balancer in front of them.
	ExposureTypeLoadBalancer ExposureType = "LoadBalancer"
)

// ExposurePort names one port of the Service.
type ExposurePort struct {
	// Name of the port in the Service. May be left out for a Service with a
	// single unnamed port.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^([a-z0-9]([-a-z0-9]*[a-z0-9])?)?$')",message="a port's name is a DNS-1123 label: lower case letters, digits and '-'"
	Name string `json:"name,omitempty"`

	// Port is the port number of the Service (not of the pods).
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	Port int32 `json:"port"`
}

// ClusterSelector selects clusters, by name or by label.
//
// +kubebuilder:validation:XValidation:rule="has(self.name) != has(self.labelSelector)",message="give either a name or a labelSelector"
type ClusterSelector struct {
	// Name of one cluster.
	// +optional
	Name ClusterName `json:"name,omitempty"`

	// LabelSelector selects clusters by the labels of their Cluster objects.
	// +optional
	LabelSelector *metav1.LabelSelector `json:"labelSelector,omitempty"`
}

// ExposureRange is the deprecated way to name consumers.
type ExposureRange struct {
	// ClusterNames are the consumer clusters.
	// +optional
	// +listType=atomic
	ClusterNames []ClusterName `json:"clusterNames,omitempty"`
}

// DiscoveryStrategy says which backends a consumer prefers.
//
// +kubebuilder:validation:Enum=RemoteAndLocal;LocalFirst
type DiscoveryStrategy string

const (
	// DiscoveryRemoteAndLocal spreads calls over the backends of all providers.
	DiscoveryRemoteAndLocal DiscoveryStrategy = "RemoteAndLocal"
	// DiscoveryLocalFirst prefers the caller's own cluster while it has a ready
	// backend.
	DiscoveryLocalFirst DiscoveryStrategy = "LocalFirst"
)

// ConflictResolution says what happens to a Service that already stands in a
// cluster.
//
// +kubebuilder:validation:Enum=Adopt;Abort;Overwrite
type ConflictResolution string

const (
	// ConflictAdopt keeps the Service as it is and adds remote endpoints to it.
	ConflictAdopt ConflictResolution = "Adopt"
	// ConflictAbort leaves the cluster alone and says so in a condition.
	ConflictAbort ConflictResolution = "Abort"
	// ConflictOverwrite replaces the Service's spec by the template's.
	ConflictOverwrite ConflictResolution = "Overwrite"
)

// UnreachableProviders is the policy for providers whose control plane cannot
// be reached. An unreachable API server says nothing about its pods, so the
// default keeps them.
type UnreachableProviders struct {
	// Policy for the endpoints of an unreachable provider.
	// +optional
	// +kubebuilder:default=Retain
	Policy UnreachablePolicy `json:"policy,omitempty"`

	// GracePeriod is how long a provider must be unreachable before a policy
	// other than Retain takes effect, for example "5m".
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=20
	// +kubebuilder:validation:XValidation:rule="self.matches('^(0|([0-9]{1,6}([.][0-9]{1,9})?(ms|s|m|h))+)$')",message="gracePeriod must be a duration of zero or more, for example 5m or 1h30m"
	GracePeriod *metav1.Duration `json:"gracePeriod,omitempty"`
}

// UnreachablePolicy says what happens to the endpoints of an unreachable
// provider.
//
// +kubebuilder:validation:Enum=Retain;MarkNotReady;Withdraw
type UnreachablePolicy string

const (
	// UnreachableRetain keeps the endpoints as they were last seen.
	UnreachableRetain UnreachablePolicy = "Retain"
	// UnreachableMarkNotReady keeps them, marked not ready, after the grace period.
	UnreachableMarkNotReady UnreachablePolicy = "MarkNotReady"
	// UnreachableWithdraw removes them after the grace period.
	UnreachableWithdraw UnreachablePolicy = "Withdraw"
)

// MultiClusterServiceStatus is a core/v1 ServiceStatus with a report per cluster.
type MultiClusterServiceStatus struct {
	corev1.ServiceStatus `json:",inline"`

	// Providers is a short list of the selected provider clusters, for people.
	// +optional
	Providers string `json:"providers,omitempty"`

	// Consumers is a short list of the selected consumer clusters, for people.
	// +optional
	Consumers string `json:"consumers,omitempty"`

	// Clusters reports on each selected cluster.
	// +optional
	// +listType=map
	// +listMapKey=name
	Clusters []ClusterServiceStatus `json:"clusters,omitempty"`
}

// ClusterServiceStatus reports on the service in one cluster.
type ClusterServiceStatus struct {
	// Name of the cluster.
	Name string `json:"name"`

	// Roles of the cluster for this service.
	// +optional
	// +listType=set
	Roles []ClusterRole `json:"roles,omitempty"`

	// CollectedEndpoints is how many endpoints the hub knows from this provider.
	// +optional
	CollectedEndpoints int32 `json:"collectedEndpoints,omitempty"`

	// ReadyEndpoints is how many of the collected endpoints are ready.
	// +optional
	ReadyEndpoints int32 `json:"readyEndpoints,omitempty"`

	// DispatchedEndpoints is how many endpoints of other clusters stand in this
	// consumer.
	// +optional
	DispatchedEndpoints int32 `json:"dispatchedEndpoints,omitempty"`

	// LastTransitionTime is when the reason last changed.
	// +optional
	LastTransitionTime *metav1.Time `json:"lastTransitionTime,omitempty"`

	// Reason is one CamelCase word for the state of the service in this cluster.
	// +optional
	Reason string `json:"reason,omitempty"`

	// Message says what is wrong and what helps. Empty when all is well.
	// +optional
	Message string `json:"message,omitempty"`
}

// ClusterRole is what a cluster is to a service.
//
// +kubebuilder:validation:Enum=Provider;Consumer
type ClusterRole string

const (
	// RoleProvider is a cluster whose pods back the service.
	RoleProvider ClusterRole = "Provider"
	// RoleConsumer is a cluster whose pods call the service.
	RoleConsumer ClusterRole = "Consumer"
)
