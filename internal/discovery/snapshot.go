package discovery

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"

	networkingv1alpha1 "github.com/namesake-io/namesake/api/networking/v1alpha1"
)

// Snapshot is all that decides what consumers hold of one service. NewPlan reads
// it and never changes what it points to.
type Snapshot struct {
	// Service is the namespace and name that MCS and Template share.
	Service types.NamespacedName
	// MCS is the wish. Nil: there is none, so nothing of this service may stand
	// in a consumer.
	MCS *networkingv1alpha1.MultiClusterService
	// Template is the hub's Service. Nil: there is none.
	Template *corev1.Service
	// Unreachable is what is done with endpoints of providers that cannot be
	// reached where MCS does not say it. Its zero value retains them.
	Unreachable networkingv1alpha1.UnreachableProviders
	// Clusters are all Cluster objects of the hub, selected or not, in any order.
	Clusters []Cluster
	// Now is the time of the snapshot.
	Now time.Time
}

// Cluster is what is known of one member for one service.
type Cluster struct {
	// Name of the Cluster object.
	Name ClusterName
	// Labels of the Cluster object.
	Labels map[string]string
	// Leaving is true once the Cluster object is being deleted.
	Leaving bool
	// UnreachableSince is when the member's control plane stopped answering.
	// Zero: it answers.
	UnreachableSince time.Time
	// UnreachableWhy says what is wrong. Empty: the API server does not answer.
	UnreachableWhy string
	// LacksSlices is true when the member is known not to serve
	// discovery.k8s.io/v1.
	LacksSlices bool
	// Slices are the member's own slices of this service, in any order;
	// dispatched ones are not among them.
	Slices []*discoveryv1.EndpointSlice
	// Authoritative is true when Slices comes from a synced view of the member
	// itself, so that what is not in it is known to be gone. False: it is what
	// the hub remembers, and absence proves nothing.
	Authoritative bool
}
