package endpointslicedispatch

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"

	networkingv1alpha1 "github.com/namesake-io/namesake/api/networking/v1alpha1"
	"github.com/namesake-io/namesake/internal/discovery"
)

// action of every event here.
const action = "Dispatch"

// tell records what has changed from one status to the next.
func tell(
	recorder events.EventRecorder, mcs *networkingv1alpha1.MultiClusterService,
	status *networkingv1alpha1.MultiClusterServiceStatus, plan *discovery.Plan,
) {
	was := meta.FindStatusCondition(mcs.Status.Conditions, networkingv1alpha1.ConditionEndpointSliceDispatched)
	is := meta.FindStatusCondition(status.Conditions, networkingv1alpha1.ConditionEndpointSliceDispatched)
	if is != nil && (was == nil || was.Status != is.Status) {
		if is.Status == metav1.ConditionTrue {
			recorder.Eventf(mcs, nil, corev1.EventTypeNormal, networkingv1alpha1.EventDispatchEndpointSliceSucceed, action, "%s", is.Message)
		} else {
			recorder.Eventf(mcs, nil, corev1.EventTypeWarning, networkingv1alpha1.EventDispatchEndpointSliceFailed, action, "%s", is.Message)
		}
	}
	ready := meta.FindStatusCondition(status.Conditions, networkingv1alpha1.ConditionReady)
	before := meta.FindStatusCondition(mcs.Status.Conditions, networkingv1alpha1.ConditionReady)
	// Where something else comes first, the condition speaks of that.
	if len(plan.Selection.Missing) > 0 && ready != nil && ready.Reason == networkingv1alpha1.ReasonClusterNotFound &&
		(before == nil || before.Message != ready.Message) {
		recorder.Eventf(mcs, nil, corev1.EventTypeWarning, networkingv1alpha1.EventClusterNotFound, action, "%s", ready.Message)
	}
	for i := range status.Clusters {
		c := &status.Clusters[i]
		if c.Reason == networkingv1alpha1.ReasonAPIIncompatible && !hadReason(mcs, c.Name, c.Reason) {
			recorder.Eventf(mcs, nil, corev1.EventTypeWarning, networkingv1alpha1.EventAPIIncompatible, action, "%s: %s", c.Name, c.Message)
		}
	}
}

// hadReason says that a cluster's report already had this reason.
func hadReason(mcs *networkingv1alpha1.MultiClusterService, cluster, reason string) bool {
	return slices.ContainsFunc(mcs.Status.Clusters, func(c networkingv1alpha1.ClusterServiceStatus) bool {
		return c.Name == cluster && c.Reason == reason
	})
}
