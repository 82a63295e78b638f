package discovery_test

import (
	"errors"
	"fmt"
	"net/netip"

	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/validation"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// acceptable says what an API server has against a slice. It repeats the rules of
// k8s.io/kubernetes/pkg/apis/discovery/validation, which is no library, but asks
// for explicit port names and protocols, which the server would fill in.
func acceptable(s *discoveryv1.EndpointSlice) error {
	errs := validation.ValidateObjectMeta(&s.ObjectMeta, true, validation.NameIsDNSSubdomain, field.NewPath("metadata"))
	errs = append(errs, metavalidation.ValidateLabels(s.Labels, field.NewPath("metadata", "labels"))...)
	if len(s.Endpoints) > 1000 {
		errs = append(errs, field.TooMany(field.NewPath("endpoints"), len(s.Endpoints), 1000))
	}
	out := []error{errs.ToAggregate()}

	names := map[string]bool{}
	for _, p := range s.Ports {
		switch {
		case p.Name == nil || p.Protocol == nil:
			out = append(out, errors.New("a port without name or protocol would not equal what then stands"))
		case names[*p.Name]:
			out = append(out, fmt.Errorf("port name %q twice", *p.Name))
		default:
			names[*p.Name] = true
		}
	}
	for i := range s.Endpoints {
		out = append(out, acceptableEndpoint(s.AddressType, &s.Endpoints[i]))
	}
	return errors.Join(out...)
}

func acceptableEndpoint(addressType discoveryv1.AddressType, e *discoveryv1.Endpoint) error {
	var out []error
	if len(e.Addresses) < 1 || len(e.Addresses) > 100 {
		out = append(out, fmt.Errorf("%d addresses", len(e.Addresses)))
	}
	for _, a := range e.Addresses {
		ip, err := netip.ParseAddr(a)
		ok := err == nil && ip.Is4()
		switch addressType {
		case discoveryv1.AddressTypeIPv6:
			ok = err == nil && ip.Is6() && ip.String() == a
		case discoveryv1.AddressTypeFQDN:
			ok = err != nil
		case discoveryv1.AddressTypeIPv4:
		}
		if !ok {
			out = append(out, fmt.Errorf("address %q in a slice of type %s", a, addressType))
		}
	}
	if e.Hostname != nil {
		out = append(out, messages("hostname", utilvalidation.IsDNS1123Label(*e.Hostname)))
	}
	if e.Hints != nil {
		if len(e.Hints.ForZones) > 8 || len(e.Hints.ForNodes) > 8 {
			out = append(out, errors.New("too many hints"))
		}
		for _, z := range e.Hints.ForZones {
			out = append(out, messages("zone hint", utilvalidation.IsValidLabelValue(z.Name)))
		}
		for _, n := range e.Hints.ForNodes {
			out = append(out, messages("node hint", utilvalidation.IsDNS1123Subdomain(n.Name)))
		}
	}
	return errors.Join(out...)
}

func messages(what string, found []string) error {
	if len(found) == 0 {
		return nil
	}
	return fmt.Errorf("%s: %v", what, found)
}
