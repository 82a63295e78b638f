package model

import (
	"strings"
	"testing"
	"time"
)

// bound of the tests: ten seconds of undisturbed time.
const testBound = 10 * time.Second

// at is a time in seconds.
func at(seconds float64) time.Time {
	return time.Unix(1_000_000, 0).Add(time.Duration(seconds * float64(time.Second)))
}

// deed is one that took no time.
func deed(seconds float64) *Deed { return &Deed{Began: at(seconds), Ended: at(seconds)} }

func TestClock(t *testing.T) {
	type outage struct {
		subject  Subject
		from, to float64 // to 0: it lasts
		pace     float64
	}
	for title, tc := range map[string]struct {
		outages []outage
		want    float64 // what came before this had 10 s of undisturbed time until 100 s
	}{
		"no outage":                         {nil, 90},
		"one that is over":                  {[]outage{{Hub, 92, 95, 0}}, 87},
		"one that lasts":                    {[]outage{{Hub, 95, 0, 0}}, 85},
		"one of somebody else":              {[]outage{{"b", 92, 95, 0}}, 90},
		"one of long ago":                   {[]outage{{Hub, 10, 80, 0}}, 90},
		"one that began before":             {[]outage{{Hub, 50, 95, 0}}, 45},
		"two that overlap count once":       {[]outage{{Hub, 90, 95, 0}, {"a", 93, 98, 0}}, 82},
		"two of one subject":                {[]outage{{"a", 90, 92, 0}, {"a", 94, 96, 0}}, 86},
		"a slow path counts for less":       {[]outage{{"a", 80, 0, 0.5}}, 80},
		"slow in part":                      {[]outage{{"a", 90, 96, 0.5}}, 87},
		"slow and away: away":               {[]outage{{"a", 90, 96, 0.5}, {Hub, 90, 96, 0}}, 84},
		"slow for so long that it's enough": {[]outage{{"a", 0, 0, 0.2}}, 50},
	} {
		t.Run(title, func(t *testing.T) {
			var c clock
			for _, o := range tc.outages {
				if end := c.begin(o.subject, o.pace, at(o.from)); o.to > 0 {
					end(at(o.to))
				}
			}
			if got := c.before(at(100), testBound, Hub, "a"); got.Sub(at(tc.want)).Abs() > time.Microsecond {
				t.Errorf("%s, want %s", got.Sub(at(0)), at(tc.want).Sub(at(0)))
			}
		})
	}
}

func TestTrack(t *testing.T) {
	tr := newTrack("a")
	tr.set("b", &Deed{Began: at(1), Ended: at(2)})
	tr.set("b", deed(3))
	tr.set("a", &Deed{Began: at(4)}) // not ended yet
	for title, tc := range map[string]struct {
		value string
		after float64
		want  bool
	}{
		"before all":                        {"a", 0, true},
		"until the deed ended":              {"b", 1.5, true},
		"the latest value":                  {"a", 50, true},
		"the one before, while the deed is": {"b", 50, true},
		"never":                             {"c", 0, false},
	} {
		if got := tr.had(tc.value, at(tc.after)); got != tc.want {
			t.Errorf("%s: had %q after %gs: %v", title, tc.value, tc.after, got)
		}
	}
	tr.set("c", deed(5))
	if tr.now() != "c" || tr.had("a", at(50)) || tr.had("b", at(50)) {
		t.Error("what a later deed replaced is had")
	}
	first := newTrack("a")
	first.set("b", deed(1))
	if first.hadAgain("a", at(0)) || !first.had("a", at(0)) {
		t.Error("what a fact began with is had, and not had again")
	}
}

// step is one thing that happens in a world.
type step func(*World)

func TestJudgeEndpoint(t *testing.T) {
	const x Address = "198.18.0.1"
	all := Wish{Exists: true, Ports: "http"}
	wish := func(seconds float64, wish Wish) step {
		return func(w *World) { w.SetWish("foo", wish, deed(seconds)) }
	}
	give := func(seconds float64, state State) step {
		return func(w *World) { w.SetEndpoint(x, "a", "foo", state, deed(seconds)) }
	}
	member := func(seconds float64, m Member, is Membership) step {
		return func(w *World) { w.SetMember(m, is, deed(seconds)) }
	}
	outage := func(subject Subject, from, to float64) step {
		return func(w *World) {
			if end := w.Outage(subject, 0, at(from)); to > 0 {
				end(at(to))
			}
		}
	}
	meddle := func(seconds float64) step {
		return func(w *World) { w.Disturb("b", x, deed(seconds)) }
	}
	see := func(seconds float64, state State) step {
		return func(w *World) { w.JudgeEndpoint("b", "foo", x, Sight{state, "http"}, at(seconds)) }
	}
	begin := []step{wish(0, all), give(0, Ready)}
	for title, tc := range map[string]struct {
		steps []step
		seen  State
		at    float64
		ports string
		// want is how the judgement begins. Empty: it may be so.
		want string
	}{
		"has come":                                {begin, Ready, 1, "http", ""},
		"is on its way":                           {begin, Absent, 9, "", ""},
		"has not come in time":                    {begin, Absent, 11, "", "missing"},
		"has come, and is withdrawn at once":      {append(begin, see(1, Ready)), Absent, 1.1, "", "withdrawn without cause"},
		"is withdrawn while the provider is away": {append(begin, see(1, Ready), outage("a", 2, 0)), Absent, 500, "", "withdrawn without cause"},
		"is withdrawn by a hub that comes back":   {append(begin, see(1, Ready), outage(Hub, 2, 500)), Absent, 500.1, "", "withdrawn without cause"},
		"turned not ready, not told yet":          {append(begin, see(1, Ready), give(50, NotReady)), Ready, 59, "http", ""},
		"turned not ready, told":                  {append(begin, see(1, Ready), give(50, NotReady)), NotReady, 50.1, "http", ""},
		"turned not ready, never told":            {append(begin, see(1, Ready), give(50, NotReady)), Ready, 61, "http", "stale"},
		"turned not ready, and is withdrawn":      {append(begin, see(1, Ready), give(50, NotReady)), Absent, 51, "", "withdrawn without cause"},
		"gone, not told yet":                      {append(begin, see(1, Ready), give(50, Absent)), Ready, 59, "http", ""},
		"gone, told":                              {append(begin, see(1, Ready), give(50, Absent)), Absent, 50.1, "", ""},
		"gone, never told":                        {append(begin, see(1, Ready), give(50, Absent)), Ready, 61, "http", "left behind"},
		"gone while the provider is away":         {append(begin, see(1, Ready), outage("a", 40, 0), give(50, Absent)), Ready, 500, "http", ""},
		"gone, the provider back for long":        {append(begin, see(1, Ready), outage("a", 40, 80), give(50, Absent)), Ready, 91, "http", "left behind"},
		"the wish gone while the provider is away": {
			append(begin, see(1, Ready), outage("a", 40, 0), wish(50, Wish{})), Ready, 61, "http", "left behind",
		},
		"the wish gone while the consumer is away": {
			append(begin, see(1, Ready), outage("b", 40, 0), wish(50, Wish{})), Ready, 500, "http", "",
		},
		"off the list of consumers": {
			append(begin, see(1, Ready), wish(50, Wish{Exists: true, Consumers: []Member{"c"}, Ports: "http"})), Ready, 61, "http", "left behind",
		},
		"off the list and on again, withdrawn between": {
			append(begin, see(1, Ready), wish(50, Wish{Exists: true, Providers: []Member{"c"}, Ports: "http"}), wish(52, all)), Absent, 55, "", "",
		},
		"off the list and on again, withdrawn for long": {
			append(begin, see(1, Ready), wish(50, Wish{Exists: true, Providers: []Member{"c"}, Ports: "http"}), wish(52, all)), Absent, 63, "", "withdrawn without cause",
		},
		"the provider leaves":            {append(begin, see(1, Ready), member(50, "a", Moving)), Absent, 51, "", ""},
		"the provider has left":          {append(begin, see(1, Ready), member(50, "a", Out)), Ready, 61, "http", "left behind"},
		"the consumer comes back":        {append(begin, member(50, "b", Out), member(60, "b", In)), Absent, 71, "", "missing"},
		"another consumer leaves":        {append(begin, see(1, Ready), member(50, "c", Out)), Absent, 51, "", "withdrawn without cause"},
		"somebody meddled":               {append(begin, see(1, Ready), meddle(50)), Absent, 55, "", ""},
		"somebody meddled, long ago":     {append(begin, see(1, Ready), meddle(50)), Absent, 61, "", "withdrawn without cause"},
		"the ports changed, not yet":     {append(begin, wish(50, Wish{Exists: true, Ports: "admin"})), Ready, 55, "http", ""},
		"the ports changed, never told":  {append(begin, wish(50, Wish{Exists: true, Ports: "admin"})), Ready, 61, "http", "b must hold"},
		"the ports are those of another": {begin, Ready, 5, "admin", "b must hold"},
	} {
		t.Run(title, func(t *testing.T) {
			w := New(testBound, "a", "b", "c")
			for _, s := range tc.steps {
				s(w)
			}
			got := w.JudgeEndpoint("b", "foo", x, Sight{tc.seen, tc.ports}, at(tc.at))
			if tc.want == "" && got != "" || !strings.HasPrefix(got, tc.want) {
				t.Errorf("judged %q, want %q", got, tc.want)
			}
		})
	}
}

func TestJudgeEndpointOfNobody(t *testing.T) {
	w := New(testBound, "a", "b")
	w.SetWish("foo", Wish{Exists: true}, deed(0))
	w.SetEndpoint("198.18.0.1", "a", "foo", Ready, deed(0))
	if got := w.JudgeEndpoint("b", "foo", "198.18.0.2", Sight{State: Ready}, at(1)); !strings.Contains(got, "nobody") {
		t.Errorf("an address that nobody gave: %q", got)
	}
	// A member's own endpoint that comes back to it has gone round.
	if got := w.JudgeEndpoint("a", "foo", "198.18.0.1", Sight{State: Ready}, at(1)); got == "" {
		t.Error("an endpoint may come back to its provider")
	}
}

func TestJudgeService(t *testing.T) {
	wish := func(seconds float64, wish Wish) step {
		return func(w *World) { w.SetWish("foo", wish, deed(seconds)) }
	}
	template := func(seconds float64, exists bool) step {
		return func(w *World) { w.SetTemplate("foo", exists, deed(seconds)) }
	}
	see := func(seconds float64) step {
		return func(w *World) { w.JudgeService("b", "foo", true, at(seconds)) }
	}
	begin := []step{template(0, true), wish(0, Wish{Exists: true})}
	for title, tc := range map[string]struct {
		steps []step
		seen  bool
		at    float64
		right bool
	}{
		"is on its way":          {begin, false, 9, true},
		"has not come":           {begin, false, 11, false},
		"stands":                 {begin, true, 11, true},
		"stood, and is gone":     {append(begin, see(1)), false, 2, false},
		"no wish any more":       {append(begin, see(1), wish(50, Wish{})), false, 51, true},
		"no wish for long":       {append(begin, see(1), wish(50, Wish{})), true, 61, false},
		"no template any more":   {append(begin, see(1), template(50, false)), false, 51, true},
		"of others only":         {append(begin, see(1), wish(50, Wish{Exists: true, Providers: []Member{"a"}, Consumers: []Member{"a"}})), true, 61, false},
		"somebody meddled":       {append(begin, see(1), func(w *World) { w.DisturbService("b", "foo", deed(50)) }), false, 55, true},
		"somebody meddled, once": {append(begin, see(1), func(w *World) { w.DisturbService("b", "foo", deed(50)) }), false, 61, false},
		"the member moves":       {append(begin, see(1), func(w *World) { w.SetMember("b", Moving, deed(50)) }), false, 51, true},
	} {
		t.Run(title, func(t *testing.T) {
			w := New(testBound, "a", "b")
			for _, s := range tc.steps {
				s(w)
			}
			if got := w.JudgeService("b", "foo", tc.seen, at(tc.at)); (got == "") != tc.right {
				t.Errorf("judged %q", got)
			}
		})
	}
}
