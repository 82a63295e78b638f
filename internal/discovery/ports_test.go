package discovery_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/namesake-io/namesake/internal/discovery"
)

func TestPorts(t *testing.T) {
	dns := template(servicePorts(
		corev1.ServicePort{Name: "dns-udp", Port: 53, Protocol: corev1.ProtocolUDP},
		corev1.ServicePort{Name: "dns-tcp", Port: 53, Protocol: corev1.ProtocolTCP},
		corev1.ServicePort{Name: "metrics", Port: 9153},
	))
	dnsPorts := ports(udp(port("dns-udp", 5353)), port("dns-tcp", 5353), port("metrics", 9153))
	unnamed := template(servicePorts(corev1.ServicePort{Port: 80}))

	tests := map[string]struct {
		exposed     []exposurePort
		template    *corev1.Service
		in          sliceOption
		want        []discoveryv1.EndpointPort
		wantNone    bool // nothing of the slice is dispatched
		wantMissing []string
		wantHold    bool
	}{
		"none_listed_exposes_all": {
			template: dns, in: dnsPorts,
			want: []discoveryv1.EndpointPort{udp(port("dns-udp", 5353)), port("dns-tcp", 5353), port("metrics", 9153)},
		},
		"C11_one_of_three": {
			exposed: []exposurePort{{Name: "metrics", Port: 9153}}, template: dns, in: dnsPorts,
			want: []discoveryv1.EndpointPort{port("metrics", 9153)},
		},
		"C11_the_number_is_the_services_not_the_pods": {
			exposed: []exposurePort{{Name: "http", Port: 80}}, template: template(), in: ports(port("http", 8080), port("admin", 80)),
			want: []discoveryv1.EndpointPort{port("http", 8080)},
		},
		"C23_one_number_for_two_protocols": {
			exposed: []exposurePort{{Port: 53}}, template: dns, in: dnsPorts,
			want: []discoveryv1.EndpointPort{udp(port("dns-udp", 5353)), port("dns-tcp", 5353)},
		},
		"C23_the_name_tells_them_apart": {
			exposed: []exposurePort{{Name: "dns-tcp", Port: 53}}, template: dns, in: dnsPorts,
			want: []discoveryv1.EndpointPort{port("dns-tcp", 5353)},
		},
		"C14_two_ports_with_one_target": {
			in:   ports(port("http", 8080), port("web", 8080)),
			want: []discoveryv1.EndpointPort{port("http", 8080), port("web", 8080)},
		},
		"C14_both_exposed_by_name": {
			exposed:  []exposurePort{{Name: "http", Port: 80}, {Name: "web", Port: 81}},
			template: template(servicePorts(corev1.ServicePort{Name: "http", Port: 80}, corev1.ServicePort{Name: "web", Port: 81})),
			in:       ports(port("http", 8080), port("web", 8080)),
			want:     []discoveryv1.EndpointPort{port("http", 8080), port("web", 8080)},
		},
		"C10_the_app_protocol_stays": {
			in: ports(discoveryv1.EndpointPort{
				Name: ptr("grpc"), Port: ptr(int32(9000)), Protocol: ptr(corev1.ProtocolTCP), AppProtocol: ptr("kubernetes.io/h2c"),
			}),
			want: []discoveryv1.EndpointPort{{
				Name: ptr("grpc"), Port: ptr(int32(9000)), Protocol: ptr(corev1.ProtocolTCP), AppProtocol: ptr("kubernetes.io/h2c"),
			}},
		},
		"C2_no_ports":                     {in: ports()},
		"C2_empty_ports":                  {in: func(s *discoveryv1.EndpointSlice) { s.Ports = []discoveryv1.EndpointPort{} }},
		"C2_no_ports_whatever_is_exposed": {exposed: []exposurePort{{Name: "http", Port: 80}}, template: template(headless), in: ports()},
		"C2_a_port_without_a_number": {
			in:   ports(discoveryv1.EndpointPort{Name: ptr("any")}),
			want: []discoveryv1.EndpointPort{{Name: ptr("any"), Protocol: ptr(corev1.ProtocolTCP)}},
		},
		"the_defaults_of_the_server_are_written_out": {
			in:   ports(discoveryv1.EndpointPort{Port: ptr(int32(8080))}),
			want: []discoveryv1.EndpointPort{port("", 8080)},
		},
		"an_unnamed_port": {
			exposed: []exposurePort{{Port: 80}}, template: unnamed, in: ports(discoveryv1.EndpointPort{Port: ptr(int32(8080))}),
			want: []discoveryv1.EndpointPort{port("", 8080)},
		},
		"a_listed_port_that_the_service_lacks_is_told": {
			exposed: []exposurePort{{Name: "http", Port: 81}, {Name: "metrics", Port: 9153}, {Port: 7}}, template: dns, in: dnsPorts,
			want:        []discoveryv1.EndpointPort{port("metrics", 9153)},
			wantMissing: []string{"http:81", "7"},
		},
		"only_missing_ones_expose_nothing": {
			exposed: []exposurePort{{Name: "http", Port: 81}}, template: template(), in: ports(port("http", 8080)),
			wantNone: true, wantMissing: []string{"http:81"},
		},
		"C22_without_the_service_a_name_will_do": {
			exposed: []exposurePort{{Name: "http", Port: 80}}, in: ports(port("http", 8080), port("admin", 80)),
			want: []discoveryv1.EndpointPort{port("http", 8080)},
		},
		"C22_without_the_service_a_number_says_nothing": {
			exposed: []exposurePort{{Port: 80}}, in: ports(port("http", 8080)),
			wantNone: true, wantHold: true,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := snapshot(crossCluster(exposing(tt.exposed...)), member("a", slice("s", tt.in)), member("b"))
			s.Template = tt.template
			p := discovery.NewPlan(s)

			if diff := cmp.Diff(tt.wantMissing, p.MissingPorts); diff != "" {
				t.Errorf("missing ports (-want +got):\n%s", diff)
			}
			if got := p.Hold != nil; got != tt.wantHold {
				t.Errorf("held back: %t (%v), want %t", got, p.Hold, tt.wantHold)
			}
			wanted := p.Wanted("b")
			if got := len(wanted) == 0; got != tt.wantNone {
				t.Fatalf("nothing dispatched: %t, want %t", got, tt.wantNone)
			}
			if tt.wantNone {
				return
			}
			if diff := cmp.Diff(tt.want, wanted[0].Slice.Ports); diff != "" {
				t.Errorf("ports (-want +got):\n%s", diff)
			}
		})
	}
}

func TestExposurePortMatches(t *testing.T) {
	http := corev1.ServicePort{Name: "http", Port: 80, NodePort: 30080}
	tests := map[string]struct {
		entry exposurePort
		want  bool
	}{
		"name_and_number": {entry: exposurePort{Name: "http", Port: 80}, want: true},
		"number_only":     {entry: exposurePort{Port: 80}, want: true},
		"other_name":      {entry: exposurePort{Name: "web", Port: 80}},
		"other_number":    {entry: exposurePort{Name: "http", Port: 8080}},
		"the_node_port":   {entry: exposurePort{Name: "http", Port: 30080}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := discovery.ExposurePortMatches(tt.entry, http); got != tt.want {
				t.Errorf("got %t, want %t", got, tt.want)
			}
		})
	}
}
