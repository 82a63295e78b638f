package v1alpha1

// Finalizers of Works.
const (
	// ExecutionFinalizer goes when the member no longer holds the objects.
	ExecutionFinalizer = "karmada.io/execution-controller"
	// DispatchFinalizer is found on collected Works made by Karmada. Namesake
	// derives what consumers hold and needs no such guard: it takes the
	// finalizer off and never adds it.
	DispatchFinalizer = "karmada.io/mcs-endpointslice-dispatch-controller"
)

// Labels and annotations of Works and of the objects that they put in members.
const (
	// NameAnnotation names, on an object in a member, its Work.
	NameAnnotation = "work.karmada.io/name"
	// NamespaceAnnotation is the namespace beside NameAnnotation.
	NamespaceAnnotation = "work.karmada.io/namespace"
	// ConflictResolutionAnnotation on a manifest: what to do with a foreign
	// object that already stands in the member.
	ConflictResolutionAnnotation = "work.karmada.io/conflict-resolution"
	// ConflictAbort leaves the foreign object alone and reports it.
	ConflictAbort = "abort"
	// ConflictOverwrite takes the foreign object over.
	ConflictOverwrite = "overwrite"
	// ConflictAdopt leaves the foreign object alone and is content with it.
	ConflictAdopt = "adopt"

	// TemplateUIDAnnotation is the UID of the object that another was made from.
	TemplateUIDAnnotation = "resourcetemplate.karmada.io/uid"
	// TemplateGenerationAnnotation is the generation beside it.
	TemplateGenerationAnnotation = "resourcetemplate.karmada.io/generation"

	// ManagedLabel marks, with ManagedValue, objects that the system keeps.
	ManagedLabel = "karmada.io/managed"
	// ExecutionFieldManager is the field manager of objects that a Work put into a
	// member. It marks them even when all labels and annotations are edited away.
	ExecutionFieldManager = "namesake-execution"
	// SystemLabel marks, with ManagedValue, objects of the system itself.
	SystemLabel = "karmada.io/system"
	// ManagedValue is the value of both.
	ManagedValue = "true"
)

// Condition types of a Work.
const (
	// ConditionApplied is true when the member holds every object as the Work
	// has it.
	ConditionApplied = "Applied"
	// ConditionCollected is true, on an order to collect, once the hub holds every
	// slice that it asks for. From then on what is missing is gone.
	ConditionCollected = "Collected"
)

// Condition reasons of a Work.
const (
	// ReasonAppliedSuccessful: the member holds every object.
	ReasonAppliedSuccessful = "AppliedSuccessful"
	// ReasonAdopted: a foreign object of that name stands there and is used.
	ReasonAdopted = "Adopted"
	// ReasonConflict: a foreign object of that name stands there and is not ours to change.
	ReasonConflict = "Conflict"
	// ReasonNamespaceNotFound: the object's namespace is missing, or going, in the member.
	ReasonNamespaceNotFound = "NamespaceNotFound"
	// ReasonClusterUnreachable: the hub cannot reach the member.
	ReasonClusterUnreachable = "ClusterUnreachable"
	// ReasonInvalidManifest: a manifest is no object that can be applied.
	ReasonInvalidManifest = "InvalidManifest"
	// ReasonAppliedFailed: the member refused a write.
	ReasonAppliedFailed = "AppliedFailed"
	// ReasonCollectedSuccessful: the hub holds every slice that was asked for.
	ReasonCollectedSuccessful = "CollectedSuccessful"
)

// Event reasons of a Work.
const (
	EventSyncSucceed = "SyncSucceed"
	EventSyncFailed  = "SyncFailed"
)
