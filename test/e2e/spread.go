package e2e

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/namesake-io/namesake/api/cluster/v1alpha1"
	networkingv1alpha1 "github.com/namesake-io/namesake/api/networking/v1alpha1"
	workv1alpha1 "github.com/namesake-io/namesake/api/work/v1alpha1"
)

// spread is a service, and who gives and gets it.
type spread struct {
	service              string
	providers, consumers []string
}

// all is a service that every member gives and gets.
func (s *site) all(service string) spread {
	return spread{service: service, providers: s.names(), consumers: s.names()}
}

// sliceContent is what matters of a slice, in a form that can be compared.
type sliceContent struct {
	Labels, Annotations map[string]string
	AddressType         discoveryv1.AddressType
	Endpoints, Ports    []string
}

// contentOf returns what a dispatched slice says.
func contentOf(slice *discoveryv1.EndpointSlice) sliceContent {
	return sliceContent{
		Labels: pick(slice.Labels, discoveryv1.LabelServiceName, discoveryv1.LabelManagedBy, corev1.IsHeadlessService),
		Annotations: pick(slice.Annotations, networkingv1alpha1.ProvisionClusterAnnotation,
			networkingv1alpha1.SliceGenerationAnnotation, workv1alpha1.TemplateUIDAnnotation),
		AddressType: slice.AddressType, Endpoints: endpointsOf(slice), Ports: portsOf(slice),
	}
}

// wantContent returns what a provider's slice says when it is dispatched.
func wantContent(native *discoveryv1.EndpointSlice, provider string, mcs *networkingv1alpha1.MultiClusterService) sliceContent {
	labels := pick(native.Labels, discoveryv1.LabelServiceName, corev1.IsHeadlessService)
	labels[discoveryv1.LabelManagedBy] = "endpointslice-dispatch-controller.karmada.io"
	return sliceContent{
		Labels: labels,
		Annotations: map[string]string{
			"endpointslice.karmada.io/provision-cluster":        provider,
			"endpointslice.karmada.io/endpointslice-generation": fmt.Sprint(native.Generation),
			"resourcetemplate.karmada.io/uid":                   string(mcs.UID),
		},
		AddressType: native.AddressType, Endpoints: endpointsOf(native), Ports: portsOf(native),
	}
}

// pick returns the entries that have one of the keys.
func pick(in map[string]string, keys ...string) map[string]string {
	out := map[string]string{}
	for _, key := range keys {
		if value, found := in[key]; found {
			out[key] = value
		}
	}
	return out
}

// endpointsOf returns one line for each endpoint, sorted: addresses and state.
func endpointsOf(slice *discoveryv1.EndpointSlice) []string {
	state := func(b *bool) string {
		if b == nil {
			return "unset"
		}
		return strconv.FormatBool(*b)
	}
	var out []string
	for i := range slice.Endpoints {
		e := &slice.Endpoints[i]
		line := fmt.Sprintf("%s ready=%s serving=%s terminating=%s", strings.Join(e.Addresses, ","),
			state(e.Conditions.Ready), state(e.Conditions.Serving), state(e.Conditions.Terminating))
		if e.Hostname != nil {
			line += " hostname=" + *e.Hostname
		}
		out = append(out, line)
	}
	slices.Sort(out)
	return out
}

// portsOf returns one line for each port, sorted.
func portsOf(slice *discoveryv1.EndpointSlice) []string {
	var out []string
	for _, p := range slice.Ports {
		text, err := p.Marshal()
		out = append(out, fmt.Sprintf("%q %v", text, err))
	}
	slices.Sort(out)
	return out
}

// isDispatched says whether a slice came from another cluster, by any of the
// marks that it may have.
func (s *site) isDispatched(slice *discoveryv1.EndpointSlice) bool {
	_, annotated := slice.Annotations[networkingv1alpha1.ProvisionClusterAnnotation]
	return annotated || slice.Labels[discoveryv1.LabelManagedBy] == networkingv1alpha1.DispatchedManagedBy ||
		slices.ContainsFunc(s.names(), func(name string) bool { return strings.HasPrefix(slice.Name, name+"-") })
}

// slicesIn returns a member's slices of the site: its own of a service by name,
// and all that were dispatched there, of whatever service.
func (s *site) slicesIn(ctx context.Context, member, service string) (own, dispatched map[string]*discoveryv1.EndpointSlice, err error) {
	list := &discoveryv1.EndpointSliceList{}
	if err := s.members[member].List(ctx, list, client.InNamespace(s.ns)); err != nil {
		return nil, nil, err
	}
	own, dispatched = map[string]*discoveryv1.EndpointSlice{}, map[string]*discoveryv1.EndpointSlice{}
	for i := range list.Items {
		slice := &list.Items[i]
		switch {
		case s.isDispatched(slice):
			dispatched[slice.Name] = slice
		case slice.Labels[discoveryv1.LabelServiceName] == service:
			own[slice.Name] = slice
		}
	}
	return own, dispatched, nil
}

// checkSpread compares what every member holds with what it should hold. A site
// has to be given all its spreads at once: what none of them asks for must not be.
func (s *site) checkSpread(ctx context.Context, spreads ...spread) error {
	want, got := map[string]map[string]sliceContent{}, map[string]map[string]sliceContent{}
	for _, name := range s.names() {
		want[name], got[name] = map[string]sliceContent{}, map[string]sliceContent{}
	}
	for _, sp := range spreads {
		mcs, err := get(ctx, s, s.hub, sp.service, &networkingv1alpha1.MultiClusterService{})
		if err != nil {
			return err
		}
		for _, provider := range s.names() {
			own, dispatched, err := s.slicesIn(ctx, provider, sp.service)
			if err != nil {
				return err
			}
			for name, slice := range dispatched {
				got[provider][name] = contentOf(slice)
			}
			if !slices.Contains(sp.providers, provider) {
				continue
			}
			for name, slice := range own {
				for _, consumer := range sp.consumers {
					if consumer != provider {
						want[consumer][provider+"-"+name] = wantContent(slice, provider, mcs)
					}
				}
			}
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		return fmt.Errorf("slices in members (- wanted, + found):\n%s", diff)
	}
	return nil
}

// waitSpread waits until every member holds what it should.
func (s *site) waitSpread(spreads ...spread) {
	s.t.Helper()
	s.waitSpreadWithin(patience, spreads...)
}

// waitSpreadWithin does so for a time that is not to be exceeded.
func (s *site) waitSpreadWithin(limit time.Duration, spreads ...spread) {
	s.t.Helper()
	within(s.t, limit, "spread", func(ctx context.Context) error { return s.checkSpread(ctx, spreads...) })
}

// waitOwn waits until a member has that many endpoints of a service in slices of
// its own.
func (s *site) waitOwn(member, service string, count int) {
	s.t.Helper()
	s.eventually(fmt.Sprintf("%d endpoints of %s in %s", count, service, member), func(ctx context.Context) error {
		own, _, err := s.slicesIn(ctx, member, service)
		if err != nil {
			return err
		}
		found := 0
		for _, slice := range own {
			found += len(slice.Endpoints)
		}
		if found != count {
			return fmt.Errorf("there are %d", found)
		}
		return nil
	})
}

// collectedWork is what matters of a Work that remembers a slice.
type collectedWork struct {
	Slice     string
	Suspended bool
	Owners    string
}

// worksOf returns the Works that are about the site, by execution namespace:
// those that remember slices, and the kinds that the others put into members.
// What is delivered to agents is left out: their members show it.
func (s *site) worksOf(ctx context.Context) (collected map[string][]collectedWork, others map[string][]string, err error) {
	list := &workv1alpha1.WorkList{}
	if err := s.hub.List(ctx, list); err != nil {
		return nil, nil, err
	}
	collected, others = map[string][]collectedWork{}, map[string][]string{}
	for i := range list.Items {
		work := &list.Items[i]
		if work.Labels["endpointslice.namesake.io/pull"] == "delivery" {
			continue
		}
		for _, m := range work.Spec.Workload.Manifests {
			obj := &unstructured.Unstructured{}
			if err := obj.UnmarshalJSON(m.Raw); err != nil {
				return nil, nil, err
			}
			if obj.GetNamespace() != s.ns {
				continue
			}
			if obj.GetKind() != "EndpointSlice" {
				others[work.Namespace] = append(others[work.Namespace], obj.GetKind()+" "+obj.GetName())
				continue
			}
			collected[work.Namespace] = append(collected[work.Namespace], collectedWork{
				Slice:     obj.GetName(),
				Suspended: work.Spec.SuspendDispatching != nil && *work.Spec.SuspendDispatching,
				Owners:    work.Labels["endpointslice.karmada.io/managed-by"],
			})
		}
	}
	for _, works := range collected {
		slices.SortFunc(works, func(a, b collectedWork) int { return strings.Compare(a.Slice, b.Slice) })
	}
	for _, works := range others {
		slices.Sort(works)
	}
	return collected, others, nil
}

// checkCollected compares the hub's memory with the slices of the providers.
func (s *site) checkCollected(ctx context.Context, spreads ...spread) error {
	want := map[string][]collectedWork{}
	for _, sp := range spreads {
		for _, provider := range sp.providers {
			own, _, err := s.slicesIn(ctx, provider, sp.service)
			if err != nil {
				return err
			}
			ns := clusterv1alpha1.ExecutionNamespace(provider)
			for _, name := range slices.Sorted(maps.Keys(own)) {
				want[ns] = append(want[ns], collectedWork{Slice: name, Suspended: true, Owners: "MultiClusterService"})
			}
		}
	}
	for _, works := range want {
		slices.SortFunc(works, func(a, b collectedWork) int { return strings.Compare(a.Slice, b.Slice) })
	}
	got, _, err := s.worksOf(ctx)
	if err != nil {
		return err
	}
	if diff := cmp.Diff(want, got); diff != "" {
		return fmt.Errorf("collected Works (- wanted, + found):\n%s", diff)
	}
	return nil
}

// waitCollected waits until the hub remembers exactly what the providers have.
func (s *site) waitCollected(spreads ...spread) {
	s.t.Helper()
	s.eventually("collected slices", func(ctx context.Context) error { return s.checkCollected(ctx, spreads...) })
}

// checkNothingLeft finds what the hub gave to a member and should not be there:
// dispatched slices and the Service.
func (s *site) checkNothingLeft(ctx context.Context, member string, services ...string) error {
	_, dispatched, err := s.slicesIn(ctx, member, "")
	if err != nil {
		return err
	}
	if len(dispatched) > 0 {
		return fmt.Errorf("%s still has slices %v", member, slices.Sorted(maps.Keys(dispatched)))
	}
	for _, service := range services {
		_, err := get(ctx, s, s.members[member], service, &corev1.Service{})
		switch {
		case err == nil:
			return fmt.Errorf("%s still has Service %s", member, service)
		case !apierrors.IsNotFound(err):
			return err
		}
	}
	return nil
}

// checkService finds what is wrong with the Service that the hub put into members.
func (s *site) checkService(ctx context.Context, name string, members ...string) error {
	template, err := get(ctx, s, s.hub, name, &corev1.Service{})
	if err != nil {
		return err
	}
	var errs []error
	for _, member := range members {
		svc, err := get(ctx, s, s.members[member], name, &corev1.Service{})
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", member, err))
			continue
		}
		if diff := cmp.Diff(servicePorts(template), servicePorts(svc)); diff != "" {
			errs = append(errs, fmt.Errorf("%s: ports (- template, + member):\n%s", member, diff))
		}
		if diff := cmp.Diff(template.Spec.Selector, svc.Spec.Selector); diff != "" {
			errs = append(errs, fmt.Errorf("%s: selector (- template, + member):\n%s", member, diff))
		}
		switch isHeadless := template.Spec.ClusterIP == corev1.ClusterIPNone; {
		case isHeadless != (svc.Spec.ClusterIP == corev1.ClusterIPNone), svc.Spec.ClusterIP == "":
			errs = append(errs, fmt.Errorf("%s: clusterIP %q", member, svc.Spec.ClusterIP))
		case !isHeadless && svc.Spec.ClusterIP == template.Spec.ClusterIP:
			errs = append(errs, fmt.Errorf("%s: clusterIP %s is the template's", member, svc.Spec.ClusterIP))
		}
		if got := svc.Annotations["resourcetemplate.karmada.io/uid"]; got != string(template.UID) {
			errs = append(errs, fmt.Errorf("%s: template uid %q, want %q", member, got, template.UID))
		}
		if got, want := svc.Annotations["work.karmada.io/namespace"], clusterv1alpha1.ExecutionNamespace(member); got != want {
			errs = append(errs, fmt.Errorf("%s: Work's namespace %q, want %q", member, got, want))
		}
		if svc.Labels["karmada.io/managed"] != "true" {
			errs = append(errs, fmt.Errorf("%s: labels %v", member, svc.Labels))
		}
	}
	return errors.Join(errs...)
}

// servicePorts returns one line for each port of a Service, without node ports.
func servicePorts(svc *corev1.Service) []string {
	var out []string
	for _, p := range svc.Spec.Ports {
		out = append(out, fmt.Sprintf("%s %s %d to %s", p.Name, p.Protocol, p.Port, p.TargetPort.String()))
	}
	slices.Sort(out)
	return out
}

// waitService waits until the Service stands in members as it should.
func (s *site) waitService(name string, members ...string) {
	s.t.Helper()
	s.eventually("Service "+name, func(ctx context.Context) error { return s.checkService(ctx, name, members...) })
}
