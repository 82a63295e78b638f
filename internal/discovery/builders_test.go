package discovery_test

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	networkingv1alpha1 "github.com/namesake-io/namesake/api/networking/v1alpha1"
	"github.com/namesake-io/namesake/internal/discovery"
)

// The service of all tests is shop/foo, with one port http.
const (
	namespace = "shop"
	service   = "foo"
	mcsUID    = "6d1f2c9e-mcs"
)

var now = time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)

type (
	wish            = networkingv1alpha1.MultiClusterService
	clusterSelector = networkingv1alpha1.ClusterSelector
	exposurePort    = networkingv1alpha1.ExposurePort
	sliceOption     func(*discoveryv1.EndpointSlice)
	endpointOption  func(*discoveryv1.Endpoint)
)

// ptr is for literals.
func ptr[T any](v T) *T { return &v }

// crossCluster is a wish of all clusters for all clusters, changed by edits.
func crossCluster(edits ...func(*wish)) *wish {
	m := &wish{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: service, UID: mcsUID},
		Spec: networkingv1alpha1.MultiClusterServiceSpec{
			Types: []networkingv1alpha1.ExposureType{networkingv1alpha1.ExposureTypeCrossCluster},
		},
	}
	for _, edit := range edits {
		edit(m)
	}
	return m
}

func providers(names ...string) func(*wish) {
	return func(m *wish) { m.Spec.ProviderClusters = named(names) }
}

func consumers(names ...string) func(*wish) {
	return func(m *wish) { m.Spec.ConsumerClusters = named(names) }
}

func named(names []string) (out []clusterSelector) {
	for _, n := range names {
		out = append(out, clusterSelector{Name: networkingv1alpha1.ClusterName(n)})
	}
	return out
}

func exposing(ports ...exposurePort) func(*wish) {
	return func(m *wish) { m.Spec.Ports = ports }
}

func whenUnreachable(policy networkingv1alpha1.UnreachablePolicy, grace time.Duration) func(*wish) {
	return func(m *wish) {
		m.Spec.UnreachableProviders = &networkingv1alpha1.UnreachableProviders{
			Policy: policy, GracePeriod: &metav1.Duration{Duration: grace},
		}
	}
}

// template is the hub's Service with one port http:80, changed by edits.
func template(edits ...func(*corev1.Service)) *corev1.Service {
	s := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: service},
		Spec:       corev1.ServiceSpec{ClusterIP: "10.96.0.7", Ports: []corev1.ServicePort{{Name: "http", Port: 80}}},
	}
	for _, edit := range edits {
		edit(s)
	}
	return s
}

func servicePorts(ports ...corev1.ServicePort) func(*corev1.Service) {
	return func(s *corev1.Service) { s.Spec.Ports = ports }
}

func headless(s *corev1.Service) { s.Spec.ClusterIP = corev1.ClusterIPNone }

// member is a cluster that answers and whose slices are known completely.
func member(name string, own ...*discoveryv1.EndpointSlice) discovery.Cluster {
	return discovery.Cluster{Name: discovery.ClusterName(name), Slices: own, Authoritative: true}
}

// rememberedMember is a cluster that has not been asked yet: the hub has only
// its memory.
func rememberedMember(name string, own ...*discoveryv1.EndpointSlice) discovery.Cluster {
	c := member(name, own...)
	c.Authoritative = false
	return c
}

// silentFor is a cluster that has not answered for a while.
func silentFor(d time.Duration, c discovery.Cluster) discovery.Cluster {
	c.UnreachableSince = now.Add(-d)
	return c
}

// snapshot of a wish over clusters, with the usual template.
func snapshot(m *wish, clusters ...discovery.Cluster) discovery.Snapshot {
	return discovery.Snapshot{
		Service:  types.NamespacedName{Namespace: namespace, Name: service},
		MCS:      m,
		Template: template(),
		Clusters: clusters,
		Now:      now,
	}
}

// slice is a provider's own slice as its endpointslice controller makes it: IPv4,
// port http 8080, no endpoints.
func slice(name string, options ...sliceOption) *discoveryv1.EndpointSlice {
	s := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Namespace:  namespace,
			Name:       name,
			Generation: 1,
			Labels: map[string]string{
				discoveryv1.LabelServiceName: service,
				discoveryv1.LabelManagedBy:   "endpointslice-controller.k8s.io",
			},
		},
		AddressType: discoveryv1.AddressTypeIPv4,
		Ports:       []discoveryv1.EndpointPort{port("http", 8080)},
	}
	for _, o := range options {
		o(s)
	}
	return s
}

func port(name string, number int32) discoveryv1.EndpointPort {
	return discoveryv1.EndpointPort{Name: &name, Port: &number, Protocol: ptr(corev1.ProtocolTCP)}
}

func udp(p discoveryv1.EndpointPort) discoveryv1.EndpointPort {
	p.Protocol = ptr(corev1.ProtocolUDP)
	return p
}

func ports(list ...discoveryv1.EndpointPort) sliceOption {
	return func(s *discoveryv1.EndpointSlice) { s.Ports = list }
}

func generation(g int64) sliceOption {
	return func(s *discoveryv1.EndpointSlice) { s.Generation = g }
}

func addressType(a discoveryv1.AddressType) sliceOption {
	return func(s *discoveryv1.EndpointSlice) { s.AddressType = a }
}

func label(key, value string) sliceOption {
	return func(s *discoveryv1.EndpointSlice) { metav1.SetMetaDataLabel(&s.ObjectMeta, key, value) }
}

func annotation(key, value string) sliceOption {
	return func(s *discoveryv1.EndpointSlice) { metav1.SetMetaDataAnnotation(&s.ObjectMeta, key, value) }
}

// pod adds an endpoint as a provider has it: ready, on a node, of a pod, in a zone.
func pod(address string, options ...endpointOption) sliceOption {
	e := discoveryv1.Endpoint{
		Addresses:  []string{address},
		Conditions: discoveryv1.EndpointConditions{Ready: ptr(true), Serving: ptr(true), Terminating: ptr(false)},
		NodeName:   ptr("node-1"),
		Zone:       ptr("zone-1"),
		TargetRef:  &corev1.ObjectReference{Kind: "Pod", Namespace: namespace, Name: "foo-1"},
	}
	for _, o := range options {
		o(&e)
	}
	return func(s *discoveryv1.EndpointSlice) { s.Endpoints = append(s.Endpoints, e) }
}

func conditions(c discoveryv1.EndpointConditions) endpointOption {
	return func(e *discoveryv1.Endpoint) { e.Conditions = c }
}

func notReady(e *discoveryv1.Endpoint) { e.Conditions.Ready = ptr(false) }

func hostname(h string) endpointOption {
	return func(e *discoveryv1.Endpoint) { e.Hostname = &h }
}

func zoneHint(zone string) endpointOption {
	return func(e *discoveryv1.Endpoint) {
		e.Hints = &discoveryv1.EndpointHints{ForZones: []discoveryv1.ForZone{{Name: zone}}}
	}
}
