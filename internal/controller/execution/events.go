package execution

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"

	workv1alpha1 "github.com/namesake-io/namesake/api/work/v1alpha1"
)

// tell records that a Work's objects became applied or stopped being so. That
// all went well the first time is told by the condition alone: an event a member
// and service would be the larger part of what the hub has to write.
func tell(recorder events.EventRecorder, work *workv1alpha1.Work, is metav1.Condition) {
	if is.Status == metav1.ConditionTrue {
		recorder.Eventf(work, nil, corev1.EventTypeNormal, workv1alpha1.EventSyncSucceed, "Apply", "%s", is.Message)
		return
	}
	recorder.Eventf(work, nil, corev1.EventTypeWarning, workv1alpha1.EventSyncFailed, "Apply", "%s", is.Message)
}
