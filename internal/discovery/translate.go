package discovery

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	networkingv1alpha1 "github.com/namesake-io/namesake/api/networking/v1alpha1"
	workv1alpha1 "github.com/namesake-io/namesake/api/work/v1alpha1"
)

// FieldManager is the field manager of dispatched slices, in members. It marks
// our slices even when somebody has edited all labels and annotations away.
const FieldManager = "namesake-dispatch"

// serviceProxyNameLabel hands a Service and its slices to another proxy than
// kube-proxy. (The constant is in k8s.io/kubernetes, which is no library.)
const serviceProxyNameLabel = "service.kubernetes.io/service-proxy-name"

// foreignZone is the zone hint, and foreignNode the node hint, of every
// dispatched endpoint. kube-proxy follows hints only while each ready endpoint
// has one. So an endpoint without a hint would switch off the consumer's own
// topology routing, and one with the provider's hint could pin traffic to a zone
// that means something else there. A hint that no consumer's zone or node equals
// does neither: local endpoints are preferred where the consumer asks for it,
// and all endpoints are used where its zone has none.
const (
	foreignZone = "other-cluster.namesake.io"
	foreignNode = "other-cluster.namesake.io"
)

// sliceOptions are the parts of a translation that are one for all slices of a
// service.
type sliceOptions struct {
	mcs      *networkingv1alpha1.MultiClusterService
	template *corev1.Service
	ports    portFilter
}

// translate returns a provider's slice as it stands in consumers, without a
// name. ok is false when nothing of it is exposed. The result shares with the
// input what its endpoints and ports point to.
func translate(in *discoveryv1.EndpointSlice, provider ClusterName, opts sliceOptions) (_ *discoveryv1.EndpointSlice, ok bool) {
	ports, ok := opts.ports.apply(in.Ports)
	if !ok {
		return nil, false
	}
	out := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: opts.mcs.Namespace,
			// The provider's own labels stay behind: they mirror its Service, and
			// a tool that finds its mark on them would take the slice for its own.
			Labels: map[string]string{
				discoveryv1.LabelServiceName: opts.mcs.Name,
				discoveryv1.LabelManagedBy:   networkingv1alpha1.DispatchedManagedBy,
				workv1alpha1.ManagedLabel:    workv1alpha1.ManagedValue,
			},
			Annotations: map[string]string{
				networkingv1alpha1.ProvisionClusterAnnotation: string(provider),
				networkingv1alpha1.SliceGenerationAnnotation:  strconv.FormatInt(in.Generation, 10),
				workv1alpha1.TemplateUIDAnnotation:            string(opts.mcs.UID),
			},
		},
		AddressType: in.AddressType,
		Ports:       ports,
		Endpoints:   make([]discoveryv1.Endpoint, len(in.Endpoints)),
	}
	opts.labelForProxies(out, in)
	if value, found := in.Annotations[corev1.EndpointsLastChangeTriggerTime]; found {
		out.Annotations[corev1.EndpointsLastChangeTriggerTime] = value
	}
	nodeHints := prefersSameNode(opts.template)
	for i := range in.Endpoints {
		out.Endpoints[i] = translateEndpoint(&in.Endpoints[i], nodeHints)
	}
	return out, true
}

// labelForProxies sets the labels by which proxies choose slices. They must say
// what the consumer's Service is, which is made from the template: kube-proxy
// ignores slices with either label, so with that of a provider where the Service
// stood before, and is headless, nobody would be reached.
func (o sliceOptions) labelForProxies(out, in *discoveryv1.EndpointSlice) {
	proxy, otherProxy := in.Labels[serviceProxyNameLabel]
	headless, isHeadless := in.Labels[corev1.IsHeadlessService]
	if o.template != nil {
		proxy, otherProxy = o.template.Labels[serviceProxyNameLabel]
		headless, isHeadless = "", o.template.Spec.ClusterIP == corev1.ClusterIPNone
	}
	if otherProxy {
		out.Labels[serviceProxyNameLabel] = proxy
	}
	if isHeadless {
		out.Labels[corev1.IsHeadlessService] = headless
	}
}

// translateEndpoint keeps what callers need (addresses, conditions, hostname,
// zone) and drops what only has a meaning in the provider: the node and the pod.
// A node of the same name in the consumer would else make a foreign endpoint
// count as local.
//
// Endpoints of two providers with one hostname, as StatefulSets of one name have
// them, both keep it: the name then resolves to both addresses, as it does for
// two endpoints of one hostname within a cluster.
func translateEndpoint(in *discoveryv1.Endpoint, nodeHints bool) discoveryv1.Endpoint {
	out := discoveryv1.Endpoint{
		Addresses:  canonical(in.Addresses),
		Conditions: in.Conditions,
		Hostname:   in.Hostname,
		Zone:       in.Zone,
		Hints:      &discoveryv1.EndpointHints{ForZones: []discoveryv1.ForZone{{Name: foreignZone}}},
	}
	if nodeHints {
		out.Hints.ForNodes = []discoveryv1.ForNode{{Name: foreignNode}}
	}
	return out
}

// canonical returns addresses in the one spelling that new API servers take for
// IPv6. A provider with an older one may have others, which would keep its whole
// slice out of a consumer with a new one.
func canonical(addresses []string) []string {
	out := addresses
	for i, a := range addresses {
		if !strings.Contains(a, ":") {
			continue // of IPv4 there is one spelling that parses
		}
		ip, err := netip.ParseAddr(a)
		if err != nil || ip.String() == a {
			continue
		}
		if &out[0] == &addresses[0] {
			out = slices.Clone(addresses)
		}
		out[i] = ip.String()
	}
	return out
}

// prefersSameNode is true when the consumer's own endpoints carry node hints, so
// that foreign ones need them too. Servers that do not know the preference do
// not know node hints either and never get one.
func prefersSameNode(template *corev1.Service) bool {
	return template != nil && template.Spec.TrafficDistribution != nil &&
		*template.Spec.TrafficDistribution == corev1.ServiceTrafficDistributionPreferSameNode
}

// Dispatched says whether a slice was put into its cluster by a hub, so that it
// is never taken for the cluster's own. Three independent marks: an edit that
// takes one off does not make the slice a native one.
func Dispatched(slice *discoveryv1.EndpointSlice) bool {
	if slice.Labels[discoveryv1.LabelManagedBy] == networkingv1alpha1.DispatchedManagedBy {
		return true
	}
	if _, found := slice.Annotations[networkingv1alpha1.ProvisionClusterAnnotation]; found {
		return true
	}
	return slices.ContainsFunc(slice.ManagedFields, func(e metav1.ManagedFieldsEntry) bool {
		return e.Manager == FieldManager
	})
}
