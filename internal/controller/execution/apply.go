package execution

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha1 "github.com/namesake-io/namesake/api/work/v1alpha1"
	"github.com/namesake-io/namesake/internal/apply"
	"github.com/namesake-io/namesake/internal/manifest"
	"github.com/namesake-io/namesake/internal/member"
	"github.com/namesake-io/namesake/internal/snapshot"
)

// lookAgain bounds how long something that no event tells can go unseen: that an
// object which is not ours has gone, or a namespace come.
const lookAgain = time.Minute

// viewLag is how soon to look again at an object that the view does not show yet.
const viewLag = 100 * time.Millisecond

// result is how an attempt ended.
type result struct {
	// reason and message of the condition Applied; applied is its status.
	applied         bool
	reason, message string
	// again is when to look again though nothing happens.
	again time.Duration
	// missing are namespaces that the objects wait for.
	missing []string
	// err is what is to be tried again.
	err error
}

// apply brings every object to what the Work has. readErr is what reading them met.
func (c *Controller) apply(ctx context.Context, m *member.Member, objects []object, readErr error) result {
	out := result{applied: true, reason: workv1alpha1.ReasonAppliedSuccessful, message: "the cluster holds every object as the Work has it"}
	writer := apply.NewWriter(m.Client(), workv1alpha1.ExecutionFieldManager)
	for _, o := range objects {
		out.take(c.step(ctx, writer, plan(o)))
	}
	switch {
	case readErr == nil:
	case errors.Is(readErr, errInvalidManifest):
		out.take(result{reason: workv1alpha1.ReasonInvalidManifest, message: readErr.Error()})
	case member.IsMissingKind(readErr):
		out.take(result{reason: workv1alpha1.ReasonAppliedFailed, message: readErr.Error(), again: lookAgain})
	default:
		out.take(result{reason: workv1alpha1.ReasonAppliedFailed, message: readErr.Error(), err: readErr})
	}
	return out
}

// take adds how one object went: the first failure is what is told.
func (r *result) take(one result) {
	r.err = errors.Join(r.err, one.err)
	r.missing = append(r.missing, one.missing...)
	if one.again > 0 && (r.again == 0 || one.again < r.again) {
		r.again = one.again
	}
	if r.applied && (!one.applied || one.reason == workv1alpha1.ReasonAdopted) {
		r.applied, r.reason, r.message = one.applied, one.reason, one.message
	}
	if r.err != nil {
		r.again = 0
	}
}

// step carries out one step.
func (c *Controller) step(ctx context.Context, writer apply.Writer, s step) result {
	var err error
	switch s.verb {
	case create:
		err = writer.Create(ctx, s.obj)
	case update:
		err = writer.Update(ctx, s.obj)
	case adopt:
		return result{
			applied: true, reason: workv1alpha1.ReasonAdopted, again: lookAgain,
			message: "an object of that name, not made by Namesake, stands in the cluster and is used as it is",
		}
	case refuse:
		return result{reason: workv1alpha1.ReasonConflict, message: s.message, again: lookAgain}
	case await:
		return result{reason: workv1alpha1.ReasonAppliedFailed, message: s.message, again: time.Second}
	case none:
	}
	switch {
	case err == nil:
		return result{applied: true, reason: workv1alpha1.ReasonAppliedSuccessful}
	case s.verb == create && apierrors.IsAlreadyExists(err):
		return alreadyThere(s)
	case s.verb == create && apply.NoNamespace(err):
		return result{
			reason: workv1alpha1.ReasonNamespaceNotFound, again: lookAgain, missing: []string{s.obj.GetNamespace()},
			message: fmt.Sprintf("namespace %s does not exist in the cluster, or is being deleted: the object follows as soon as it is there", s.obj.GetNamespace()),
		}
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err), apierrors.IsForbidden(err):
		// The same again would be refused again.
		return result{reason: workv1alpha1.ReasonAppliedFailed, message: err.Error(), again: lookAgain}
	}
	return result{reason: workv1alpha1.ReasonAppliedFailed, message: err.Error(), err: err}
}

// alreadyThere is the result of making what has come since it was looked for: the
// view lags behind. A Namespace need only be there; anything else is looked at
// again, to see whose it is and what it holds.
func alreadyThere(s step) result {
	if s.obj.GroupVersionKind() == member.NamespaceKind {
		return result{applied: true, reason: workv1alpha1.ReasonAppliedSuccessful}
	}
	return result{
		reason: workv1alpha1.ReasonAppliedFailed, again: viewLag,
		message: describe(s.obj) + " has just come in the cluster: it is looked at again",
	}
}

// cleanUp takes the objects of a Work that is going out of the member, those that
// are ours, and then lets the Work go.
func (c *Controller) cleanUp(ctx context.Context, m *member.Member, work *workv1alpha1.Work) error {
	preserve := work.Spec.PreserveResourcesOnDeletion != nil && *work.Spec.PreserveResourcesOnDeletion
	writer := apply.NewWriter(m.Client(), workv1alpha1.ExecutionFieldManager)
	for _, raw := range work.Spec.Workload.Manifests {
		obj, err := manifest.Decode(raw)
		if err != nil || preserve || obj.GroupVersionKind() == member.NamespaceKind {
			// What cannot be read was never applied. Namespaces hold what is not ours.
			continue
		}
		mark(obj, work)
		have, found, err := m.Object(ctx, obj.GroupVersionKind(), client.ObjectKeyFromObject(obj))
		switch {
		case member.IsMissingKind(err):
			continue
		case err != nil:
			return err
		case found && ours(have, obj) && have.GetDeletionTimestamp() == nil:
			shared, err := c.heldElsewhere(ctx, work, raw)
			if err != nil {
				return err
			}
			if shared {
				continue
			}
			if err := writer.Delete(ctx, have); err != nil {
				return err
			}
		}
	}
	return c.writer.RemoveFinalizer(ctx, work, workv1alpha1.ExecutionFinalizer)
}

// heldElsewhere says that another Work, one that stays, puts the same object into
// the member. The object is that Work's then.
func (c *Controller) heldElsewhere(ctx context.Context, going *workv1alpha1.Work, raw workv1alpha1.Manifest) (bool, error) {
	id, err := manifest.IdentityOf(raw)
	if err != nil {
		return false, err
	}
	works := &workv1alpha1.WorkList{}
	if err := c.reader.List(ctx, works, client.UnsafeDisableDeepCopy, client.InNamespace(going.Namespace),
		client.MatchingFields{snapshot.ManifestIndex: id.String()}); err != nil {
		return false, fmt.Errorf("listing Works that hold %s: %w", id, err)
	}
	return slices.ContainsFunc(works.Items, func(w workv1alpha1.Work) bool {
		return w.Name != going.Name && w.DeletionTimestamp == nil && manifest.IsApplied(&w)
	}), nil
}
