package v1alpha1

import "strings"

const (
	// SystemNamespace holds, on the hub, the Secrets of members and, in a
	// member, the account that the hub uses there.
	SystemNamespace = "karmada-cluster"
	// ExecutionNamespacePrefix and a member's name make the name of the
	// namespace that holds that member's Works.
	ExecutionNamespacePrefix = "karmada-es-"
	// Finalizer of a Cluster: goes when the member holds nothing of ours.
	Finalizer = "karmada.io/cluster-controller"
	// ForceUnjoinAnnotation with value "true" on a Cluster that is being deleted:
	// do not wait for a member that cannot be reached; what stays in it is reported.
	ForceUnjoinAnnotation = "cluster.namesake.io/force-unjoin"
	// MaxNameLength of a Cluster, in characters.
	MaxNameLength = 48

	// AgentName is the account of an agent, in its execution namespace on the hub,
	// and in SystemNamespace of its own cluster that account's and that of the
	// Secret which leads to the hub.
	AgentName = "namesake-agent"
	// SecretServerKey is the key of the hub's URL in an agent's Secret,
	// SecretClusterKey that of the Cluster's name, and SecretExpirationKey that of
	// when the token ends, in RFC 3339.
	SecretServerKey     = "server"
	SecretClusterKey    = "cluster"
	SecretExpirationKey = "expiration"

	// SecretTokenKey is the key of the bearer token in a member's Secret.
	SecretTokenKey = "token"
	// SecretCABundleKey is the key of the PEM CA bundle in a member's Secret.
	SecretCABundleKey = "caBundle"
)

// Taints that tell why a member is passed over.
const (
	TaintNotReady      = "cluster.karmada.io/not-ready"
	TaintUnreachable   = "cluster.karmada.io/unreachable"
	TaintUnschedulable = "cluster.karmada.io/unschedulable"
)

// Condition types of a Cluster.
const (
	// ConditionReady is true when the member's API server answers and is ready.
	ConditionReady = "Ready"
	// ConditionCompleteAPIEnablements is true when status.apiEnablements lists
	// every group that the member serves.
	ConditionCompleteAPIEnablements = "CompleteAPIEnablements"
	// ConditionSlicesWatched is true when the member tells changes of its
	// EndpointSlices. While the member cannot be reached it stays as it was.
	ConditionSlicesWatched = "SlicesWatched"
)

// Condition reasons of a Cluster.
const (
	// ReasonClusterReady: the member's API server answers and is ready.
	ReasonClusterReady = "ClusterReady"
	// ReasonClusterNotReady: it answers, but says that it is not ready.
	ReasonClusterNotReady = "ClusterNotReady"
	// ReasonClusterNotReachable: it does not answer.
	ReasonClusterNotReachable = "ClusterNotReachable"
	// ReasonCredentialRejected: it refuses the credential (401 or 403).
	ReasonCredentialRejected = "CredentialRejected"
	// ReasonCredentialInvalid: the Secret is missing or cannot be used.
	ReasonCredentialInvalid = "CredentialInvalid"
	// ReasonConnecting: the first answer has not come yet.
	ReasonConnecting = "Connecting"
	// ReasonAgentSilent: the agent of a pull member does not renew its lease.
	ReasonAgentSilent = "AgentSilent"
	// ReasonWatchEstablished: the watch of EndpointSlices stands.
	ReasonWatchEstablished = "WatchEstablished"
	// ReasonWatchForbidden: the credential may not list or watch them.
	ReasonWatchForbidden = "WatchForbidden"
	// ReasonWatchFailing: they can't be listed or watched, for another reason.
	ReasonWatchFailing = "WatchFailing"
	// ReasonWatchSilent: the watch said nothing for minutes, and is made anew.
	ReasonWatchSilent = "WatchSilent"
	// ReasonAPIEnablementsComplete: every group could be listed.
	ReasonAPIEnablementsComplete = "APIEnablementsComplete"
	// ReasonAPIEnablementsPartial: some groups could not be listed.
	ReasonAPIEnablementsPartial = "APIEnablementsPartial"
)

// Event reasons of a Cluster that leaves, beside the reasons of its conditions.
const (
	// EventLeft: nothing of ours is left in the member.
	EventLeft = "ClusterLeft"
	// EventLeftUnclean: the member did not answer. The note says what stays there.
	EventLeftUnclean = "ClusterLeftUnclean"
)

// ExecutionNamespace returns the name of the namespace that holds the Works of
// the named member.
func ExecutionNamespace(cluster string) string { return ExecutionNamespacePrefix + cluster }

// ClusterOf returns the member whose execution namespace this is. found is false
// for any other namespace.
func ClusterOf(namespace string) (cluster string, found bool) {
	return strings.CutPrefix(namespace, ExecutionNamespacePrefix)
}
