package v1alpha1

// Labels and annotations of a MultiClusterService and of what is made for it.
const (
	// PermanentIDLabel identifies a MultiClusterService through backup and
	// restore. On the object itself, its Service, its binding and its Works.
	PermanentIDLabel = "multiclusterservice.karmada.io/permanent-id"
	// NameKey names the MultiClusterService: a label on Works, an annotation on
	// the Service and the binding.
	NameKey = "multiclusterservice.karmada.io/name"
	// NamespaceKey is the namespace beside NameKey.
	NamespaceKey = "multiclusterservice.karmada.io/namespace"
	// ClaimedByLabel says, on a Service, which kind claims it.
	ClaimedByLabel = "resourcetemplate.karmada.io/claimed-by"
	// ClaimedByMultiClusterService is the value of ClaimedByLabel and of the
	// managed-by labels for this kind.
	ClaimedByMultiClusterService = "MultiClusterService"
)

// Labels and annotations of slices.
const (
	// CollectedByLabel lists, on the Work of a collected slice, the kinds that
	// want it: dot-separated and sorted.
	CollectedByLabel = "endpointslice.karmada.io/managed-by"
	// ProvisionClusterAnnotation names the provider of a dispatched slice.
	ProvisionClusterAnnotation = "endpointslice.karmada.io/provision-cluster"
	// SliceGenerationAnnotation is the generation of the provider's slice.
	SliceGenerationAnnotation = "endpointslice.karmada.io/endpointslice-generation"
	// DispatchedManagedBy is the value of endpointslice.kubernetes.io/managed-by
	// on dispatched slices.
	DispatchedManagedBy = "endpointslice-dispatch-controller.karmada.io"
)

// Works between the hub and the agent of a pull member. Both kinds bear NameKey
// and NamespaceKey, which name the service.
const (
	// PullLabel says, on a Work in the execution namespace of a pull member, what
	// the hub tells the agent by it.
	PullLabel = "endpointslice.namesake.io/pull"
	// PullOrder: collect the slices of this service. The Work is suspended and
	// holds nothing; the agent answers with the condition Collected.
	PullOrder = "order"
	// PullDelivery: the Work holds slices of other clusters, as they shall stand
	// in the member; the agent answers with the condition Applied.
	PullDelivery = "delivery"
)

// Finalizers.
const (
	// Finalizer of a MultiClusterService: goes when everything it gave is gone.
	Finalizer = "karmada.io/multiclusterservice-controller"
)

// Condition types of a MultiClusterService.
const (
	// ConditionServiceApplied is true when the Service stands in every selected
	// cluster.
	ConditionServiceApplied = "ServiceApplied"
	// ConditionEndpointSliceCollected is true when the slices of every provider
	// are known to the hub.
	ConditionEndpointSliceCollected = "EndpointSliceCollected"
	// ConditionEndpointSliceDispatched is true when every consumer holds the
	// slices of every provider but itself.
	ConditionEndpointSliceDispatched = "EndpointSliceDispatched"
	// ConditionReady sums the others up.
	ConditionReady = "Ready"
)

// Condition reasons of a MultiClusterService. The first six are those of the
// wire contract; the rest make Ready and the reports per cluster precise.
const (
	ReasonServiceAppliedSucceed          = "ServiceAppliedSucceed"
	ReasonServiceAppliedFailed           = "ServiceAppliedFailed"
	ReasonEndpointSliceCollectedSucceed  = "EndpointSliceCollectedSucceed"
	ReasonEndpointSliceCollectedFailed   = "EndpointSliceCollectedFailed"
	ReasonEndpointSliceDispatchedSucceed = "EndpointSliceDispatchedSucceed"
	ReasonEndpointSliceDispatchedFailed  = "EndpointSliceDispatchedFailed"

	// ReasonAllReady: everything stands as it should.
	ReasonAllReady = "AllReady"
	// ReasonServiceNotFound: the hub has no Service of this name.
	ReasonServiceNotFound = "ServiceNotFound"
	// ReasonServiceUnsupported: the Service cannot be shared, for example ExternalName.
	ReasonServiceUnsupported = "ServiceUnsupported"
	// ReasonClusterNotFound: a selected cluster has not joined.
	ReasonClusterNotFound = "ClusterNotFound"
	// ReasonClusterUnreachable: the hub cannot reach a cluster's API server.
	ReasonClusterUnreachable = "ClusterUnreachable"
	// ReasonNamespaceNotFound: the namespace is missing, or going, in a cluster.
	ReasonNamespaceNotFound = "NamespaceNotFound"
	// ReasonAPIIncompatible: a cluster does not serve discovery.k8s.io/v1.
	ReasonAPIIncompatible = "APIIncompatible"
	// ReasonAddressConflict: two clusters claim one address.
	ReasonAddressConflict = "AddressConflict"
	// ReasonPortNotFound: spec.ports lists a port that the Service does not have.
	ReasonPortNotFound = "PortNotFound"
	// ReasonServiceConflict: a foreign Service of this name stands in a cluster.
	ReasonServiceConflict = "ServiceConflict"
	// ReasonProgressing: work is under way; nothing is known to be wrong.
	ReasonProgressing = "Progressing"
	// ReasonDeleting: the object is being deleted, and something that it gave still stands.
	ReasonDeleting = "Deleting"
	// ReasonWriteFailed: a cluster refused a write.
	ReasonWriteFailed = "WriteFailed"
)

// Event reasons of a MultiClusterService.
const (
	EventSyncServiceSucceed           = "SyncServiceSucceed"
	EventSyncServiceFailed            = "SyncServiceFailed"
	EventDispatchEndpointSliceSucceed = "DispatchEndpointSliceSucceed"
	EventDispatchEndpointSliceFailed  = "DispatchEndpointSliceFailed"
	EventClusterNotFound              = "ClusterNotFound"
	EventAPIIncompatible              = "APIIncompatible"
)
