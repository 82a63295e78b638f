package discovery_test

import (
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	networkingv1alpha1 "github.com/namesake-io/namesake/api/networking/v1alpha1"
	"github.com/namesake-io/namesake/internal/discovery"
)

const lastChange = corev1.EndpointsLastChangeTriggerTime

// translated is a's slice as b holds it.
func translated(t *testing.T, in *discoveryv1.EndpointSlice, service *corev1.Service) *discoveryv1.EndpointSlice {
	t.Helper()
	s := snapshot(crossCluster(), member("a", in), member("b"))
	s.Template = service
	wanted := discovery.NewPlan(s).Wanted("b")
	if len(wanted) != 1 {
		t.Fatalf("b is to hold %d slices, want 1", len(wanted))
	}
	if err := acceptable(wanted[0].Slice); err != nil {
		t.Error(err)
	}
	return wanted[0].Slice
}

func TestTranslate_whole(t *testing.T) {
	in := slice("foo-x7k2p", generation(7), pod("10.0.0.1", hostname("foo-0")),
		label("app", "foo"), label("helm.sh/chart", "foo-1.0"), label("endpointslice.kubernetes.io/skip-mirror", "true"),
		annotation(lastChange, "2026-08-01T11:59:59Z"), annotation("kubectl.kubernetes.io/last-applied-configuration", "{}"))
	in.UID, in.ResourceVersion = "uid", "17"
	in.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Service", Name: "foo", UID: "uid"}}
	in.Finalizers = []string{"example.com/keep"}

	want := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop",
			Name:      "a-foo-x7k2p",
			Labels: map[string]string{
				"kubernetes.io/service-name":             "foo",
				"endpointslice.kubernetes.io/managed-by": "endpointslice-dispatch-controller.karmada.io",
				"karmada.io/managed":                     "true",
			},
			Annotations: map[string]string{
				"endpointslice.karmada.io/provision-cluster":        "a",
				"endpointslice.karmada.io/endpointslice-generation": "7",
				"resourcetemplate.karmada.io/uid":                   mcsUID,
				"endpoints.kubernetes.io/last-change-trigger-time":  "2026-08-01T11:59:59Z",
			},
		},
		AddressType: discoveryv1.AddressTypeIPv4,
		Ports:       []discoveryv1.EndpointPort{port("http", 8080)},
		Endpoints: []discoveryv1.Endpoint{{
			Addresses:  []string{"10.0.0.1"},
			Conditions: discoveryv1.EndpointConditions{Ready: ptr(true), Serving: ptr(true), Terminating: ptr(false)},
			Hostname:   ptr("foo-0"),
			Zone:       ptr("zone-1"),
			Hints:      &discoveryv1.EndpointHints{ForZones: []discoveryv1.ForZone{{Name: "other-cluster.namesake.io"}}},
		}},
	}
	if diff := cmp.Diff(want, translated(t, in, template())); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestTranslate_endpoints(t *testing.T) {
	foreign := []discoveryv1.ForZone{{Name: "other-cluster.namesake.io"}}
	prefers := func(distribution string) *corev1.Service {
		return template(func(s *corev1.Service) { s.Spec.TrafficDistribution = &distribution })
	}
	as := func(c discoveryv1.EndpointConditions) *discoveryv1.EndpointConditions { return &c }

	tests := map[string]struct {
		in             sliceOption
		template       *corev1.Service
		wantConditions *discoveryv1.EndpointConditions
		wantHints      *discoveryv1.EndpointHints
		wantHostname   *string
	}{
		"C3_unknown_conditions_stay_unknown": {
			in:             pod("10.0.0.1", conditions(discoveryv1.EndpointConditions{})),
			wantConditions: as(discoveryv1.EndpointConditions{}),
		},
		"C4_not_ready_is_told": {
			in:             pod("10.0.0.1", notReady),
			wantConditions: as(discoveryv1.EndpointConditions{Ready: ptr(false), Serving: ptr(true), Terminating: ptr(false)}),
		},
		"an_ending_pod_that_still_serves": {
			in:             pod("10.0.0.1", conditions(discoveryv1.EndpointConditions{Ready: ptr(false), Serving: ptr(true), Terminating: ptr(true)})),
			wantConditions: as(discoveryv1.EndpointConditions{Ready: ptr(false), Serving: ptr(true), Terminating: ptr(true)}),
		},
		"C12_the_hostname_stays":  {in: pod("10.0.0.1", hostname("foo-0")), wantHostname: ptr("foo-0")},
		"C13_no_hint_becomes_one": {in: pod("10.0.0.1"), wantHints: &discoveryv1.EndpointHints{ForZones: foreign}},
		"C13_the_providers_zone_hint_goes": {
			in: pod("10.0.0.1", zoneHint("zone-1")), wantHints: &discoveryv1.EndpointHints{ForZones: foreign},
		},
		"C13_not_ready_ones_too": {in: pod("10.0.0.1", notReady), wantHints: &discoveryv1.EndpointHints{ForZones: foreign}},
		"C13_close_is_a_matter_of_zones": {
			in: pod("10.0.0.1"), template: prefers(corev1.ServiceTrafficDistributionPreferClose),
			wantHints: &discoveryv1.EndpointHints{ForZones: foreign},
		},
		"C13_same_node_is_one_of_nodes_too": {
			in: pod("10.0.0.1"), template: prefers(corev1.ServiceTrafficDistributionPreferSameNode),
			wantHints: &discoveryv1.EndpointHints{ForZones: foreign, ForNodes: []discoveryv1.ForNode{{Name: "other-cluster.namesake.io"}}},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got := translated(t, slice("s", tt.in), tt.template).Endpoints[0]
			if got.NodeName != nil || got.TargetRef != nil || got.DeprecatedTopology != nil {
				t.Errorf("node %v, pod %v or topology %v is left", got.NodeName, got.TargetRef, got.DeprecatedTopology)
			}
			if tt.wantConditions != nil {
				if diff := cmp.Diff(*tt.wantConditions, got.Conditions); diff != "" {
					t.Errorf("conditions (-want +got):\n%s", diff)
				}
			}
			if tt.wantHints != nil {
				if diff := cmp.Diff(tt.wantHints, got.Hints); diff != "" {
					t.Errorf("hints (-want +got):\n%s", diff)
				}
			}
			if diff := cmp.Diff(tt.wantHostname, got.Hostname); diff != "" {
				t.Errorf("hostname (-want +got):\n%s", diff)
			}
		})
	}
}

// A new API server refuses IPv6 addresses that an older one has let through.
func TestTranslate_C5_addresses_are_spelled_canonically(t *testing.T) {
	in := slice("s", addressType(discoveryv1.AddressTypeIPv6), pod("FD00:0:0::0001"), pod("fd00::2"))
	if diff := cmp.Diff([]string{"fd00::1", "fd00::2"}, endpoints(translated(t, in, template()))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := in.Endpoints[0].Addresses[0]; got != "FD00:0:0::0001" {
		t.Errorf("the provider's own is changed to %s", got)
	}
}

// C13, as kube-proxy sees it (pkg/proxy/topology.go): a node uses hints when each
// ready endpoint has one and one of them is for its zone or node.
func TestTranslate_C13_topology_of_the_consumer(t *testing.T) {
	own := func(address string) discoveryv1.Endpoint {
		return discoveryv1.Endpoint{Addresses: []string{address}, Hints: &discoveryv1.EndpointHints{
			ForZones: []discoveryv1.ForZone{{Name: "zone-1"}}, ForNodes: []discoveryv1.ForNode{{Name: "node-1"}},
		}}
	}
	service := template(func(s *corev1.Service) {
		s.Spec.TrafficDistribution = ptr(corev1.ServiceTrafficDistributionPreferSameNode)
	})
	remote := translated(t, slice("s", pod("10.0.0.1", zoneHint("zone-1"))), service).Endpoints

	tests := map[string]struct {
		own  []discoveryv1.Endpoint
		zone string
		want []string
	}{
		"own_endpoints_in_the_zone_are_preferred":   {own: []discoveryv1.Endpoint{own("10.9.0.1")}, zone: "zone-1", want: []string{"10.9.0.1"}},
		"none_in_the_zone_means_all":                {own: []discoveryv1.Endpoint{own("10.9.0.1")}, zone: "zone-2", want: []string{"10.9.0.1", "10.0.0.1"}},
		"no_own_endpoints_means_the_others":         {zone: "zone-1", want: []string{"10.0.0.1"}},
		"own_endpoints_without_hints_are_just_more": {own: []discoveryv1.Endpoint{{Addresses: []string{"10.9.0.1"}}}, zone: "zone-1", want: []string{"10.9.0.1", "10.0.0.1"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			node := map[string]string{"zone-1": "node-1", "zone-2": "node-2"}[tt.zone]
			if diff := cmp.Diff(tt.want, routed(append(tt.own, remote...), tt.zone, zonesOf)); diff != "" {
				t.Errorf("calls by zone go to (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tt.want, routed(append(tt.own, remote...), node, nodesOf)); diff != "" {
				t.Errorf("calls by node go to (-want +got):\n%s", diff)
			}
		})
	}
}

func zonesOf(e discoveryv1.Endpoint) (out []string) {
	if e.Hints != nil {
		for _, z := range e.Hints.ForZones {
			out = append(out, z.Name)
		}
	}
	return out
}

func nodesOf(e discoveryv1.Endpoint) (out []string) {
	if e.Hints != nil {
		for _, n := range e.Hints.ForNodes {
			out = append(out, n.Name)
		}
	}
	return out
}

// routed returns the addresses that a node uses, all endpoints being ready.
func routed(all []discoveryv1.Endpoint, here string, hints func(discoveryv1.Endpoint) []string) []string {
	var everywhere, hinted []string
	each := true
	for _, e := range all {
		everywhere = append(everywhere, e.Addresses[0])
		each = each && len(hints(e)) > 0
		for _, h := range hints(e) {
			if h == here {
				hinted = append(hinted, e.Addresses[0])
			}
		}
	}
	if each && len(hinted) > 0 {
		return hinted
	}
	return everywhere
}

// Labels by which proxies choose slices say what the consumer's Service is.
func TestTranslate_proxy_labels(t *testing.T) {
	const proxyName = "service.kubernetes.io/service-proxy-name"
	inherits := label(corev1.IsHeadlessService, "")
	tests := map[string]struct {
		in       *discoveryv1.EndpointSlice
		template *corev1.Service
		want     map[string]string
	}{
		"C12_headless":                         {in: slice("s", inherits), template: template(headless), want: map[string]string{corev1.IsHeadlessService: ""}},
		"C12_headless_without_the_template":    {in: slice("s", inherits), want: map[string]string{corev1.IsHeadlessService: ""}},
		"neither":                              {in: slice("s"), template: template()},
		"C18_headless_in_the_provider_only":    {in: slice("s", inherits), template: template()},
		"C18_headless_but_not_in_the_provider": {in: slice("s"), template: template(headless), want: map[string]string{corev1.IsHeadlessService: ""}},
		"another_proxy": {
			in:       slice("s", label(proxyName, "fast")),
			template: template(func(s *corev1.Service) { s.Labels = map[string]string{proxyName: "fast"} }),
			want:     map[string]string{proxyName: "fast"},
		},
		"another_proxy_without_the_template":  {in: slice("s", label(proxyName, "fast")), want: map[string]string{proxyName: "fast"}},
		"another_proxy_in_the_provider_only":  {in: slice("s", label(proxyName, "fast")), template: template()},
		"C21_made_by_hand_without_a_selector": {in: &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "s", Labels: map[string]string{discoveryv1.LabelServiceName: service}}, AddressType: discoveryv1.AddressTypeIPv4}, template: template()},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			labels := translated(t, tt.in, tt.template).Labels
			for _, always := range []string{discoveryv1.LabelServiceName, discoveryv1.LabelManagedBy, "karmada.io/managed"} {
				if labels[always] == "" {
					t.Errorf("label %s is missing", always)
				}
				delete(labels, always)
			}
			if len(tt.want) == 0 && len(labels) == 0 {
				return
			}
			if diff := cmp.Diff(tt.want, labels); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// C32: each mark by itself is enough.
func TestDispatched_C32(t *testing.T) {
	tests := map[string]struct {
		in   *discoveryv1.EndpointSlice
		want bool
	}{
		"the_endpointslice_controllers":  {in: slice("s")},
		"made_by_hand":                   {in: &discoveryv1.EndpointSlice{}},
		"label_only":                     {in: slice("s", label(discoveryv1.LabelManagedBy, networkingv1alpha1.DispatchedManagedBy)), want: true},
		"annotation_only":                {in: slice("s", annotation(networkingv1alpha1.ProvisionClusterAnnotation, "a")), want: true},
		"an_emptied_annotation":          {in: slice("s", annotation(networkingv1alpha1.ProvisionClusterAnnotation, "")), want: true},
		"field_manager_only":             {in: slice("s", managedBy("kubectl-edit", discovery.FieldManager)), want: true},
		"the_field_manager_of_others":    {in: slice("s", managedBy("kubectl-edit", "kube-controller-manager"))},
		"the_work_annotation_of_another": {in: slice("s", annotation("work.karmada.io/name", "foo"))},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := discovery.Dispatched(tt.in); got != tt.want {
				t.Errorf("got %t, want %t", got, tt.want)
			}
		})
	}
}

func managedBy(managers ...string) sliceOption {
	return func(s *discoveryv1.EndpointSlice) {
		for _, m := range managers {
			s.ManagedFields = append(s.ManagedFields, metav1.ManagedFieldsEntry{Manager: m})
		}
	}
}

// Each edit that matters is seen; what others may do is not.
func TestEqual(t *testing.T) {
	tests := map[string]struct {
		edit sliceOption
		want bool
	}{
		"nothing":                       {edit: func(*discoveryv1.EndpointSlice) {}, want: true},
		"another_annotation":            {edit: annotation("example.com/note", "x"), want: true},
		"the_servers_fields":            {edit: func(s *discoveryv1.EndpointSlice) { s.UID, s.ResourceVersion, s.Generation = "u", "9", 4 }, want: true},
		"empty_for_absent":              {edit: func(s *discoveryv1.EndpointSlice) { s.Endpoints[0].DeprecatedTopology = map[string]string{} }, want: true},
		"C32_another_label":             {edit: label("example.com/note", "x")},
		"C32_a_label_gone":              {edit: func(s *discoveryv1.EndpointSlice) { delete(s.Labels, discoveryv1.LabelServiceName) }},
		"C32_a_label_changed":           {edit: label(discoveryv1.LabelServiceName, "bar")},
		"C32_an_annotation_gone":        {edit: func(s *discoveryv1.EndpointSlice) { s.Annotations = nil }},
		"C32_an_annotation_changed":     {edit: annotation(networkingv1alpha1.ProvisionClusterAnnotation, "x")},
		"a_stale_trigger_time":          {edit: annotation(lastChange, "2026-08-01T11:00:00Z")},
		"C4_ready":                      {edit: func(s *discoveryv1.EndpointSlice) { s.Endpoints[0].Conditions.Ready = ptr(false) }},
		"C4_terminating":                {edit: func(s *discoveryv1.EndpointSlice) { s.Endpoints[0].Conditions.Terminating = ptr(true) }},
		"C4_unset_is_not_what_was_told": {edit: func(s *discoveryv1.EndpointSlice) { s.Endpoints[0].Conditions.Serving = nil }},
		"an_address":                    {edit: func(s *discoveryv1.EndpointSlice) { s.Endpoints[0].Addresses[0] = "10.0.0.9" }},
		"one_endpoint_less":             {edit: func(s *discoveryv1.EndpointSlice) { s.Endpoints = nil }},
		"C13_a_node":                    {edit: func(s *discoveryv1.EndpointSlice) { s.Endpoints[0].NodeName = ptr("node-1") }},
		"C13_no_hint":                   {edit: func(s *discoveryv1.EndpointSlice) { s.Endpoints[0].Hints = nil }},
		"C1_a_port_number":              {edit: ports(port("http", 9090))},
		"C14_a_port_name":               {edit: ports(port("web", 8080))},
		"C23_a_protocol":                {edit: ports(udp(port("http", 8080)))},
		"C5_the_address_type":           {edit: addressType(discoveryv1.AddressTypeIPv6)},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			want := translated(t, slice("s", pod("10.0.0.1")), template())
			standing := want.DeepCopy()
			tt.edit(standing)
			if got := discovery.Equal(want, standing); got != tt.want {
				t.Errorf("got %t, want %t", got, tt.want)
			}
		})
	}
}

// Equal compares field by field, so each field of endpoints and ports has to be
// set here, whatever a later API adds.
func TestEqual_sees_each_field(t *testing.T) {
	want := translated(t, slice("s", pod("10.0.0.1", hostname("foo-0"))), template())
	each := func(of func(*discoveryv1.EndpointSlice) reflect.Value) {
		for i := range of(want.DeepCopy()).NumField() {
			standing := want.DeepCopy()
			field := of(standing).Field(i)
			name := of(standing).Type().Field(i).Name
			if of(standing).Type() == reflect.TypeFor[discoveryv1.Endpoint]() && name == "Conditions" {
				continue // a struct, whose fields are set by themselves
			}
			change(field)
			if discovery.Equal(want, standing) {
				t.Errorf("another %s of %s is not seen", name, of(standing).Type())
			}
		}
	}
	each(func(s *discoveryv1.EndpointSlice) reflect.Value { return reflect.ValueOf(&s.Ports[0]).Elem() })
	each(func(s *discoveryv1.EndpointSlice) reflect.Value { return reflect.ValueOf(&s.Endpoints[0]).Elem() })
	each(func(s *discoveryv1.EndpointSlice) reflect.Value {
		return reflect.ValueOf(&s.Endpoints[0].Conditions).Elem()
	})
	each(func(s *discoveryv1.EndpointSlice) reflect.Value { return reflect.ValueOf(s.Endpoints[0].Hints).Elem() })
}

// change gives a pointer, slice or map another value.
func change(field reflect.Value) {
	switch {
	case field.Kind() == reflect.Slice:
		field.Set(reflect.Append(field, reflect.Zero(field.Type().Elem())))
	case field.Kind() == reflect.Map:
		field.Set(reflect.MakeMap(field.Type()))
		field.SetMapIndex(reflect.ValueOf("key"), reflect.ValueOf("value"))
	case field.IsNil():
		field.Set(reflect.New(field.Type().Elem()))
	default:
		field.SetZero()
	}
}
