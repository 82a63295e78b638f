package execution

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha1 "github.com/namesake-io/namesake/api/work/v1alpha1"
	"github.com/namesake-io/namesake/internal/apply"
	"github.com/namesake-io/namesake/internal/member"
)

// answering is a member that answers every write with one error.
type answering struct {
	client.Client
	err error
}

func (a answering) Create(context.Context, client.Object, ...client.CreateOption) error { return a.err }

func (a answering) Update(context.Context, client.Object, ...client.UpdateOption) error { return a.err }

var services = schema.GroupResource{Resource: "services"}

func TestStep(t *testing.T) {
	service := wanted(t, wantService)
	namespace := wanted(t, "{apiVersion: v1, kind: Namespace, metadata: {name: shop}}")
	exists := apierrors.NewAlreadyExists(services, "foo")
	terminating := &apierrors.StatusError{ErrStatus: metav1.Status{
		Reason: metav1.StatusReasonForbidden, Message: "terminating",
		Details: &metav1.StatusDetails{Causes: []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}},
	}}
	refusal := apierrors.NewInvalid(schema.GroupKind{Kind: "Service"}, "foo", nil)
	slow := apierrors.NewTooManyRequests("slow down", 1)
	for title, tc := range map[string]struct {
		verb        verb
		obj         *unstructured.Unstructured
		answer      error
		wantApplied bool
		wantReason  string
		wantAgain   time.Duration
		wantRetry   bool
	}{
		"nothing to do":             {verb: none, obj: service, wantApplied: true, wantReason: workv1alpha1.ReasonAppliedSuccessful},
		"made":                      {verb: create, obj: service, wantApplied: true, wantReason: workv1alpha1.ReasonAppliedSuccessful},
		"changed":                   {verb: update, obj: service, wantApplied: true, wantReason: workv1alpha1.ReasonAppliedSuccessful},
		"used as it is":             {verb: adopt, obj: service, wantApplied: true, wantReason: workv1alpha1.ReasonAdopted, wantAgain: lookAgain},
		"left alone":                {verb: refuse, obj: service, wantReason: workv1alpha1.ReasonConflict, wantAgain: lookAgain},
		"waited for":                {verb: await, obj: service, wantReason: workv1alpha1.ReasonAppliedFailed, wantAgain: time.Second},
		"a namespace that is there": {verb: create, obj: namespace, answer: exists, wantApplied: true, wantReason: workv1alpha1.ReasonAppliedSuccessful},
		"a Service that has come since it was looked for: again soon, no error": {
			verb: create, obj: service, answer: exists, wantReason: workv1alpha1.ReasonAppliedFailed, wantAgain: viewLag,
		},
		"no namespace (C19)":             {verb: create, obj: service, answer: apierrors.NewNotFound(services, "shop"), wantReason: workv1alpha1.ReasonNamespaceNotFound, wantAgain: lookAgain},
		"the namespace is going (C20)":   {verb: create, obj: service, answer: terminating, wantReason: workv1alpha1.ReasonNamespaceNotFound, wantAgain: lookAgain},
		"refused for good: no hot loop":  {verb: update, obj: service, answer: refusal, wantReason: workv1alpha1.ReasonAppliedFailed, wantAgain: lookAgain},
		"no right: no hot loop":          {verb: create, obj: service, answer: apierrors.NewForbidden(services, "foo", nil), wantReason: workv1alpha1.ReasonAppliedFailed, wantAgain: lookAgain},
		"a conflict is tried again":      {verb: update, obj: service, answer: apierrors.NewConflict(services, "foo", nil), wantReason: workv1alpha1.ReasonAppliedFailed, wantRetry: true},
		"gone in between: tried again":   {verb: update, obj: service, answer: apierrors.NewNotFound(services, "foo"), wantReason: workv1alpha1.ReasonAppliedFailed, wantRetry: true},
		"a busy server: tried again":     {verb: create, obj: service, answer: slow, wantReason: workv1alpha1.ReasonAppliedFailed, wantRetry: true},
		"a silent member: said upstream": {verb: create, obj: service, answer: member.ErrUnreachable, wantReason: workv1alpha1.ReasonAppliedFailed, wantRetry: true},
	} {
		t.Run(title, func(t *testing.T) {
			c := &Controller{}
			got := c.step(t.Context(), apply.NewWriter(answering{err: tc.answer}, "test"), step{verb: tc.verb, obj: tc.obj, message: "why"})
			if got.applied != tc.wantApplied || got.reason != tc.wantReason || got.again != tc.wantAgain || (got.err != nil) != tc.wantRetry {
				t.Errorf("%+v, want applied %v, reason %s, again after %s, error %v", got, tc.wantApplied, tc.wantReason, tc.wantAgain, tc.wantRetry)
			}
			if tc.wantRetry && !errors.Is(got.err, tc.answer) {
				t.Errorf("error %v does not wrap %v", got.err, tc.answer)
			}
			if !got.applied && got.message == "" {
				t.Error("a failure without a message")
			}
			// Whoever waits for a namespace says which, to be woken when it comes.
			waits := len(got.missing) == 1 && got.missing[0] == tc.obj.GetNamespace()
			if waits != (tc.wantReason == workv1alpha1.ReasonNamespaceNotFound) {
				t.Errorf("waits for namespaces %v, reason %s", got.missing, got.reason)
			}
		})
	}
}

// Of several objects the first failure is told, the nearest look counts, and an
// error overrides it.
func TestTake(t *testing.T) {
	ok := result{applied: true, reason: workv1alpha1.ReasonAppliedSuccessful}
	adopted := result{applied: true, reason: workv1alpha1.ReasonAdopted, message: "adopted", again: lookAgain}
	first := result{reason: "First", message: "first", again: lookAgain}
	second := result{reason: "Second", message: "second", again: time.Second}
	failed := result{reason: "Failed", message: "failed", err: errors.New("try again")}
	for title, tc := range map[string]struct {
		of         []result
		wantReason string
		want       bool
		wantAgain  time.Duration
		wantErr    bool
	}{
		"all well":            {of: []result{ok, ok}, want: true, wantReason: ok.reason},
		"one is adopted":      {of: []result{ok, adopted, ok}, want: true, wantReason: "Adopted", wantAgain: lookAgain},
		"two fail":            {of: []result{ok, first, second}, wantReason: "First", wantAgain: time.Second},
		"adopted, then fails": {of: []result{adopted, first}, wantReason: "First", wantAgain: lookAgain},
		"an error is retried": {of: []result{first, failed, second}, wantReason: "First", wantErr: true},
	} {
		t.Run(title, func(t *testing.T) {
			got := result{applied: true, reason: workv1alpha1.ReasonAppliedSuccessful}
			for _, one := range tc.of {
				got.take(one)
			}
			if got.applied != tc.want || got.reason != tc.wantReason || got.again != tc.wantAgain || (got.err != nil) != tc.wantErr {
				t.Errorf("%+v, want applied %v, reason %s, again %s, error %v", got, tc.want, tc.wantReason, tc.wantAgain, tc.wantErr)
			}
		})
	}
}

func TestAppliedCondition(t *testing.T) {
	now := time.Date(2026, 8, 1, 12, 0, 0, 7, time.UTC)
	earlier := metav1.NewTime(now.Add(-time.Hour).Truncate(time.Second))
	applied := result{applied: true, reason: "AppliedSuccessful", message: "fine"}
	was := func(status metav1.ConditionStatus) *metav1.Condition {
		return &metav1.Condition{Status: status, LastTransitionTime: earlier}
	}
	for title, tc := range map[string]struct {
		was        *metav1.Condition
		result     result
		wantStatus metav1.ConditionStatus
		wantTime   metav1.Time
	}{
		"first":              {result: applied, wantStatus: metav1.ConditionTrue, wantTime: metav1.NewTime(now.Truncate(time.Second))},
		"the same":           {was: was(metav1.ConditionTrue), result: applied, wantStatus: metav1.ConditionTrue, wantTime: earlier},
		"changed":            {was: was(metav1.ConditionFalse), result: applied, wantStatus: metav1.ConditionTrue, wantTime: metav1.NewTime(now.Truncate(time.Second))},
		"failed for another": {was: was(metav1.ConditionFalse), result: result{reason: "Conflict"}, wantStatus: metav1.ConditionFalse, wantTime: earlier},
	} {
		t.Run(title, func(t *testing.T) {
			want := metav1.Condition{
				Type: workv1alpha1.ConditionApplied, Status: tc.wantStatus, Reason: tc.result.reason, Message: tc.result.message,
				ObservedGeneration: 3, LastTransitionTime: tc.wantTime,
			}
			if diff := cmp.Diff(want, appliedCondition(tc.was, 3, tc.result, now), cmpopts.EquateComparable()); diff != "" {
				t.Errorf("condition (-want +got):\n%s", diff)
			}
		})
	}
}

// A manifest that is none, or whose kind the member does not serve, is told and
// does not turn in circles.
func TestReadErrors(t *testing.T) {
	c := &Controller{}
	got := c.apply(t.Context(), &member.Member{}, nil, fmt.Errorf("manifest 1: %w", errInvalidManifest))
	if got.reason != workv1alpha1.ReasonInvalidManifest || got.err != nil {
		t.Errorf("an invalid manifest: %+v, want its reason and no retry", got)
	}
}
