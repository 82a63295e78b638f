package cluster

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"

	clusterv1alpha1 "github.com/namesake-io/namesake/api/cluster/v1alpha1"
)

// Event reasons of members that leave.
const (
	eventLeft       = "ClusterLeft"
	eventLeftBehind = "ClusterLeftUnclean"
)

// tell records that a member became ready or stopped being so.
func tell(recorder events.EventRecorder, cluster *clusterv1alpha1.Cluster, was, is *metav1.Condition) {
	if is == nil || is.Status == metav1.ConditionUnknown || was != nil && was.Status == is.Status {
		return
	}
	kind := corev1.EventTypeNormal
	if is.Status != metav1.ConditionTrue {
		kind = corev1.EventTypeWarning
	}
	recorder.Eventf(cluster, nil, kind, is.Reason, "Probe", "%s", is.Message)
}

// tellLeft records that a member has left, and whether anything stayed in it.
func tellLeft(recorder events.EventRecorder, cluster *clusterv1alpha1.Cluster, unclean bool) {
	if unclean {
		recorder.Eventf(cluster, nil, corev1.EventTypeWarning, eventLeftBehind, "Leave",
			"the member did not answer: what Namesake put there stays: slices labelled endpointslice.kubernetes.io/managed-by=%s and objects labelled %s",
			"endpointslice-dispatch-controller.karmada.io", "karmada.io/managed=true")
		return
	}
	recorder.Eventf(cluster, nil, corev1.EventTypeNormal, eventLeft, "Leave", "nothing of Namesake's is left in the member")
}

// objectKey is the key of a Secret.
func objectKey(ref *clusterv1alpha1.LocalSecretReference) types.NamespacedName {
	return types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}
}
