package membership

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Keys of the marker's data.
const (
	keyHubID            = "hubID"
	keyHubURL           = "hubURL"
	keyCluster          = "cluster"
	keyCreatedNamespace = "createdNamespace"
)

// Marker says, in the member, which hub the member belongs to.
type Marker struct {
	// HubID is the UID of the hub's kube-system namespace.
	HubID string
	// HubURL is where the hub was when the member joined, for people.
	HubURL string
	// Cluster is the member's name on that hub.
	Cluster string
	// CreatedNamespace: the join made the marker's namespace, so the unjoin may
	// remove it.
	CreatedNamespace bool
}

// ReadMarker returns nil when there is none.
func ReadMarker(ctx context.Context, member client.Client) (*Marker, error) {
	obj := markerObject()
	err := member.Get(ctx, client.ObjectKeyFromObject(obj), obj)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the marker %s/%s: %w", Namespace, MarkerName, err)
	}
	return markerOf(obj), nil
}

func markerOf(obj *corev1.ConfigMap) *Marker {
	return &Marker{
		HubID:            obj.Data[keyHubID],
		HubURL:           obj.Data[keyHubURL],
		Cluster:          obj.Data[keyCluster],
		CreatedNamespace: obj.Data[keyCreatedNamespace] == "true",
	}
}

// Object returns the ConfigMap that holds m.
func (m Marker) Object() *corev1.ConfigMap {
	obj := markerObject()
	Mark(obj)
	obj.Data = map[string]string{keyHubID: m.HubID, keyHubURL: m.HubURL, keyCluster: m.Cluster}
	if m.CreatedNamespace {
		obj.Data[keyCreatedNamespace] = "true"
	}
	return obj
}

func markerObject() *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: MarkerName}}
}
