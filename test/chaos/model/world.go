package model

import (
	"iter"
	"maps"
	"slices"
	"time"
)

// Member is the name of a member.
type Member string

// Service is the name of a service.
type Service string

// Address is that of an endpoint. Each is used once.
type Address string

// State of an endpoint.
type State string

// States of an endpoint.
const (
	Absent   State = "absent"
	NotReady State = "not ready"
	Ready    State = "ready"
)

// Membership says whether a member has joined.
type Membership string

// Memberships.
const (
	In  Membership = "in"
	Out Membership = "out"
	// Moving is either: it joins or leaves just now.
	Moving Membership = "moving"
)

// Wish is a MultiClusterService. The zero value: there is none.
type Wish struct {
	Exists bool
	// Providers and Consumers are named members. Empty: all.
	Providers, Consumers []Member
	// Ports that are exposed, in a form of the caller's.
	Ports string
}

// World is all that was done to the fleet.
type World struct {
	bound   time.Duration
	clock   clock
	members map[Member]*track[Membership]

	services  map[Service]*service
	endpoints map[Address]*endpoint
	// disturbed is when somebody last meddled with what a consumer holds.
	disturbed map[placed]*Deed
	// held are the endpoints that a consumer has held.
	held map[placed]bool
}

// service is what is known of one service.
type service struct {
	wish     Wish
	template bool
	ports    *track[string]
	// given says whether one member gets endpoints of another.
	given map[pair]*track[Membership]
	// stands says whether the Service should stand in a member.
	stands map[Member]*track[Membership]
}

type pair struct{ provider, consumer Member }

// placed is an endpoint of a service, or with an empty address the Service, in a
// consumer.
type placed struct {
	consumer Member
	service  Service
	address  Address
}

// endpoint is one address, and what it is to each service.
type endpoint struct {
	provider Member
	states   map[Service]*track[State]
}

// New returns a world of members that have joined and hold nothing. The bound is
// how much undisturbed time the hub has to follow a deed.
func New(bound time.Duration, members ...Member) *World {
	w := &World{
		bound: bound, members: map[Member]*track[Membership]{}, services: map[Service]*service{},
		endpoints: map[Address]*endpoint{}, disturbed: map[placed]*Deed{}, held: map[placed]bool{},
	}
	for _, m := range members {
		w.members[m] = newTrack(In)
	}
	return w
}

// Outage records that work on a subject goes at a lesser pace from now on (0: not
// at all) and returns what records the end.
func (w *World) Outage(subject Subject, pace float64, at time.Time) (end func(time.Time)) {
	return w.clock.begin(subject, pace, at)
}

// SetMember records that a member joined or left.
func (w *World) SetMember(member Member, is Membership, d *Deed) {
	w.members[member].set(is, d)
	for _, s := range w.services {
		w.refresh(s, d)
	}
}

// SetWish records a MultiClusterService.
func (w *World) SetWish(name Service, wish Wish, d *Deed) {
	s := w.service(name)
	s.wish = wish
	if wish.Exists {
		s.ports.set(wish.Ports, d)
	}
	w.refresh(s, d)
}

// SetTemplate records that the hub's Service came or went.
func (w *World) SetTemplate(name Service, exists bool, d *Deed) {
	s := w.service(name)
	s.template = exists
	w.refresh(s, d)
}

// SetEndpoint records what a provider says of an address.
func (w *World) SetEndpoint(address Address, provider Member, of Service, state State, d *Deed) {
	w.service(of)
	e := w.endpoints[address]
	if e == nil {
		e = &endpoint{provider: provider, states: map[Service]*track[State]{}}
		w.endpoints[address] = e
	}
	if e.states[of] == nil {
		e.states[of] = newTrack(Absent)
	}
	e.states[of].set(state, d)
}

// Disturb records that somebody meddled with what a consumer holds of an address,
// of whatever service.
func (w *World) Disturb(consumer Member, address Address, d *Deed) {
	for name := range w.services {
		w.disturbed[placed{consumer, name, address}] = d
	}
}

// DisturbService records that somebody meddled with a member's Service.
func (w *World) DisturbService(member Member, name Service, d *Deed) {
	w.disturbed[placed{consumer: member, service: name}] = d
}

// service returns what is known of a service, which begins as nothing.
func (w *World) service(name Service) *service {
	if have := w.services[name]; have != nil {
		return have
	}
	s := &service{ports: newTrack(""), given: map[pair]*track[Membership]{}, stands: map[Member]*track[Membership]{}}
	for m := range w.members {
		s.stands[m] = newTrack(Out)
		for other := range w.members {
			s.given[pair{m, other}] = newTrack(Out)
		}
	}
	w.services[name] = s
	return s
}

// refresh takes in what follows from a wish and the members.
func (w *World) refresh(s *service, d *Deed) {
	for p, t := range s.given {
		is := Out
		if s.wish.Exists && p.provider != p.consumer && s.wish.provides(p.provider) && s.wish.consumes(p.consumer) {
			is = both(w.members[p.provider].now(), w.members[p.consumer].now())
		}
		t.set(is, d)
	}
	for m, t := range s.stands {
		is := Out
		if s.wish.Exists && s.template && (s.wish.provides(m) || s.wish.consumes(m)) {
			is = w.members[m].now()
		}
		t.set(is, d)
	}
}

func (wish Wish) provides(m Member) bool {
	return len(wish.Providers) == 0 || slices.Contains(wish.Providers, m)
}

func (wish Wish) consumes(m Member) bool {
	return len(wish.Consumers) == 0 || slices.Contains(wish.Consumers, m)
}

// both is in when both are, and out when one is.
func both(a, b Membership) Membership {
	switch {
	case a == Out || b == Out:
		return Out
	case a == In && b == In:
		return In
	}
	return Moving
}

// Gives says whether in the end a consumer should hold a provider's endpoints of a
// service.
func (w *World) Gives(of Service, provider, consumer Member) bool {
	return w.service(of).given[pair{provider, consumer}].now() == In
}

// Collects says whether in the end the hub should remember a provider's slices of
// a service.
func (w *World) Collects(of Service, provider Member) bool {
	s := w.service(of)
	return s.wish.Exists && s.wish.provides(provider) && w.members[provider].now() == In
}

// Consumes says whether in the end a member gets endpoints of a service.
func (w *World) Consumes(of Service, member Member) bool {
	s := w.service(of)
	return s.wish.Exists && s.wish.consumes(member) && w.members[member].now() == In
}

// Stands says whether in the end the Service should stand in a member.
func (w *World) Stands(of Service, member Member) bool {
	return w.service(of).stands[member].now() == In
}

// Services returns all services, sorted.
func (w *World) Services() []Service { return slices.Sorted(maps.Keys(w.services)) }

// Endpoints yields every address with each service that it was ever of.
func (w *World) Endpoints() iter.Seq2[Service, Address] {
	return func(yield func(Service, Address) bool) {
		for address, e := range w.endpoints {
			for name := range e.states {
				if !yield(name, address) {
					return
				}
			}
		}
	}
}

// SubjectOf is the subject of outages of one service.
func SubjectOf(name Service) Subject { return "service " + Subject(name) }
