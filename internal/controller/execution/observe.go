package execution

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha1 "github.com/namesake-io/namesake/api/work/v1alpha1"
	"github.com/namesake-io/namesake/internal/manifest"
	"github.com/namesake-io/namesake/internal/member"
)

// errInvalidManifest says that a manifest can never be applied as it is.
var errInvalidManifest = errors.New("the manifest is no object that can be applied")

// object is one manifest of a Work, and what stands for it in the member.
type object struct {
	// want is the manifest with the marks of its Work. Set from the Work.
	want *unstructured.Unstructured
	// have is the object in the member, nil when there is none. Set from the
	// member's view or API server.
	have *unstructured.Unstructured
}

// observe reads every object of a Work in the member. Those that could be read
// are returned beside the errors of the others.
func (c *Controller) observe(ctx context.Context, m *member.Member, work *workv1alpha1.Work) ([]object, error) {
	var out []object
	var errs []error
	for i, raw := range work.Spec.Workload.Manifests {
		want, err := manifest.Decode(raw)
		if err != nil {
			errs = append(errs, fmt.Errorf("manifest %d: %w: %w", i, errInvalidManifest, err))
			continue
		}
		mark(want, work)
		have, found, err := m.Object(ctx, want.GroupVersionKind(), client.ObjectKeyFromObject(want))
		if err != nil {
			errs = append(errs, fmt.Errorf("manifest %d: %w", i, err))
			continue
		}
		o := object{want: want}
		if found {
			o.have = have
		}
		out = append(out, o)
	}
	return out, errors.Join(errs...)
}

// mark puts on an object what says where it comes from.
func mark(obj *unstructured.Unstructured, work *workv1alpha1.Work) {
	labels := obj.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	labels[workv1alpha1.ManagedLabel] = workv1alpha1.ManagedValue
	obj.SetLabels(labels)
	annotations := obj.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[workv1alpha1.NameAnnotation] = work.Name
	annotations[workv1alpha1.NamespaceAnnotation] = work.Namespace
	obj.SetAnnotations(annotations)
}
