package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	clusterv1alpha1 "github.com/namesake-io/namesake/api/cluster/v1alpha1"
	networkingv1alpha1 "github.com/namesake-io/namesake/api/networking/v1alpha1"
	"github.com/namesake-io/namesake/internal/feature"
	"github.com/namesake-io/namesake/internal/webhook/rules"
)

// lookTimeout bounds the look at the hub's Clusters, which only a warning needs.
const lookTimeout = time.Second

// defaulter fills in what a MultiClusterService does not say. It works on the
// object as it came, so that fields of other versions pass through.
type defaulter struct{}

// Handle answers one request.
func (defaulter) Handle(_ context.Context, req admission.Request) admission.Response {
	obj, err := decode(req.Object.Raw)
	if err != nil {
		return admission.Errored(http.StatusBadRequest, err)
	}
	var old *unstructured.Unstructured
	if len(req.OldObject.Raw) > 0 {
		if old, err = decode(req.OldObject.Raw); err != nil {
			return admission.Errored(http.StatusBadRequest, err)
		}
	}
	rules.Default(obj, old, func() string { return string(uuid.NewUUID()) })
	changed, err := json.Marshal(obj.Object)
	if err != nil {
		return admission.Errored(http.StatusInternalServerError, fmt.Errorf("encoding the object: %w", err))
	}
	return admission.PatchResponseFromRaw(req.Object.Raw, changed)
}

func decode(raw []byte) (*unstructured.Unstructured, error) {
	obj := &unstructured.Unstructured{}
	if err := json.Unmarshal(raw, &obj.Object); err != nil {
		return nil, fmt.Errorf("reading the object: %w", err)
	}
	return obj, nil
}

// serviceValidator refuses MultiClusterServices that are wrong.
type serviceValidator struct {
	// enabled is the feature gate MultiClusterService.
	enabled bool
	// clusters reads the hub's Clusters.
	clusters client.Reader
}

// ValidateCreate refuses every new object when the feature is off.
func (v serviceValidator) ValidateCreate(ctx context.Context, mcs *networkingv1alpha1.MultiClusterService) (admission.Warnings, error) {
	if !v.enabled {
		return nil, apierrors.NewForbidden(networkingv1alpha1.GroupVersion.WithResource("multiclusterservices").GroupResource(), mcs.Name, errGate)
	}
	return v.validate(ctx, mcs, nil)
}

// errGate says why and what helps.
var errGate = fmt.Errorf("the feature gate %[1]s is off on this hub: "+
	"start its controller-manager with --feature-gates=%[1]s=true; what is shared already stays as it is, and can be changed and deleted",
	feature.MultiClusterService)

// ValidateUpdate refuses updates that make an object wrong.
func (v serviceValidator) ValidateUpdate(ctx context.Context, old, mcs *networkingv1alpha1.MultiClusterService) (admission.Warnings, error) {
	return v.validate(ctx, mcs, old)
}

// ValidateDelete lets everything go. It is not asked: a hub that is down must not
// keep anybody from cleaning up.
func (v serviceValidator) ValidateDelete(context.Context, *networkingv1alpha1.MultiClusterService) (admission.Warnings, error) {
	return nil, nil
}

func (v serviceValidator) validate(ctx context.Context, mcs, old *networkingv1alpha1.MultiClusterService) (admission.Warnings, error) {
	if err := invalid(networkingv1alpha1.GroupVersion.WithKind("MultiClusterService"), mcs.Name, rules.MultiClusterService(mcs, old)); err != nil {
		return nil, err
	}
	if !rules.Changed(mcs, old) || mcs.DeletionTimestamp != nil {
		return nil, nil // whoever wrote the spec has been warned
	}
	warnings := rules.Warnings(mcs)
	if unknown := rules.UnknownClusters(v.unknown(ctx, rules.NamedClusters(mcs))); unknown != "" {
		warnings = append(warnings, unknown)
	}
	return warnings, nil
}

// unknown returns which of the clusters have not joined. None, when the hub's
// Clusters cannot be seen: the status will tell.
func (v serviceValidator) unknown(ctx context.Context, names []string) (out []string) {
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	for _, name := range names {
		cluster := &metav1.PartialObjectMetadata{}
		cluster.SetGroupVersionKind(clusterv1alpha1.GroupVersion.WithKind("Cluster"))
		err := v.clusters.Get(ctx, types.NamespacedName{Name: name}, cluster)
		switch {
		case apierrors.IsNotFound(err):
			out = append(out, name)
		case err != nil:
			return nil
		}
	}
	return out
}

// clusterValidator refuses Clusters that are wrong.
type clusterValidator struct{}

// ValidateCreate refuses new Clusters that are wrong.
func (v clusterValidator) ValidateCreate(_ context.Context, cluster *clusterv1alpha1.Cluster) (admission.Warnings, error) {
	return v.validate(cluster, nil)
}

// ValidateUpdate refuses updates that make a Cluster wrong.
func (v clusterValidator) ValidateUpdate(_ context.Context, old, cluster *clusterv1alpha1.Cluster) (admission.Warnings, error) {
	return v.validate(cluster, old)
}

// ValidateDelete lets everything go, and is not asked.
func (clusterValidator) ValidateDelete(context.Context, *clusterv1alpha1.Cluster) (admission.Warnings, error) {
	return nil, nil
}

func (clusterValidator) validate(cluster, old *clusterv1alpha1.Cluster) (admission.Warnings, error) {
	if err := invalid(clusterv1alpha1.GroupVersion.WithKind("Cluster"), cluster.Name, rules.Cluster(cluster, old)); err != nil {
		return nil, err
	}
	if !rules.ClusterChanged(cluster, old) || cluster.DeletionTimestamp != nil {
		return nil, nil
	}
	return rules.ClusterWarnings(cluster), nil
}

// invalid is the errors as an API server tells them.
func invalid(kind schema.GroupVersionKind, name string, errs field.ErrorList) error {
	if len(errs) == 0 {
		return nil
	}
	return apierrors.NewInvalid(kind.GroupKind(), name, errs)
}

// errNoHost is for an address such as "9443".
var errNoHost = errors.New("give host:port, for example 127.0.0.1:9443, or 0 to switch the webhooks off")
