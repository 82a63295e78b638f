package cluster

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"

	clusterv1alpha1 "github.com/namesake-io/namesake/api/cluster/v1alpha1"
)

// tell records that a member became ready or stopped being so, and that the watch
// of its slices stopped working or works again.
func tell(recorder events.EventRecorder, cluster *clusterv1alpha1.Cluster, now []metav1.Condition) {
	for _, t := range []string{clusterv1alpha1.ConditionReady, clusterv1alpha1.ConditionSlicesWatched} {
		was, is := meta.FindStatusCondition(cluster.Status.Conditions, t), meta.FindStatusCondition(now, t)
		switch {
		case is == nil || is.Status == metav1.ConditionUnknown && is.Reason != clusterv1alpha1.ReasonAgentSilent || was != nil && was.Status == is.Status:
		case is.Status != metav1.ConditionTrue:
			recorder.Eventf(cluster, nil, corev1.EventTypeWarning, is.Reason, "Probe", "%s", is.Message)
		case was != nil || t == clusterv1alpha1.ConditionReady: // that a new member's watch works goes without saying
			recorder.Eventf(cluster, nil, corev1.EventTypeNormal, is.Reason, "Probe", "%s", is.Message)
		}
	}
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
