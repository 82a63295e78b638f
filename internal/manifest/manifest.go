// Package manifest turns objects into the manifests of Works and back. Pure: no
// client, clock or context.
package manifest

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"strings"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/rand"

	networkingv1alpha1 "github.com/namesake-io/namesake/api/networking/v1alpha1"
	workv1alpha1 "github.com/namesake-io/namesake/api/work/v1alpha1"
)

// maxWorkName leaves room for the hash in a name of 253 characters.
const maxWorkName = 240

// Identity says which object a manifest is.
type Identity struct {
	Group, Kind, Namespace, Name string
}

// String returns the identity as an index key.
func (i Identity) String() string {
	return i.Group + "/" + i.Kind + "/" + i.Namespace + "/" + i.Name
}

// WorkName returns the name of the Work that holds an object, within the
// execution namespace of its member.
func WorkName(id Identity) string {
	input := id.Name + "-" + id.Kind
	if id.Namespace != "" {
		input = id.Namespace + "-" + input
	}
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(strings.ToLower(input)))
	name := strings.ToLower(strings.ReplaceAll(id.Name, ":", "."))
	if len(name) > maxWorkName {
		name = strings.TrimRight(name[:maxWorkName], "-.")
	}
	return name + "-" + rand.SafeEncodeString(fmt.Sprint(hash.Sum32()))
}

// IdentityOf reads which object a manifest is.
func IdentityOf(m workv1alpha1.Manifest) (Identity, error) {
	var head metav1.PartialObjectMetadata
	if err := json.Unmarshal(m.Raw, &head); err != nil {
		return Identity{}, fmt.Errorf("reading a manifest: %w", err)
	}
	if head.Kind == "" || head.Name == "" {
		return Identity{}, fmt.Errorf("reading a manifest: kind %q and metadata.name %q must not be empty", head.Kind, head.Name)
	}
	return Identity{
		Group: head.GroupVersionKind().Group, Kind: head.Kind, Namespace: head.Namespace, Name: head.Name,
	}, nil
}

// Decode reads a manifest as it is.
func Decode(m workv1alpha1.Manifest) (*unstructured.Unstructured, error) {
	obj := &unstructured.Unstructured{}
	if err := obj.UnmarshalJSON(m.Raw); err != nil {
		return nil, fmt.Errorf("reading a manifest: %w", err)
	}
	return obj, nil
}

// Encode makes a manifest of an object.
func Encode(obj any) (workv1alpha1.Manifest, error) {
	raw, err := json.Marshal(obj)
	if err != nil {
		return workv1alpha1.Manifest{}, fmt.Errorf("encoding a manifest: %w", err)
	}
	return workv1alpha1.Manifest{RawExtension: runtime.RawExtension{Raw: raw}}, nil
}

// Collected returns the slices that a Work holds. Manifests of
// other kinds are passed over.
func Collected(work *workv1alpha1.Work) ([]*discoveryv1.EndpointSlice, error) {
	var out []*discoveryv1.EndpointSlice
	for i, m := range work.Spec.Workload.Manifests {
		slice := &discoveryv1.EndpointSlice{}
		if err := json.Unmarshal(m.Raw, slice); err != nil {
			return nil, fmt.Errorf("reading manifest %d of Work %s/%s: %w", i, work.Namespace, work.Name, err)
		}
		if slice.Kind == "EndpointSlice" {
			out = append(out, slice)
		}
	}
	return out, nil
}

// IsCollected says whether a Work is the hub's memory of slices.
func IsCollected(work *workv1alpha1.Work) bool { return suspended(work) && !IsOrder(work) }

// IsOrder says whether a Work tells an agent to collect slices.
func IsOrder(work *workv1alpha1.Work) bool {
	return suspended(work) && work.Labels[networkingv1alpha1.PullLabel] == networkingv1alpha1.PullOrder
}

// IsDelivery says whether a Work holds slices that an agent shall let stand.
func IsDelivery(work *workv1alpha1.Work) bool {
	return !suspended(work) && work.Labels[networkingv1alpha1.PullLabel] == networkingv1alpha1.PullDelivery
}

// IsApplied says whether a Work holds objects that shall stand in the member as
// they are.
func IsApplied(work *workv1alpha1.Work) bool { return !suspended(work) && !IsDelivery(work) }

// ServiceOf returns the service that a Work's labels name. Its name is empty when
// they name none.
func ServiceOf(work *workv1alpha1.Work) types.NamespacedName {
	return types.NamespacedName{
		Namespace: work.Labels[networkingv1alpha1.NamespaceKey], Name: work.Labels[networkingv1alpha1.NameKey],
	}
}

func suspended(work *workv1alpha1.Work) bool {
	return work.Spec.SuspendDispatching != nil && *work.Spec.SuspendDispatching
}
