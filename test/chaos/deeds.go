package chaos

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	networkingv1alpha1 "github.com/namesake-io/namesake/api/networking/v1alpha1"
	"github.com/namesake-io/namesake/test/chaos/model"
)

const (
	// serviceCount is how many services there are in a round. The first steadyCount
	// of them are wished for from the beginning to the end: in a service whose wish
	// changes all the time, hardly any withdrawal is without cause.
	serviceCount = 6
	steadyCount  = 3
	// sliceCount is how many slices a member has of them at most.
	sliceCount = 6
	// endpointCount is how many endpoints a slice has at most.
	endpointCount = 3
)

// bothPorts of every Service, in the model's form.
const bothPorts = "admin,http"

// ownSlice is a slice that the test made in a member.
type ownSlice struct {
	name, service string
	endpoints     []ownEndpoint
}

type ownEndpoint struct {
	address model.Address
	ready   bool
}

// wishOf is the MultiClusterService that the test has made, nil when there is none.
type wishOf struct {
	providers, consumers []string
	ports                []string
}

// deed is something that a user does. It returns false when there is nothing to do
// it to.
type deed struct {
	weight int
	do     func(*round) bool
}

// deeds are what users do, and others to what is theirs.
var deeds = []deed{
	{8, (*round).createWish},
	{6, (*round).changeLists},
	{3, (*round).changePorts},
	{3, (*round).deleteWish},
	{10, (*round).createSlice},
	{14, (*round).changeSlice},
	{5, (*round).deleteSlice},
	{3, (*round).replaceSlice},
	{3, (*round).relabelSlice},
	{6, (*round).meddleWithSlice},
	{3, (*round).meddleWithService},
}

// pick returns one of several, "" of none.
func pick[T any](r *round, of []T) (_ T, ok bool) {
	if len(of) == 0 {
		var none T
		return none, false
	}
	return of[r.rng.IntN(len(of))], true
}

// service returns the name of any service.
func (r *round) service() string { return fmt.Sprintf("svc%d", r.rng.IntN(serviceCount)) }

// someMembers returns a few members, or none, which means all.
func (r *round) someMembers() []string {
	if r.rng.IntN(3) == 0 {
		return nil
	}
	names := r.names()
	r.rng.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	names = names[:1+r.rng.IntN(len(names))]
	slices.Sort(names)
	return names
}

// wished returns the services that are wished for.
func (r *round) wished() []string { return r.wishing(0, true) }

// wishing returns the services from a number on that are wished for, or that are
// not.
func (r *round) wishing(from int, is bool) []string {
	var out []string
	for i := from; i < serviceCount; i++ {
		name := fmt.Sprintf("svc%d", i)
		if (r.wishes[name] != nil) == is {
			out = append(out, name)
		}
	}
	return out
}

// setWish does something that makes a wish another one, nil that there is none.
func (r *round) setWish(service string, w *wishOf, what func(context.Context) error) {
	r.wishes[service] = w
	wish := model.Wish{}
	if w != nil {
		wish = model.Wish{Exists: true, Providers: membersOf(w.providers), Consumers: membersOf(w.consumers), Ports: bothPorts}
		if len(w.ports) > 0 {
			wish.Ports = strings.Join(w.ports, ",")
		}
	}
	r.do(func(world *model.World, d *model.Deed) { world.SetWish(model.Service(service), wish, d) }, what)
}

func membersOf(names []string) []model.Member {
	var out []model.Member
	for _, name := range names {
		out = append(out, model.Member(name))
	}
	return out
}

// createWish makes a MultiClusterService.
func (r *round) createWish() bool {
	name, ok := pick(r, r.wishing(steadyCount, false))
	if !ok || r.broken(hubName) {
		return false
	}
	r.makeWish(name)
	return true
}

// makeWish makes a wish with any lists.
func (r *round) makeWish(name string) {
	w := &wishOf{providers: r.someMembers(), consumers: r.someMembers()}
	mcs := &networkingv1alpha1.MultiClusterService{ObjectMeta: r.meta(name), Spec: r.specOf(w)}
	r.journal.note("wish %s: providers %v, consumers %v", name, w.providers, w.consumers)
	taken := false
	r.setWish(name, w, func(ctx context.Context) error {
		err := r.f.hub.Create(ctx, mcs.DeepCopy())
		taken = apierrors.IsAlreadyExists(err)
		return existing(err)
	})
	if taken {
		r.journal.note("%s is being deleted, or was made by a try that got no answer", name)
		r.removeWish(name)
	}
}

func (r *round) specOf(w *wishOf) networkingv1alpha1.MultiClusterServiceSpec {
	spec := networkingv1alpha1.MultiClusterServiceSpec{Types: []networkingv1alpha1.ExposureType{networkingv1alpha1.ExposureTypeCrossCluster}}
	for _, name := range w.providers {
		spec.ProviderClusters = append(spec.ProviderClusters, networkingv1alpha1.ClusterSelector{Name: networkingv1alpha1.ClusterName(name)})
	}
	for _, name := range w.consumers {
		spec.ConsumerClusters = append(spec.ConsumerClusters, networkingv1alpha1.ClusterSelector{Name: networkingv1alpha1.ClusterName(name)})
	}
	for _, name := range w.ports {
		spec.Ports = append(spec.Ports, networkingv1alpha1.ExposurePort{Name: name, Port: portNumbers[name]})
	}
	return spec
}

// portNumbers of every Service.
var portNumbers = map[string]int32{"http": 80, "admin": 90}

// changeLists takes clusters off the lists and puts others on.
func (r *round) changeLists() bool {
	return r.changeWish(func(w *wishOf) {
		if r.rng.IntN(2) == 0 {
			w.providers = r.someMembers()
		} else {
			w.consumers = r.someMembers()
		}
	})
}

// changePorts exposes other ports.
func (r *round) changePorts() bool {
	choices := [][]string{nil, {"http"}, {"admin"}, {"admin", "http"}}
	return r.changeWish(func(w *wishOf) { w.ports = choices[r.rng.IntN(len(choices))] })
}

func (r *round) changeWish(change func(*wishOf)) bool {
	name, ok := pick(r, r.wishing(steadyCount, true))
	if !ok || r.broken(hubName) {
		return false
	}
	w := *r.wishes[name]
	change(&w)
	spec := r.specOf(&w)
	r.journal.note("change %s: providers %v, consumers %v, ports %v", name, w.providers, w.consumers, w.ports)
	r.setWish(name, &w, func(ctx context.Context) error {
		mcs := &networkingv1alpha1.MultiClusterService{}
		if err := r.f.hub.Get(ctx, r.key(name), mcs); err != nil {
			return err
		}
		before := mcs.DeepCopy()
		mcs.Spec.ProviderClusters, mcs.Spec.ConsumerClusters, mcs.Spec.Ports = spec.ProviderClusters, spec.ConsumerClusters, spec.Ports
		return r.f.hub.Patch(ctx, mcs, client.MergeFrom(before))
	})
	return true
}

// deleteWish deletes a MultiClusterService.
func (r *round) deleteWish() bool {
	name, ok := pick(r, r.wishing(steadyCount, true))
	if !ok || r.broken(hubName) {
		return false
	}
	r.removeWish(name)
	return true
}

func (r *round) removeWish(name string) {
	r.journal.note("delete wish %s", name)
	r.setWish(name, nil, func(ctx context.Context) error {
		return client.IgnoreNotFound(r.f.hub.Delete(ctx, &networkingv1alpha1.MultiClusterService{ObjectMeta: r.meta(name)}))
	})
}

// provider returns a member whose API server works, and one of its slices.
func (r *round) provider() (member string, slice *ownSlice, ok bool) {
	member, ok = pick(r, r.answering())
	if !ok {
		return "", nil, false
	}
	name, ok := pick(r, slices.Sorted(maps.Keys(r.own[member])))
	return member, r.own[member][name], ok
}

// newEndpoints returns endpoints that nobody has.
func (r *round) newEndpoints(count int) []ownEndpoint {
	var out []ownEndpoint
	for range count {
		out = append(out, ownEndpoint{address: r.newAddress(), ready: r.rng.IntN(4) > 0})
	}
	return out
}

func (r *round) newAddress() model.Address {
	r.addresses++
	return model.Address(fmt.Sprintf("198.18.%d.%d", r.addresses/250, r.addresses%250+1))
}

// createSlice makes a slice in a member.
func (r *round) createSlice() bool {
	member, ok := pick(r, r.answering())
	if !ok || len(r.own[member]) >= sliceCount {
		return false
	}
	r.slices++
	s := &ownSlice{
		name: fmt.Sprintf("%s%d", ownPrefix, r.slices), service: r.service(), endpoints: r.newEndpoints(1 + r.rng.IntN(endpointCount)),
	}
	r.journal.note("%s: make slice %s of %s with %v", member, s.name, s.service, s.endpoints)
	r.own[member][s.name] = s
	r.do(r.tellEndpoints(member, s, nil), func(ctx context.Context) error {
		return existing(r.f.member(member).Create(ctx, r.object(s)))
	})
	return true
}

// object returns a slice as it is written.
func (r *round) object(s *ownSlice) *discoveryv1.EndpointSlice {
	out := &discoveryv1.EndpointSlice{
		ObjectMeta: r.meta(s.name), AddressType: discoveryv1.AddressTypeIPv4, Endpoints: []discoveryv1.Endpoint{},
		Ports: []discoveryv1.EndpointPort{
			{Name: ptr.To("http"), Port: ptr.To[int32](8080), Protocol: ptr.To(corev1.ProtocolTCP)},
			{Name: ptr.To("admin"), Port: ptr.To[int32](9090), Protocol: ptr.To(corev1.ProtocolTCP)},
		},
	}
	out.Labels = map[string]string{discoveryv1.LabelServiceName: s.service, discoveryv1.LabelManagedBy: "chaos"}
	for _, e := range s.endpoints {
		out.Endpoints = append(out.Endpoints, discoveryv1.Endpoint{
			Addresses: []string{string(e.address)}, Conditions: discoveryv1.EndpointConditions{Ready: ptr.To(e.ready)},
		})
	}
	return out
}

// tellEndpoints tells the model what a slice has, and that it has no more of what
// it had.
func (r *round) tellEndpoints(member string, s *ownSlice, before []ownEndpoint) func(*model.World, *model.Deed) {
	key := member + "/" + s.name
	for _, e := range s.endpoints {
		if !slices.Contains(r.ever[key], e.address) {
			r.ever[key] = append(r.ever[key], e.address)
		}
	}
	of, now := model.Service(s.service), slices.Clone(s.endpoints)
	return func(world *model.World, d *model.Deed) {
		for _, e := range before {
			if !slices.ContainsFunc(now, func(is ownEndpoint) bool { return is.address == e.address }) {
				world.SetEndpoint(e.address, model.Member(member), of, model.Absent, d)
			}
		}
		for _, e := range now {
			state := model.NotReady
			if e.ready {
				state = model.Ready
			}
			world.SetEndpoint(e.address, model.Member(member), of, state, d)
		}
	}
}

// changeSlice adds and removes endpoints, or turns their readiness.
func (r *round) changeSlice() bool {
	member, s, ok := r.provider()
	if !ok {
		return false
	}
	before := slices.Clone(s.endpoints)
	switch kind := r.rng.IntN(4); {
	case kind == 0 && len(s.endpoints) < endpointCount || len(s.endpoints) == 0:
		s.endpoints = append(s.endpoints, r.newEndpoints(1)...)
	case kind == 1:
		at := r.rng.IntN(len(s.endpoints))
		s.endpoints = slices.Delete(s.endpoints, at, at+1)
	default:
		at := r.rng.IntN(len(s.endpoints))
		s.endpoints[at].ready = !s.endpoints[at].ready
	}
	r.journal.note("%s: change slice %s of %s to %v", member, s.name, s.service, s.endpoints)
	r.do(r.tellEndpoints(member, s, before), r.patchSlice(member, s.name, map[string]any{"endpoints": r.object(s).Endpoints}))
	return true
}

// patchSlice merges fields into a slice of a member.
func (r *round) patchSlice(member, name string, fields map[string]any) func(context.Context) error {
	patch, err := json.Marshal(fields)
	if err != nil {
		r.t.Fatal(err)
	}
	return func(ctx context.Context) error {
		return r.f.member(member).Patch(ctx, &discoveryv1.EndpointSlice{ObjectMeta: r.meta(name)}, client.RawPatch(types.MergePatchType, patch))
	}
}

// deleteSlice deletes a slice of a member.
func (r *round) deleteSlice() bool {
	member, s, ok := r.provider()
	if !ok {
		return false
	}
	r.journal.note("%s: delete slice %s of %s", member, s.name, s.service)
	delete(r.own[member], s.name)
	before := s.endpoints
	s.endpoints = nil
	r.do(r.tellEndpoints(member, s, before), r.dropSlice(member, s))
	return true
}

func (r *round) dropSlice(member string, s *ownSlice) func(context.Context) error {
	return func(ctx context.Context) error {
		return client.IgnoreNotFound(r.f.member(member).Delete(ctx, &discoveryv1.EndpointSlice{ObjectMeta: r.meta(s.name)}))
	}
}

// replaceSlice makes a slice anew under its name: its generation begins again.
func (r *round) replaceSlice() bool {
	member, s, ok := r.provider()
	if !ok {
		return false
	}
	before := s.endpoints
	s.endpoints = r.newEndpoints(1 + r.rng.IntN(endpointCount))
	r.journal.note("%s: make slice %s of %s anew with %v", member, s.name, s.service, s.endpoints)
	drop, dropped := r.dropSlice(member, s), false
	r.do(r.tellEndpoints(member, s, before), func(ctx context.Context) error {
		if !dropped {
			if err := drop(ctx); err != nil {
				return err
			}
			dropped = true
		}
		return existing(r.f.member(member).Create(ctx, r.object(s)))
	})
	return true
}

// relabelSlice gives a slice to another service.
func (r *round) relabelSlice() bool {
	member, s, ok := r.provider()
	other := r.service()
	if !ok || other == s.service {
		return false
	}
	r.journal.note("%s: give slice %s of %s to %s", member, s.name, s.service, other)
	endpoints := s.endpoints
	s.endpoints = nil
	gone := r.tellEndpoints(member, s, endpoints)
	s.endpoints, s.service = endpoints, other
	come := r.tellEndpoints(member, s, nil)
	r.do(func(w *model.World, d *model.Deed) { gone(w, d); come(w, d) },
		r.patchSlice(member, s.name, map[string]any{"metadata": map[string]any{"labels": map[string]any{discoveryv1.LabelServiceName: other}}}))
	return true
}

// newService returns the hub's Service.
func (r *round) newService(name string) *corev1.Service {
	return &corev1.Service{ObjectMeta: r.meta(name), Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{
		{Name: "http", Port: portNumbers["http"]}, {Name: "admin", Port: portNumbers["admin"]},
	}}}
}

// createService makes the hub's Service.
func (r *round) createService(name string) {
	r.journal.note("make Service %s", name)
	r.do(func(w *model.World, d *model.Deed) { w.SetTemplate(model.Service(name), true, d) }, func(ctx context.Context) error {
		return existing(r.f.hub.Create(ctx, r.newService(name)))
	})
}

// deleteService deletes the hub's Service.
func (r *round) deleteService(name string) {
	r.journal.note("delete Service %s", name)
	r.do(func(w *model.World, d *model.Deed) { w.SetTemplate(model.Service(name), false, d) }, func(ctx context.Context) error {
		return client.IgnoreNotFound(r.f.hub.Delete(ctx, &corev1.Service{ObjectMeta: r.meta(name)}))
	})
}

func (r *round) meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: r.ns, Name: name}
}

func (r *round) key(name string) client.ObjectKey {
	return client.ObjectKey{Namespace: r.ns, Name: name}
}

// do does something to an API server that works, once the model has been told. An
// answer that does not come is no reason to give up: it may be about to.
func (r *round) do(tell func(*model.World, *model.Deed), what func(context.Context) error) {
	r.t.Helper()
	d := &model.Deed{Began: time.Now()}
	r.views.tell(func(w *model.World) { tell(w, d) })
	r.within("an API server takes a deed", patience, what)
	r.views.tell(func(*model.World) { d.Ended = time.Now() })
}

// nothing is told of what no consumer sees.
func nothing(*model.World, *model.Deed) {}

// existing is content when an object exists already: an earlier try that got no
// answer may have made it.
func existing(err error) error {
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}
