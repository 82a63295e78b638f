package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	networkingv1alpha1 "github.com/namesake-io/namesake/api/networking/v1alpha1"
)

var (
	getOptions    = metav1.GetOptions{}
	createOptions = metav1.CreateOptions{}
	updateOptions = metav1.UpdateOptions{}
	deleteOptions = metav1.DeleteOptions{}
	listOptions   = metav1.ListOptions{}
)

// site is a namespace in which one run makes its services.
type site struct {
	*plane
	*observer
	opts *options
	ns   string

	mu sync.Mutex
	// own holds the providers' slices as they last were, by member and service.
	own map[string]map[string]*discoveryv1.EndpointSlice
	// addresses counts endpoints, so that each has an address of its own.
	addresses int
}

// newSite makes the namespace, in members too when nobody else does.
func newSite(ctx context.Context, p *plane, o *options) (*site, error) {
	const grace = 10 * time.Second
	made, err := p.hub.kube.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "bench-"},
	}, createOptions)
	if err != nil {
		return nil, fmt.Errorf("making a namespace: %w", err)
	}
	s := &site{plane: p, opts: o, ns: made.Name, own: map[string]map[string]*discoveryv1.EndpointSlice{}}
	for _, m := range p.members {
		s.own[m.name] = map[string]*discoveryv1.EndpointSlice{}
		if err := awaitNamespace(ctx, m, s.ns, grace); err != nil {
			return nil, err
		}
	}
	if s.observer, err = observe(ctx, p.members, s.ns); err != nil {
		return nil, err
	}
	return s, nil
}

// awaitNamespace waits for a namespace, and makes it if it does not come.
func awaitNamespace(ctx context.Context, m *cluster, name string, grace time.Duration) error {
	for end := time.Now().Add(grace); ; {
		_, err := m.kube.CoreV1().Namespaces().Get(ctx, name, getOptions)
		if !apierrors.IsNotFound(err) {
			return err
		}
		if time.Now().After(end) {
			break
		}
		if err := pause(ctx, 50*time.Millisecond); err != nil {
			return err
		}
	}
	_, err := m.kube.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, createOptions)
	return err
}

// prepare makes Services on the hub, and their slices in every member.
func (s *site) prepare(ctx context.Context, services []string) error {
	err := each(ctx, 8, services, func(ctx context.Context, service string) error {
		_, err := s.hub.kube.CoreV1().Services(s.ns).Create(ctx, &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Name: service},
			// Without a selector: the slices are made by hand.
			Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Name: "http", Port: 80}}},
		}, createOptions)
		return err
	})
	if err != nil {
		return fmt.Errorf("making Services: %w", err)
	}
	err = each(ctx, len(s.members), s.members, func(ctx context.Context, m *cluster) error {
		return each(ctx, 4, services, func(ctx context.Context, service string) error {
			made, err := m.kube.DiscoveryV1().EndpointSlices(s.ns).Create(ctx, s.newSlice(service, service+"-x"), createOptions)
			if err != nil {
				return err
			}
			s.mu.Lock()
			defer s.mu.Unlock()
			s.own[m.name][service] = made
			return nil
		})
	})
	if err != nil {
		return fmt.Errorf("making slices: %w", err)
	}
	return nil
}

// newSlice returns a slice with endpoints that nobody else has.
func (s *site) newSlice(service, name string) *discoveryv1.EndpointSlice {
	out := &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Name: name, Labels: map[string]string{discoveryv1.LabelServiceName: service}},
		AddressType: discoveryv1.AddressTypeIPv4,
		Ports: []discoveryv1.EndpointPort{{
			Name: ptr.To("http"), Port: ptr.To[int32](8080), Protocol: ptr.To(corev1.ProtocolTCP),
		}},
	}
	for range s.opts.endpoints {
		out.Endpoints = append(out.Endpoints, discoveryv1.Endpoint{
			Addresses: []string{s.newAddress()}, Conditions: discoveryv1.EndpointConditions{Ready: ptr.To(true)},
		})
	}
	return out
}

// newAddress returns an address that nobody has had.
func (s *site) newAddress() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.addresses++
	return fmt.Sprintf("10.%d.%d.%d", s.addresses>>16, s.addresses>>8&255, s.addresses&255)
}

// wish asks for services to be everywhere.
func (s *site) wish(ctx context.Context, services []string) error {
	return each(ctx, 10, services, func(ctx context.Context, service string) error {
		mcs, err := unstructuredOf(&networkingv1alpha1.MultiClusterService{
			TypeMeta:   metav1.TypeMeta{APIVersion: networkingv1alpha1.GroupVersion.String(), Kind: "MultiClusterService"},
			ObjectMeta: metav1.ObjectMeta{Name: service},
			Spec: networkingv1alpha1.MultiClusterServiceSpec{
				Types: []networkingv1alpha1.ExposureType{networkingv1alpha1.ExposureTypeCrossCluster},
			},
		})
		if err != nil {
			return err
		}
		_, err = s.hub.custom.Resource(wishes).Namespace(s.ns).Create(ctx, mcs, createOptions)
		return err
	})
}

// change gives one endpoint of a service in a member another address.
func (s *site) change(ctx context.Context, m *cluster, service, address string) error {
	s.mu.Lock()
	slice := s.own[m.name][service].DeepCopy()
	s.mu.Unlock()
	slice.Endpoints[0].Addresses = []string{address}
	made, err := m.kube.DiscoveryV1().EndpointSlices(s.ns).Update(ctx, slice, updateOptions)
	if err != nil {
		return fmt.Errorf("changing a slice of %s: %w", m.name, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.own[m.name][service] = made
	return nil
}

// providerOf returns which member a dispatched slice comes from. Empty: it is the
// member's own.
func providerOf(slice *discoveryv1.EndpointSlice) string {
	return slice.Annotations[networkingv1alpha1.ProvisionClusterAnnotation]
}

// serviceOf returns the service of a slice.
func serviceOf(slice *discoveryv1.EndpointSlice) string {
	return slice.Labels[discoveryv1.LabelServiceName]
}

// whole says whether a dispatched slice has every address of its provider's.
func (s *site) whole(slice *discoveryv1.EndpointSlice) bool {
	s.mu.Lock()
	own := s.own[providerOf(slice)][serviceOf(slice)]
	s.mu.Unlock()
	return own != nil && slices.EqualFunc(own.Endpoints, slice.Endpoints, func(a, b discoveryv1.Endpoint) bool {
		return slices.Equal(a.Addresses, b.Addresses)
	})
}

// has says whether a slice has an endpoint of this address.
func has(slice *discoveryv1.EndpointSlice, address string) bool {
	return slices.ContainsFunc(slice.Endpoints, func(e discoveryv1.Endpoint) bool { return slices.Contains(e.Addresses, address) })
}

// each calls a function for every item, a few at a time.
func each[T any](ctx context.Context, width int, items []T, call func(context.Context, T) error) error {
	var (
		wg   sync.WaitGroup
		mu   sync.Mutex
		next int
		errs []error
	)
	for range min(width, len(items)) {
		wg.Go(func() {
			for {
				mu.Lock()
				if next == len(items) || len(errs) > 0 {
					mu.Unlock()
					return
				}
				item := items[next]
				next++
				mu.Unlock()
				if err := call(ctx, item); err != nil {
					mu.Lock()
					errs = append(errs, err)
					mu.Unlock()
				}
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}
