package agent

import (
	"context"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	workv1alpha1 "github.com/namesake-io/namesake/api/work/v1alpha1"
	"github.com/namesake-io/namesake/internal/apply"
)

// What was said is not said again, whether the cache shows it yet or not; a new
// generation, another word and another Work of the name are told.
func TestWords(t *testing.T) {
	var writes int
	work := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-es-m", Name: "w", UID: "1", Generation: 1}}
	var written string
	c := interceptor.NewClient(nil, interceptor.Funcs{
		SubResourcePatch: func(_ context.Context, _ client.Client, _ string, obj client.Object, patch client.Patch, _ ...client.SubResourcePatchOption) error {
			writes++
			data, err := patch.Data(obj)
			written = string(data)
			return err
		},
	})
	w := newWords(apply.NewWriter(c, "test"))
	say := func(step string, work *workv1alpha1.Work, status metav1.ConditionStatus, wantWrite bool) {
		t.Helper()
		before := writes
		is := metav1.Condition{Type: workv1alpha1.ConditionApplied, Status: status, Reason: "R", Message: "m"}
		if err := w.say(t.Context(), work, is); err != nil {
			t.Fatalf("%s: %v", step, err)
		}
		if wrote := writes > before; wrote != wantWrite {
			t.Errorf("%s: wrote %v, want %v", step, wrote, wantWrite)
		}
	}
	// The Work stays as it was read: a cache that lags.
	say("first", work, metav1.ConditionTrue, true)
	say("again, the cache lags", work, metav1.ConditionTrue, false)
	say("another word", work, metav1.ConditionFalse, true)
	say("and back, the cache still lags", work, metav1.ConditionTrue, true)
	next := work.DeepCopy()
	next.Generation = 2
	say("a new generation", next, metav1.ConditionTrue, true)
	say("once", next, metav1.ConditionTrue, false)

	if !strings.Contains(written, `"uid":"1"`) || !strings.Contains(written, `"observedGeneration":2`) {
		t.Errorf("wrote %s, want the Work's UID as a precondition, and its generation", written)
	}
	shown := next.DeepCopy()
	shown.Status.Conditions = []metav1.Condition{{
		Type: workv1alpha1.ConditionApplied, Status: metav1.ConditionTrue, Reason: "R", Message: "m", ObservedGeneration: 2,
	}}
	w = newWords(apply.NewWriter(c, "test"))
	say("after a restart, as shown", shown, metav1.ConditionTrue, false)
	w.forget(work.UID)
	if len(w.said) > 0 {
		t.Errorf("remembered %v", w.said)
	}
}
