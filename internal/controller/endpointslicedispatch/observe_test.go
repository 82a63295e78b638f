package endpointslicedispatch

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/namesake-io/namesake/internal/discovery"
)

var foo = types.NamespacedName{Namespace: "shop", Name: "foo"}

// made are plans for consumers as they are when they are asked for.
type made struct {
	consumers []discovery.ClusterName
	err       error
	count     int
	// meanwhile happens while a plan is being made, after its snapshot was taken.
	meanwhile func()
}

func (m *made) Services(context.Context) ([]types.NamespacedName, error) { return nil, nil }

func (m *made) Plan(_ context.Context, service types.NamespacedName) (*discovery.Plan, error) {
	m.count++
	plan := &discovery.Plan{Service: service, Selection: discovery.Selection{
		Providers: []discovery.ClusterName{"p", "q"}, Consumers: slices.Clone(m.consumers),
	}}
	if m.meanwhile != nil {
		m.meanwhile()
	}
	return plan, m.err
}

// After a change of endpoints the consumers are known and nobody else is looked at;
// while who takes part may have changed, they are not.
func TestPlannerKnowsConsumers(t *testing.T) {
	for title, tc := range map[string]struct {
		do    func(p *planner, m *made)
		known bool
		want  []discovery.ClusterName
	}{
		"no plan yet":       {do: func(*planner, *made) {}},
		"after a plan":      {do: func(p *planner, _ *made) { look(t, p) }, known: true, want: []discovery.ClusterName{"a", "b"}},
		"no plan by error":  {do: func(p *planner, m *made) { m.err = errors.New("no cache"); look(t, p) }},
		"the wish changed":  {do: func(p *planner, _ *made) { look(t, p); p.invalidate(foo) }},
		"a cluster changed": {do: func(p *planner, _ *made) { look(t, p); p.invalidateAll() }},
		"endpoints changed, too": {
			do: func(p *planner, _ *made) { look(t, p); p.invalidateEndpoints(foo) }, known: true, want: []discovery.ClusterName{"a", "b"},
		},
		"a member was listed": {
			do: func(p *planner, _ *made) { look(t, p); p.invalidateProviders(listed("p")) }, known: true, want: []discovery.ClusterName{"a", "b"},
		},
		"the wish changed, and has been planned": {
			do: func(p *planner, m *made) {
				look(t, p)
				m.consumers = []discovery.ClusterName{"c"}
				p.invalidate(foo)
				look(t, p)
			},
			known: true, want: []discovery.ClusterName{"c"},
		},
		"the wish changed while a plan was made": {
			do: func(p *planner, m *made) {
				m.meanwhile = func() { p.invalidate(foo) }
				look(t, p)
			},
		},
		"endpoints changed while a plan was made": {
			do: func(p *planner, m *made) {
				m.meanwhile = func() { p.invalidateEndpoints(foo) }
				look(t, p)
			},
			known: true, want: []discovery.ClusterName{"a", "b"},
		},
	} {
		t.Run(title, func(t *testing.T) {
			m := &made{consumers: []discovery.ClusterName{"a", "b"}}
			p := newPlanner(m)
			tc.do(p, m)
			got := p.invalidateEndpoints(foo)
			if got.known != tc.known || !slices.Equal(got.consumers, tc.want) {
				t.Errorf("consumers %v, known %v; want %v, %v", got.consumers, got.known, tc.want, tc.known)
			}
			for _, member := range []discovery.ClusterName{"a", "b", "c", "d"} {
				concerned := len(p.concerning(member, []types.NamespacedName{foo})) > 0
				if want := !tc.known || slices.Contains(tc.want, member); concerned != want {
					t.Errorf("%s is looked at: %v, want %v", member, concerned, want)
				}
			}
			m.err, m.meanwhile = nil, nil
			before := m.count
			look(t, p)
			if m.count != before+1 {
				t.Error("the plan was not made anew after endpoints had changed")
			}
		})
	}
}

// look asks for the plan, as whoever brings a consumer to it does.
func look(t *testing.T, p *planner) {
	t.Helper()
	_, _ = p.plan(t.Context(), foo)
}

// listed are members that have just been listed.
func listed(names ...discovery.ClusterName) map[discovery.ClusterName]bool {
	out := map[discovery.ClusterName]bool{}
	for _, name := range names {
		out[name] = true
	}
	return out
}

// A member that has been listed concerns the services that it provides, and those of
// which it is not known who does.
func TestPlannerInvalidatesProviders(t *testing.T) {
	for title, tc := range map[string]struct {
		members     []discovery.ClusterName
		reselected  bool
		known, made bool
	}{
		"a provider":                         {members: []discovery.ClusterName{"p"}, known: true, made: true},
		"one of several":                     {members: []discovery.ClusterName{"a", "q", "z"}, known: true, made: true},
		"a consumer":                         {members: []discovery.ClusterName{"a"}},
		"nobody":                             {},
		"a stranger, and the wish changed":   {members: []discovery.ClusterName{"z"}, reselected: true, made: true},
		"a provider, after the wish changed": {members: []discovery.ClusterName{"p"}, reselected: true, made: true},
	} {
		t.Run(title, func(t *testing.T) {
			m := &made{consumers: []discovery.ClusterName{"a", "b"}}
			p := newPlanner(m)
			look(t, p)
			if tc.reselected {
				p.invalidate(foo)
			}
			got := p.invalidateProviders(listed(tc.members...))
			if (len(got) == 1) != tc.made || tc.made && (got[0].service != foo || got[0].known != tc.known) {
				t.Errorf("affected %v; want that it is %v, consumers known %v", got, tc.made, tc.known)
			}
			before := m.count
			look(t, p)
			if again := m.count > before; again != tc.made {
				t.Errorf("planned anew: %v, want %v", again, tc.made)
			}
		})
	}
}

func TestListDelay(t *testing.T) {
	for title, tc := range map[string]struct {
		listing             bool
		waited, pause, want time.Duration
	}{
		"nobody else is being listed":   {want: 0},
		"the last look was long ago":    {pause: -time.Hour, want: 0},
		"the last look is not over":     {pause: time.Millisecond, want: time.Millisecond},
		"somebody is":                   {listing: true, want: listWait},
		"somebody is, long after":       {listing: true, pause: -time.Hour, want: listWait},
		"the last has come":             {waited: time.Second, want: 0},
		"they keep coming":              {listing: true, waited: time.Second, want: listWait},
		"they have come for long":       {listing: true, waited: listsWait - time.Millisecond, want: time.Millisecond},
		"and long enough":               {listing: true, waited: 2 * listsWait, want: 0},
		"long enough, but for the look": {listing: true, waited: 2 * listsWait, pause: time.Second, want: time.Second},
	} {
		t.Run(title, func(t *testing.T) {
			if got := listDelay(tc.listing, tc.waited, tc.pause); got != tc.want {
				t.Errorf("%s, want %s", got, tc.want)
			}
		})
	}
}
