package multiclusterservice

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	networkingv1alpha1 "github.com/namesake-io/namesake/api/networking/v1alpha1"
	workv1alpha2 "github.com/namesake-io/namesake/api/work/v1alpha2"
)

// apply writes the changes.
func (c *Controller) apply(ctx context.Context, st *state, p changes) error {
	if p.Prepare {
		if err := c.prepare(ctx, st); err != nil {
			return err
		}
	}
	if p.MarkService || p.UnmarkService {
		if err := c.mark(ctx, st, p.MarkService); err != nil {
			return err
		}
	}
	switch {
	case p.Create != nil:
		if err := c.writer.Create(ctx, p.Create); err != nil {
			return err
		}
		c.wrote.binding.Wrote(p.Create)
	case p.Update != nil:
		if err := c.updateBinding(ctx, p.Update); err != nil {
			return err
		}
	case p.Claim != nil:
		if err := c.claim(ctx, p.Claim); err != nil {
			return err
		}
	case p.Delete != nil:
		if err := c.writer.Delete(ctx, p.Delete); err != nil {
			return err
		}
		c.wrote.binding.Deleted(p.Delete)
	}
	if p.Release {
		return c.writer.RemoveFinalizer(ctx, st.mcs, networkingv1alpha1.Finalizer)
	}
	return nil
}

// prepare adds the finalizer and the permanent id, in one write.
func (c *Controller) prepare(ctx context.Context, st *state) error {
	metadata := map[string]any{
		"labels": map[string]any{networkingv1alpha1.PermanentIDLabel: st.permanentID},
	}
	if !slices.Contains(st.mcs.Finalizers, networkingv1alpha1.Finalizer) {
		metadata["finalizers"] = append(slices.Clone(st.mcs.Finalizers), networkingv1alpha1.Finalizer)
	}
	if err := c.writer.Patch(ctx, st.mcs, map[string]any{"metadata": metadata}); err != nil {
		return err
	}
	c.wrote.mcs.Wrote(st.mcs)
	return nil
}

// mark puts our marks on the Service, or takes them off. Just the marks: the
// Service is the user's.
func (c *Controller) mark(ctx context.Context, st *state, on bool) error {
	labels, annotations := map[string]any{}, map[string]any{}
	for key, value := range serviceLabels(st) {
		labels[key] = value
		if !on {
			labels[key] = nil
		}
	}
	for key, value := range claimAnnotations(st) {
		annotations[key] = value
		if !on {
			annotations[key] = nil
		}
	}
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: st.key.Namespace, Name: st.key.Name}}
	if err := c.writer.Patch(ctx, service, map[string]any{
		"metadata": map[string]any{"labels": labels, "annotations": annotations},
	}); err != nil {
		return client.IgnoreNotFound(err)
	}
	c.wrote.service.Wrote(service)
	return nil
}

// updateBinding patches our part of a binding: the rest is others', and may have
// fields that we do not know.
func (c *Controller) updateBinding(ctx context.Context, rb *workv1alpha2.ResourceBinding) error {
	written := rb.DeepCopy()
	err := c.writer.Patch(ctx, written, map[string]any{
		"metadata": map[string]any{"labels": rb.Labels, "annotations": rb.Annotations},
		"spec": map[string]any{
			"resource": rb.Spec.Resource, "clusters": rb.Spec.Clusters,
			"conflictResolution": rb.Spec.ConflictResolution,
		},
	})
	if err == nil {
		c.wrote.binding.Wrote(written)
	}
	return err
}

// claim patches the claims on somebody else's binding, as long as nobody has
// changed them since: the list is written whole.
func (c *Controller) claim(ctx context.Context, rb *workv1alpha2.ResourceBinding) error {
	written := rb.DeepCopy()
	if err := c.writer.Patch(ctx, written, map[string]any{"spec": map[string]any{"requiredBy": rb.Spec.RequiredBy}}); err != nil {
		return err
	}
	c.wrote.binding.Wrote(written)
	return nil
}
