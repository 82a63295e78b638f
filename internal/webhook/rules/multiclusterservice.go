package rules

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	clusterv1alpha1 "github.com/namesake-io/namesake/api/cluster/v1alpha1"
	networkingv1alpha1 "github.com/namesake-io/namesake/api/networking/v1alpha1"
)

// The words that the enumerated fields know.
var (
	exposureTypes = []networkingv1alpha1.ExposureType{
		networkingv1alpha1.ExposureTypeCrossCluster, networkingv1alpha1.ExposureTypeLoadBalancer,
	}
	strategies = []networkingv1alpha1.DiscoveryStrategy{
		networkingv1alpha1.DiscoveryRemoteAndLocal, networkingv1alpha1.DiscoveryLocalFirst,
	}
	conflictResolutions = []networkingv1alpha1.ConflictResolution{
		networkingv1alpha1.ConflictAdopt, networkingv1alpha1.ConflictAbort, networkingv1alpha1.ConflictOverwrite,
	}
	unreachablePolicies = []networkingv1alpha1.UnreachablePolicy{
		networkingv1alpha1.UnreachableRetain, networkingv1alpha1.UnreachableMarkNotReady, networkingv1alpha1.UnreachableWithdraw,
	}
)

// MultiClusterService says what is wrong with an object. old is the object before
// an update, nil on creation. What an update leaves as it was is not held against
// it, nor is anything against an object that is being deleted: else nobody could
// take its finalizers off.
func MultiClusterService(mcs, old *networkingv1alpha1.MultiClusterService) field.ErrorList {
	if mcs.DeletionTimestamp != nil {
		return nil
	}
	errs := permanentID(mcs, old)
	if old == nil {
		errs = append(errs, serviceName(mcs.Name, field.NewPath("metadata", "name"))...)
	}
	if !Changed(mcs, old) {
		return errs
	}
	spec, path := &mcs.Spec, field.NewPath("spec")
	if old != nil && !slices.Equal(old.Spec.Types, spec.Types) {
		errs = append(errs, with(field.Invalid(path.Child("types"), spec.Types, ""),
			"cannot be changed from %v: delete this MultiClusterService and create one of the other type", old.Spec.Types))
	}
	errs = append(errs, types(spec.Types, path.Child("types"))...)
	errs = append(errs, ports(spec.Ports, path.Child("ports"))...)
	errs = append(errs, selectors(spec.ProviderClusters, path.Child("providerClusters"))...)
	errs = append(errs, selectors(spec.ConsumerClusters, path.Child("consumerClusters"))...)
	errs = append(errs, clusterNames(spec.ServiceProvisionClusters, path.Child("serviceProvisionClusters"))...)
	errs = append(errs, clusterNames(spec.ServiceConsumptionClusters, path.Child("serviceConsumptionClusters"))...)
	if spec.Range != nil {
		errs = append(errs, clusterNames(spec.Range.ClusterNames, path.Child("range", "clusterNames"))...)
	}
	errs = append(errs, oneOf(spec.DiscoveryStrategy, strategies, path.Child("discoveryStrategy"))...)
	errs = append(errs, oneOf(spec.ConflictResolution, conflictResolutions, path.Child("conflictResolution"))...)
	return append(errs, unreachable(spec.UnreachableProviders, path.Child("unreachableProviders"))...)
}

// Changed says that an update asks for something else than before.
func Changed(mcs, old *networkingv1alpha1.MultiClusterService) bool {
	return old == nil || !equality.Semantic.DeepEqual(mcs.Spec, old.Spec)
}

// permanentID is set once. The mutating webhook puts a changed one back, so this
// is for the day when it does not answer.
func permanentID(mcs, old *networkingv1alpha1.MultiClusterService) field.ErrorList {
	path := field.NewPath("metadata", "labels").Key(networkingv1alpha1.PermanentIDLabel)
	id := mcs.Labels[networkingv1alpha1.PermanentIDLabel]
	if old != nil {
		if had := old.Labels[networkingv1alpha1.PermanentIDLabel]; had != "" && had != id {
			return field.ErrorList{field.Invalid(path, id, fmt.Sprintf("cannot be changed or taken away: leave it at %q", had))}
		}
		return nil
	}
	if id == "" {
		return nil
	}
	if len(id) != uuidLength || !isUUID(id) {
		return field.ErrorList{field.Invalid(path, id, "must be a UUID: leave the label out, and one is given")}
	}
	return nil
}

// uuidLength is that of 123e4567-e89b-12d3-a456-426614174000.
const uuidLength = 36

func isUUID(s string) bool {
	for i, r := range s {
		dash := i == 8 || i == 13 || i == 18 || i == 23
		if dash != (r == '-') || !dash && !strings.ContainsRune("0123456789abcdefABCDEF", r) {
			return false
		}
	}
	return true
}

// serviceName checks a name that a Service will have.
func serviceName(name string, path *field.Path) field.ErrorList {
	if len(validation.IsDNS1035Label(name)) == 0 {
		return nil
	}
	return field.ErrorList{field.Invalid(path, name,
		"is also the name of the Service: use a DNS-1035 label (lower case letters, digits and '-', starting with a letter, at most 63 characters)")}
}

func types(have []networkingv1alpha1.ExposureType, path *field.Path) field.ErrorList {
	switch {
	case len(have) == 0:
		return field.ErrorList{field.Required(path, "give exactly one: "+list(exposureTypes))}
	case len(have) > 1:
		return field.ErrorList{with(field.TooMany(path, len(have), 1),
			"one object has one type: create a MultiClusterService of each type, in namespaces of their own")}
	case !slices.Contains(exposureTypes, have[0]):
		return field.ErrorList{field.NotSupported(path.Index(0), have[0], exposureTypes)}
	}
	return nil
}

// ports checks each port, and that none is there twice. One number may come under
// several names: a Service has TCP 53 and UDP 53.
func ports(have []networkingv1alpha1.ExposurePort, path *field.Path) (errs field.ErrorList) {
	names, pairs := map[string]bool{}, map[networkingv1alpha1.ExposurePort]bool{}
	for i, p := range have {
		at := path.Index(i)
		if p.Port < 1 || p.Port > 65535 {
			errs = append(errs, field.Invalid(at.Child("port"), p.Port, "must be a port of the Service, between 1 and 65535"))
		}
		if p.Name != "" && len(validation.IsDNS1123Label(p.Name)) > 0 {
			errs = append(errs, field.Invalid(at.Child("name"), p.Name,
				"must be the name of a port of the Service: lower case letters, digits and '-', at most 63 characters"))
		}
		switch {
		case pairs[p]:
			errs = append(errs, with(field.Duplicate(at, fmt.Sprintf("%s:%d", p.Name, p.Port)), "name each port once"))
		case p.Name != "" && names[p.Name]:
			errs = append(errs, with(field.Duplicate(at.Child("name"), p.Name), "a Service has one port of a name: name each port once"))
		}
		pairs[p], names[p.Name] = true, true
	}
	return errs
}

// selectors checks that each entry says which clusters it means, in one way.
func selectors(have []networkingv1alpha1.ClusterSelector, path *field.Path) (errs field.ErrorList) {
	for i := range have {
		s, at := &have[i], path.Index(i)
		switch {
		case s.Name == "" && s.LabelSelector == nil:
			errs = append(errs, field.Required(at, "give a name or a labelSelector; for all clusters, leave the list out"))
		case s.Name != "" && s.LabelSelector != nil:
			errs = append(errs, field.Invalid(at, s.Name, "has a name and a labelSelector: make two entries of it"))
		case s.Name != "":
			errs = append(errs, clusterName(string(s.Name), at.Child("name"))...)
		default:
			errs = append(errs, labelSelector(s.LabelSelector, at.Child("labelSelector"))...)
		}
	}
	return errs
}

func labelSelector(s *metav1.LabelSelector, path *field.Path) field.ErrorList {
	return metav1validation.ValidateLabelSelector(s, metav1validation.LabelSelectorValidationOptions{}, path)
}

func clusterNames(have []networkingv1alpha1.ClusterName, path *field.Path) (errs field.ErrorList) {
	for i, name := range have {
		errs = append(errs, clusterName(string(name), path.Index(i))...)
	}
	return errs
}

// clusterName checks the name of a Cluster.
func clusterName(name string, path *field.Path) field.ErrorList {
	if len(name) <= clusterv1alpha1.MaxNameLength && len(validation.IsDNS1123Label(name)) == 0 {
		return nil
	}
	return field.ErrorList{field.Invalid(path, name, fmt.Sprintf(
		"no cluster can have this name: it is a DNS-1123 label (lower case letters, digits and '-', no dots) of at most %d characters",
		clusterv1alpha1.MaxNameLength))}
}

func unreachable(u *networkingv1alpha1.UnreachableProviders, path *field.Path) field.ErrorList {
	if u == nil {
		return nil
	}
	errs := oneOf(u.Policy, unreachablePolicies, path.Child("policy"))
	if u.GracePeriod != nil && u.GracePeriod.Duration < 0 {
		errs = append(errs, field.Invalid(path.Child("gracePeriod"), u.GracePeriod.Duration.String(), "must not be negative: use 0s to act at once"))
	}
	return errs
}

// oneOf checks a word. None at all stands for the default.
func oneOf[T ~string](have T, known []T, path *field.Path) field.ErrorList {
	if have == "" || slices.Contains(known, have) {
		return nil
	}
	return field.ErrorList{field.NotSupported(path, have, known)}
}

// with adds the way out to an error that has none.
func with(err *field.Error, format string, args ...any) *field.Error {
	err.Detail = fmt.Sprintf(format, args...)
	return err
}

// list is words as a sentence has them.
func list[T ~string](words []T) string {
	out := make([]string, 0, len(words))
	for _, w := range words {
		out = append(out, string(w))
	}
	return strings.Join(out, ", ")
}
