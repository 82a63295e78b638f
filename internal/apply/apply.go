// Package apply is the only place that writes to API servers, on the hub and in
// members. Callers decide what to write and compare first: a write that changes
// nothing is not made.
//
//   - Objects that the hub owns alone: Create, Update under their
//     resourceVersion, Delete under their UID.
//   - Objects that others write too: Patch, with just the fields that are ours,
//     or Apply, where those are items of a list; Status by server-side apply.
package apply

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Writer writes on behalf of one owner.
type Writer struct {
	client client.Client
	owner  string
}

// NewWriter returns a Writer that uses a client. The owner is the field manager
// and the label of the metric.
func NewWriter(c client.Client, owner string) Writer { return Writer{client: c, owner: owner} }

// Create makes an object, which then has what the server gave it.
func (w Writer) Create(ctx context.Context, obj client.Object) error {
	return w.done("create", obj, w.client.Create(ctx, obj, client.FieldOwner(w.owner)))
}

// Update writes an object whole. It fails with a conflict when the object has
// changed since its resourceVersion.
func (w Writer) Update(ctx context.Context, obj client.Object) error {
	return w.done("update", obj, w.client.Update(ctx, obj, client.FieldOwner(w.owner)))
}

// Delete removes an object, and no other one of its name that has come since. It
// is content when there is none.
func (w Writer) Delete(ctx context.Context, obj client.Object) error {
	var opts []client.DeleteOption
	if uid := obj.GetUID(); uid != "" {
		opts = append(opts, client.Preconditions{UID: &uid})
	}
	err := w.client.Delete(ctx, obj, opts...)
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		err = nil
	}
	return w.done("delete", obj, err)
}

// DeleteExact removes an object as long as it is as it was read. It fails with a
// conflict when it has changed since, and is content when there is none.
func (w Writer) DeleteExact(ctx context.Context, obj client.Object) error {
	uid, version := obj.GetUID(), obj.GetResourceVersion()
	err := w.client.Delete(ctx, obj, client.Preconditions{UID: &uid, ResourceVersion: &version})
	return w.done("delete", obj, client.IgnoreNotFound(err))
}

// NoNamespace says that an object could not be created because its namespace does
// not exist, or is being deleted.
func NoNamespace(err error) bool {
	return apierrors.IsNotFound(err) && !NoResource(err) || apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause)
}

// NoResource says that an API server does not serve the kind that it was asked for:
// a 404 that is not about any object.
func NoResource(err error) bool {
	return apierrors.IsNotFound(err) && apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse)
}

// DeleteAll removes every object of obj's kind in a namespace.
func (w Writer) DeleteAll(ctx context.Context, obj client.Object, namespace string) error {
	return w.done("deletecollection", obj, client.IgnoreNotFound(w.client.DeleteAllOf(ctx, obj, client.InNamespace(namespace))))
}

// Patch merges fields into an object, as a JSON merge patch. Where the object
// has a resourceVersion, it fails with a conflict if the object has changed since.
func (w Writer) Patch(ctx context.Context, obj client.Object, fields map[string]any) error {
	patch, err := w.mergePatch(obj, fields)
	if err != nil {
		return err
	}
	return w.done("patch", obj, w.client.Patch(ctx, obj, patch, client.FieldOwner(w.owner)))
}

// Apply applies the fields of obj, all of which are ours, by server-side apply.
// Where obj has a resourceVersion, it fails with a conflict if the object has
// changed since.
func (w Writer) Apply(ctx context.Context, obj *unstructured.Unstructured) error {
	config := client.ApplyConfigurationFromUnstructured(obj)
	return w.done("apply", obj, w.client.Apply(ctx, config, client.FieldOwner(w.owner), client.ForceOwnership))
}

// Status applies the fields of obj's status that are ours. obj holds apiVersion,
// kind, name and namespace, and of the status just these fields.
func (w Writer) Status(ctx context.Context, obj *unstructured.Unstructured) error {
	config := client.ApplyConfigurationFromUnstructured(obj)
	return w.done("status", obj, w.client.Status().Apply(ctx, config, client.FieldOwner(w.owner), client.ForceOwnership))
}

// StatusPatch merges fields into the status of an object that the hub owns alone.
func (w Writer) StatusPatch(ctx context.Context, obj client.Object, status map[string]any) error {
	patch, err := w.mergePatch(obj, map[string]any{"status": status})
	if err != nil {
		return err
	}
	return w.done("status", obj, w.client.Status().Patch(ctx, obj, patch, client.FieldOwner(w.owner)))
}

// StatusPatchOf does so whatever the status is now, as long as the object is the
// one of that UID. It fails with a conflict when another has come since.
func (w Writer) StatusPatchOf(ctx context.Context, obj client.Object, uid types.UID, status map[string]any) error {
	patch, err := w.mergePatch(obj, map[string]any{"metadata": map[string]any{"uid": uid}, "status": status})
	if err != nil {
		return err
	}
	return w.done("status", obj, w.client.Status().Patch(ctx, obj, patch, client.FieldOwner(w.owner)))
}

// Token asks for a token of an account, as the request says.
func (w Writer) Token(ctx context.Context, account *corev1.ServiceAccount, request *authenticationv1.TokenRequest) error {
	return w.done("token", account, w.client.SubResource("token").Create(ctx, account, request))
}

// AddFinalizer adds one finalizer, unless the object has it or is being deleted.
func (w Writer) AddFinalizer(ctx context.Context, obj client.Object, finalizer string) error {
	if slices.Contains(obj.GetFinalizers(), finalizer) || obj.GetDeletionTimestamp() != nil {
		return nil
	}
	return w.Patch(ctx, obj, map[string]any{"metadata": map[string]any{
		"finalizers": append(slices.Clone(obj.GetFinalizers()), finalizer),
	}})
}

// RemoveFinalizer takes one finalizer off. It is content when the object is gone.
func (w Writer) RemoveFinalizer(ctx context.Context, obj client.Object, finalizer string) error {
	if !slices.Contains(obj.GetFinalizers(), finalizer) {
		return nil
	}
	left := slices.DeleteFunc(slices.Clone(obj.GetFinalizers()), func(f string) bool { return f == finalizer })
	err := w.Patch(ctx, obj, map[string]any{"metadata": map[string]any{"finalizers": left}})
	return client.IgnoreNotFound(err)
}

// mergePatch returns the patch, with the object's resourceVersion as precondition.
func (w Writer) mergePatch(obj client.Object, fields map[string]any) (client.Patch, error) {
	if version := obj.GetResourceVersion(); version != "" {
		metadata, _ := fields["metadata"].(map[string]any)
		if metadata == nil {
			metadata = map[string]any{}
			fields["metadata"] = metadata
		}
		metadata["resourceVersion"] = version
	}
	data, err := json.Marshal(fields)
	if err != nil {
		return nil, fmt.Errorf("encoding a patch of %s: %w", client.ObjectKeyFromObject(obj), err)
	}
	return client.RawPatch(types.MergePatchType, data), nil
}

// done counts a write and says which one failed.
func (w Writer) done(verb string, obj client.Object, err error) error {
	count(w.owner, verb, obj, err)
	if err != nil {
		return fmt.Errorf("%s of %T %s: %w", verb, obj, client.ObjectKeyFromObject(obj), err)
	}
	return nil
}
