package model

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Sight is what a consumer is seen to hold of an endpoint.
type Sight struct {
	State State
	// Ports of the slice that it stands in. Empty when it is absent.
	Ports string
}

// JudgeEndpoint returns what is wrong about what a consumer is seen to hold, in a
// sentence; nothing if it may be so.
func (w *World) JudgeEndpoint(consumer Member, of Service, address Address, seen Sight, at time.Time) string {
	e, s := w.endpoints[address], w.services[of]
	if e == nil || s == nil {
		return fmt.Sprintf("%s must not hold %s of %s: nobody ever gave it", consumer, address, of)
	}
	here := placed{consumer, of, address}
	// What comes takes everybody; what goes takes the hub and the consumer.
	long := w.clock.before(at, w.bound, Hub, Subject(e.provider), Subject(consumer), SubjectOf(of))
	short := w.clock.before(at, w.bound, Hub, Subject(consumer), SubjectOf(of))
	if d := w.disturbed[here]; d != nil && !d.over(long) {
		return ""
	}

	given, states := s.given[pair{e.provider, consumer}], e.states[of]
	if states == nil {
		states = newTrack(Absent)
	}
	may := map[State]bool{}
	if given.had(In, short) || given.had(Moving, short) {
		for _, state := range []State{Ready, NotReady} {
			may[state] = states.had(state, long)
		}
	}
	if w.held[here] {
		// That it was not there before it came excuses no withdrawal.
		may[Absent] = given.hadAgain(Out, long) || given.had(Moving, long) || states.hadAgain(Absent, long)
	} else {
		may[Absent] = given.had(Out, long) || given.had(Moving, long) || states.had(Absent, long)
	}
	if seen.State != Absent {
		w.held[here] = true
	}

	if !may[seen.State] {
		return w.sentence(here, e.provider, seen.State, may)
	}
	if seen.State != Absent && !s.ports.had(seen.Ports, long) {
		return fmt.Sprintf("%s must hold %s of %s from %s with the ports %q, not %q",
			consumer, address, of, e.provider, s.ports.now(), seen.Ports)
	}
	return ""
}

// sentence says what was expected of an endpoint in a consumer.
func (w *World) sentence(here placed, provider Member, seen State, may map[State]bool) string {
	var allowed []string
	for _, state := range []State{Ready, NotReady, Absent} {
		if may[state] {
			allowed = append(allowed, string(state))
		}
	}
	kind := "stale"
	switch {
	case seen == Absent && w.held[here]:
		kind = "withdrawn without cause"
	case seen == Absent:
		kind = "missing"
	case slices.Equal(allowed, []string{string(Absent)}):
		kind = "left behind"
	}
	return fmt.Sprintf("%s: in %s, endpoint %s of %s from %s must be %s for all that was done in the last %s of undisturbed time, and it is %s",
		kind, here.consumer, here.address, here.service, provider, strings.Join(allowed, " or "), w.bound, seen)
}

// JudgeService returns what is wrong about a Service being in a member or not.
func (w *World) JudgeService(member Member, of Service, seen bool, at time.Time) string {
	s := w.services[of]
	if s == nil {
		return ""
	}
	here := placed{consumer: member, service: of}
	after := w.clock.before(at, w.bound, Hub, Subject(member))
	stands := s.stands[member]
	d := w.disturbed[here]
	may := d != nil && !d.over(after) || stands.had(Moving, after)
	if seen {
		may = may || stands.had(In, after)
		w.held[here] = true
	} else {
		may = may || stands.hadAgain(Out, after) || !w.held[here] && stands.had(Out, after)
	}
	switch {
	case may:
		return ""
	case seen:
		return fmt.Sprintf("left behind: Service %s must not stand in %s, for all that was done in the last %s of undisturbed time", of, member, w.bound)
	}
	return fmt.Sprintf("Service %s must stand in %s, for all that was done in the last %s of undisturbed time, and it does not", of, member, w.bound)
}
