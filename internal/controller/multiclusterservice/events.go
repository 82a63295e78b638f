package multiclusterservice

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"

	networkingv1alpha1 "github.com/namesake-io/namesake/api/networking/v1alpha1"
)

// tell records that the Service became applied or stopped being so.
func tell(recorder events.EventRecorder, mcs *networkingv1alpha1.MultiClusterService, was *metav1.Condition, is metav1.Condition) {
	if was != nil && was.Status == is.Status {
		return
	}
	if is.Status == metav1.ConditionTrue {
		recorder.Eventf(mcs, nil, corev1.EventTypeNormal, networkingv1alpha1.EventSyncServiceSucceed, "Sync", "%s", is.Message)
		return
	}
	recorder.Eventf(mcs, nil, corev1.EventTypeWarning, networkingv1alpha1.EventSyncServiceFailed, "Sync", "%s", is.Message)
}
