package chaos

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	networkingv1alpha1 "github.com/namesake-io/namesake/api/networking/v1alpha1"
	"github.com/namesake-io/namesake/test/chaos/model"
)

const (
	// patience is how long a command or an API server may take. The machine may be
	// busy with other things.
	patience = 60 * time.Second
	// soon is how long one look may take.
	soon = 5 * time.Second
	// interval between two looks.
	interval = 50 * time.Millisecond
	// settleLimit is how long everything may take once all has healed.
	settleLimit = 45 * time.Second
	// quietLimit is how long from then on until nothing is written any more, and
	// comeback how long nothing must be for that: as long as the back-off of a cache.
	quietLimit = 60 * time.Second
	comeback   = 12 * time.Second
	// moment is for how long short rounds see that it stays so.
	moment = 3 * time.Second
	// unjoinLimit is how long an unjoin may take, beside a hub that is killed and a
	// member that is slow or away.
	unjoinLimit = 3 * time.Minute
	// told is how many lines of the journal a failure shows.
	shownLines = 60
)

// options of rounds.
type options struct {
	// steps of a round.
	steps int
	// bound is how much undisturbed time the hub has to follow a deed.
	bound time.Duration
	// rest is how long nothing may be written at the end.
	rest time.Duration
}

// round is one run of deeds and faults that follow from a seed.
type round struct {
	t       *testing.T
	f       *fleet
	opts    options
	rng     *rand.Rand
	ns      string
	journal *journal
	views   *views

	// wishes by service, own slices by member and name, and the addresses that each
	// ever had, by member and name in one.
	wishes map[string]*wishOf
	own    map[string]map[string]*ownSlice
	ever   map[string][]model.Address
	broke  []*fault
	// counters for names.
	slices, addresses int
}

// runRound runs one round, and fails the test if it finds something.
func runRound(t *testing.T, f *fleet, seed uint64, opts options) {
	t.Helper()
	r := &round{
		t: t, f: f, opts: opts, rng: rand.New(rand.NewPCG(seed, uint64(len(f.members)))),
		ns: fmt.Sprintf("chaos-%d-%d", seed, time.Now().UnixMilli()), journal: newJournal(),
		wishes: map[string]*wishOf{}, own: map[string]map[string]*ownSlice{}, ever: map[string][]model.Address{},
	}
	for _, name := range r.names() {
		r.own[name] = map[string]*ownSlice{}
	}
	world := model.New(opts.bound, membersOf(r.names())...)
	r.views = newViews(r.journal, world, f.members)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("what was done last:\n%s\nthe end of the manager's log:\n%s", r.journal.last(shownLines), f.managerLog(shownLines))
		}
	})

	r.makeNamespaces()
	ctx, cancel := context.WithCancel(t.Context())
	var watching sync.WaitGroup
	watching.Go(func() { r.views.watch(ctx, r.ns, f.members) })
	watching.Go(func() { r.pulse(ctx) })
	r.run()
	cancel()
	watching.Wait()
	r.takeBack()

	if what := r.journal.what(); what != "" {
		t.Errorf("seed %d with %d members found after %s:\n%s\nto have it again: make chaos SEED=%d MEMBERS=%d",
			seed, len(f.members), time.Since(r.journal.start).Round(time.Second), what, seed, len(f.members))
	}
}

// run does everything of a round until something is found.
func (r *round) run() {
	for i := range serviceCount {
		name := fmt.Sprintf("svc%d", i)
		r.createService(name)
		if i < steadyCount {
			r.makeWish(name)
		}
	}
	for step := 0; step < r.opts.steps && r.going(); step++ {
		r.healDue()
		if len(r.broke) < 3 && r.rng.IntN(6) == 0 {
			r.beginFault()
		}
		r.doSomething()
		r.pause(r.lull())
	}
	r.healAll()
	if r.going() {
		r.settle()
	}
	if r.going() {
		r.rest()
	}
	for _, name := range r.wished() {
		r.removeWish(name)
	}
	if r.going() {
		r.settle()
	}
}

// doSomething does one deed.
func (r *round) doSomething() {
	total := 0
	for _, d := range deeds {
		total += d.weight
	}
	at := r.rng.IntN(total)
	d := deeds[slices.IndexFunc(deeds, func(d deed) bool { at -= d.weight; return at < 0 })]
	d.do(r)
}

// going is true until something is found.
func (r *round) going() bool {
	select {
	case <-r.journal.found:
		return false
	case <-r.t.Context().Done():
		r.t.Fatal("ended from outside")
		return false
	default:
		return true
	}
}

// lull is how long nothing is done: hardly at all, or now and then for so long that
// everything must have been carried out. Else what the hub did not hear of would be
// made good by the next deed.
func (r *round) lull() time.Duration {
	if r.rng.IntN(16) == 0 {
		return r.opts.bound + time.Second
	}
	return time.Duration(r.rng.IntN(400)) * time.Millisecond
}

// pause lets some time go by.
func (r *round) pause(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-r.journal.found:
	}
}

// fail records that something is wrong.
func (r *round) fail(format string, args ...any) {
	r.journal.find(time.Now(), fmt.Sprintf(format, args...))
}

// names of the members, in order.
func (r *round) names() []string {
	var out []string
	for _, m := range r.f.members {
		out = append(out, m.name)
	}
	return out
}

// quiet is a context for what must come to its end whatever happens to the test.
func (r *round) quiet() context.Context { return context.WithoutCancel(r.t.Context()) }

// poll tries until it succeeds, or the limit is over: then it returns why the last
// try failed that was not cut off.
func (r *round) poll(limit time.Duration, try func(context.Context) error) (last error) {
	err := wait.PollUntilContextTimeout(r.quiet(), interval, limit, true, func(ctx context.Context) (bool, error) {
		err := try(ctx)
		if err == nil || ctx.Err() == nil || last == nil {
			last = err
		}
		return err == nil, nil
	})
	if err == nil {
		return nil
	}
	return last
}

// within tries until it succeeds, and ends the test if it does not.
func (r *round) within(what string, limit time.Duration, try func(context.Context) error) {
	r.t.Helper()
	if err := r.poll(limit, try); err != nil {
		r.t.Fatalf("%s: not so after %s: %v", what, limit, err)
	}
}

// makeNamespaces makes the round's namespace, everywhere.
func (r *round) makeNamespaces() {
	for _, c := range r.f.clusters() {
		r.do(nothing, func(ctx context.Context) error {
			return existing(c.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: r.ns}}))
		})
	}
}

// takeBack removes everything of the round, so that the next one begins with
// nothing.
func (r *round) takeBack() {
	for _, name := range slices.Sorted(maps.Keys(r.wishes)) {
		r.do(nothing, func(ctx context.Context) error {
			return client.IgnoreNotFound(r.f.hub.Delete(ctx, &networkingv1alpha1.MultiClusterService{ObjectMeta: r.meta(name)}))
		})
	}
	for _, c := range r.f.clusters() {
		r.do(nothing, func(ctx context.Context) error {
			return client.IgnoreNotFound(c.Delete(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: r.ns}}))
		})
	}
	for _, c := range r.f.clusters() {
		r.within("the round's namespace is gone from "+c.name, patience, func(ctx context.Context) error {
			err := c.Get(ctx, client.ObjectKey{Name: r.ns}, &corev1.Namespace{})
			if err == nil {
				return errors.New("it is there")
			}
			return client.IgnoreNotFound(err)
		})
	}
}

// stands says whether a Service is seen in a member.
func (v *views) stands(member, service string) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.members[model.Member(member)].services[service]
}

func sortedKeys(of map[string]string) []string { return slices.Sorted(maps.Keys(of)) }
