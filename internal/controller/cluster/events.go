package cluster

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"

	clusterv1alpha1 "github.com/namesake-io/namesake/api/cluster/v1alpha1"
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

// tellLeft records that a member has left, with nothing of ours in it.
func tellLeft(recorder events.EventRecorder, cluster *clusterv1alpha1.Cluster) {
	recorder.Eventf(cluster, nil, corev1.EventTypeNormal, clusterv1alpha1.EventLeft, "Leave", "nothing of Namesake's is left in the member")
}

// tellLeftBehind records that a member is given up, and what stays in it.
func tellLeftBehind(recorder events.EventRecorder, cluster *clusterv1alpha1.Cluster, left leftBehind) {
	recorder.Eventf(cluster, nil, corev1.EventTypeWarning, clusterv1alpha1.EventLeftUnclean, "Leave",
		"the member does not answer, and what Namesake put there stays: %s", left)
}

// objectKey is the key of a Secret.
func objectKey(ref *clusterv1alpha1.LocalSecretReference) types.NamespacedName {
	return types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}
}
