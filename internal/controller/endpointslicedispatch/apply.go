package endpointslicedispatch

import (
	"context"
	"errors"
	"fmt"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	networkingv1alpha1 "github.com/namesake-io/namesake/api/networking/v1alpha1"
	"github.com/namesake-io/namesake/internal/apply"
	"github.com/namesake-io/namesake/internal/discovery"
	"github.com/namesake-io/namesake/internal/member"
)

// namespaceWait bounds how long a namespace that has come in a consumer can stay
// unseen; its event comes within milliseconds.
const namespaceWait = time.Minute

// errNamespace says that a slice has no namespace to stand in.
var errNamespace = errors.New("the namespace does not exist, or is being deleted")

// apply brings a consumer to what it should hold: what is new first, then what
// has to go. What one slice meets does not stop the others, but for a slice that
// is to be replaced under another name: it goes when its successor stands.
func (c *Controller) apply(ctx context.Context, m *member.Member, changes discovery.Changes) error {
	if changes.Empty() {
		return nil
	}
	writer := apply.NewWriter(m.Client(), discovery.FieldManager)
	var errs []error
	refused := map[discovery.SliceName]bool{}

	for _, slice := range changes.Create {
		if err := c.create(ctx, m, writer, slice); err != nil {
			refused[discovery.SliceName(slice.Name)] = true
			errs = append(errs, err)
		}
	}
	for _, slice := range changes.Update {
		if err := writer.Update(ctx, slice); err != nil {
			refused[discovery.SliceName(slice.Name)] = true
			errs = append(errs, err)
			continue
		}
		m.Slices().Wrote(slice)
		observePropagation(m.Name(), slice, c.started)
	}
	for _, deletion := range changes.Delete {
		if refused[deletion.After] {
			continue
		}
		// As it was read: somebody may have taken it to another service and back.
		if err := writer.DeleteExact(ctx, deletion.Slice); err != nil {
			errs = append(errs, err)
			continue
		}
		m.Slices().Deleted(deletion.Slice)
	}
	return errors.Join(errs...)
}

// create makes one slice. One that already stands is read, so that the next try
// sees it.
func (c *Controller) create(ctx context.Context, m *member.Member, writer apply.Writer, slice *discoveryv1.EndpointSlice) error {
	err := writer.Create(ctx, slice)
	switch {
	case err == nil:
		m.Slices().Wrote(slice)
		observePropagation(m.Name(), slice, c.started)
		return nil
	case apply.NoNamespace(err):
		return fmt.Errorf("%w: %w", errNamespace, err)
	case apierrors.IsAlreadyExists(err):
		standing := &discoveryv1.EndpointSlice{}
		if readErr := m.Client().Get(ctx, client.ObjectKeyFromObject(slice), standing); readErr == nil {
			m.Slices().Wrote(standing)
		}
	}
	return err
}

// retryable returns when to try again after an error: a missing namespace is
// waited for, anything else is tried by the queue's back-off.
func retryable(err error) (time.Duration, error) {
	if errors.Is(err, errNamespace) {
		return namespaceWait, nil
	}
	return 0, err
}

// outcomeOf says in the words of the status how an attempt ended.
func outcomeOf(err error) discovery.Outcome {
	switch {
	case err == nil:
		return discovery.Outcome{}
	case errors.Is(err, member.ErrUnreachable):
		return discovery.Outcome{
			Reason:  networkingv1alpha1.ReasonClusterUnreachable,
			Message: "the API server does not answer; what stands there stays, and is brought up to date when it is back",
		}
	case errors.Is(err, errNamespace):
		return discovery.Outcome{
			Reason:  networkingv1alpha1.ReasonNamespaceNotFound,
			Message: "the namespace does not exist there, or is being deleted: endpoints follow as soon as it is there",
		}
	case member.IsMissingKind(err):
		return discovery.Outcome{
			Reason:  networkingv1alpha1.ReasonAPIIncompatible,
			Message: "the cluster does not serve discovery.k8s.io/v1",
		}
	}
	return discovery.Outcome{Reason: networkingv1alpha1.ReasonWriteFailed, Message: err.Error()}
}
