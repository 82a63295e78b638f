package discovery

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	networkingv1alpha1 "github.com/namesake-io/namesake/api/networking/v1alpha1"
)

// portName is the name that a Service port and its slice ports share.
type portName string

// portFilter says which ports of a service are exposed.
type portFilter struct {
	// all is true when spec.ports is empty.
	all bool
	// names of the exposed ports, when not all.
	names map[portName]bool
}

// newPortFilter reads spec.ports against the template. missing describes the
// entries that the template does not have, in the order of the spec.
//
// Slices know ports by name only, their numbers are the pods'. So an entry is
// matched to a port of the template, and its name decides from there. It fails
// when there is no template to name the port of an entry that has a number only.
func newPortFilter(exposed []networkingv1alpha1.ExposurePort, template *corev1.Service) (_ portFilter, missing []string, err error) {
	if len(exposed) == 0 {
		return portFilter{all: true}, nil, nil
	}
	filter := portFilter{names: make(map[portName]bool, len(exposed))}
	for i, want := range exposed {
		if template == nil {
			if want.Name == "" {
				return portFilter{}, nil, fmt.Errorf("reading spec.ports[%d]: there is no Service to say the name of port %d", i, want.Port)
			}
			filter.names[portName(want.Name)] = true
			continue
		}
		found := false
		for i := range template.Spec.Ports {
			if ExposurePortMatches(want, template.Spec.Ports[i]) {
				filter.names[portName(template.Spec.Ports[i].Name)] = true
				found = true
			}
		}
		if !found {
			missing = append(missing, portText(want.Name, want.Port))
		}
	}
	return filter, missing, nil
}

// portText is a port for people: its name, where it has one, and its number.
func portText(name string, number int32) string {
	if name == "" {
		return fmt.Sprint(number)
	}
	return fmt.Sprintf("%s:%d", name, number)
}

// ExposurePortMatches says whether an entry of spec.ports means a port of the
// Service: the number must be equal, and the name where the entry has one.
func ExposurePortMatches(want networkingv1alpha1.ExposurePort, have corev1.ServicePort) bool {
	return want.Port == have.Port && (want.Name == "" || want.Name == have.Name)
}

// apply returns the exposed ones of a slice's ports, with the defaults that an
// API server fills in: else what is written would never equal what then stands.
// ok is false when the slice has ports but none of them is exposed: then nothing
// of it may be dispatched.
func (f portFilter) apply(ports []discoveryv1.EndpointPort) (exposed []discoveryv1.EndpointPort, ok bool) {
	for _, p := range ports {
		if p.Name == nil {
			p.Name = new(string)
		}
		if p.Protocol == nil {
			tcp := corev1.ProtocolTCP
			p.Protocol = &tcp
		}
		if f.all || f.names[portName(*p.Name)] {
			exposed = append(exposed, p)
		}
	}
	return exposed, len(ports) == 0 || len(exposed) > 0
}
