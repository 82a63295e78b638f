package chaos

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/namesake-io/namesake/api/cluster/v1alpha1"
	"github.com/namesake-io/namesake/test/chaos/model"
)

// fault is something that breaks and heals. What it breaks, the target, has one
// fault at a time.
type fault struct {
	name, target string
	// steps until it heals.
	left int
	heal func()
}

// kindOfFault makes a fault begin. It returns how it heals, nil if it cannot begin
// now.
type kindOfFault struct {
	name   string
	weight int
	// everywhere is one of the hub or the whole fleet, not of one member.
	everywhere bool
	begin      func(r *round, target string) (heal func())
}

// faults are what may break.
var faults = []kindOfFault{
	{"api-down", 3, false, (*round).apiDown},
	{"api-killed", 2, false, (*round).apiKilled},
	{"api-stopped", 3, false, (*round).apiStopped},
	{"api-unreachable", 4, false, (*round).apiUnreachable},
	{"api-slow", 2, false, (*round).apiSlow},
	{"token renewed", 2, false, (*round).tokenRenewed},
	{"token revoked", 2, false, (*round).tokenRevoked},
	{"unjoined", 3, false, (*round).unjoined},
	{"manager killed", 4, true, (*round).managerKilled},
	{"manager stopped", 2, true, (*round).managerStopped},
	{"hub API killed", 1, true, (*round).hubKilled},
	{"hub API stopped", 1, true, (*round).hubStopped},
	{"etcd restarted", 1, true, (*round).etcdRestarted},
	{"Service made again", 3, true, (*round).serviceMadeAgain},
}

// beginFault breaks something that is whole.
func (r *round) beginFault() {
	total := 0
	for _, k := range faults {
		total += k.weight
	}
	at := r.rng.IntN(total)
	kind := faults[slices.IndexFunc(faults, func(k kindOfFault) bool { at -= k.weight; return at < 0 })]
	target := hubName
	if !kind.everywhere {
		target, _ = pick(r, r.names())
	}
	left := 2 + r.rng.IntN(12)
	if r.rng.IntN(5) == 0 {
		left += 30 // so long that every back-off has grown
	}
	if r.broken(target) {
		return
	}
	r.journal.note("%s: fault %q", target, kind.name)
	if heal := kind.begin(r, target); heal != nil {
		r.broke = append(r.broke, &fault{name: kind.name, target: target, left: left, heal: heal})
	}
}

// healDue heals what has been broken for long enough.
func (r *round) healDue() {
	for _, f := range slices.Clone(r.broke) {
		f.left--
		if f.left <= 0 {
			r.healFault(f)
		}
	}
}

// healAll heals everything, the hub first: others may need it.
func (r *round) healAll() {
	r.healTarget(hubName)
	for len(r.broke) > 0 {
		r.healFault(r.broke[0])
	}
}

func (r *round) healTarget(target string) {
	for _, f := range slices.Clone(r.broke) {
		if f.target == target {
			r.healFault(f)
		}
	}
}

// healFault heals one fault. Its heal may begin another of the same target.
func (r *round) healFault(f *fault) {
	r.broke = slices.DeleteFunc(r.broke, func(other *fault) bool { return other == f })
	r.journal.note("%s: fault %q heals", f.target, f.name)
	f.heal()
	r.journal.note("%s: fault %q has healed", f.target, f.name)
}

// broken says whether something has a fault.
func (r *round) broken(target string) bool {
	return slices.ContainsFunc(r.broke, func(f *fault) bool { return f.target == target })
}

// unanswering are the faults with which a member's API server answers nobody.
var unanswering = []string{"api-down", "api-killed", "api-stopped"}

// answering returns the members whose API servers answer the test.
func (r *round) answering() []string {
	return slices.DeleteFunc(r.names(), func(name string) bool {
		return slices.ContainsFunc(r.broke, func(f *fault) bool { return f.target == name && slices.Contains(unanswering, f.name) })
	})
}

// outage tells the model that something is not to be reached from now on.
func (r *round) outage(subject string, pace float64) (end func()) {
	var over func(time.Time)
	r.views.tell(func(w *model.World) { over = w.Outage(model.Subject(subject), pace, time.Now()) })
	return func() { r.views.tell(func(*model.World) { over(time.Now()) }) }
}

// sandbox runs a command of the sandbox on the fleet.
func (r *round) sandbox(command string, args ...string) {
	r.t.Helper()
	if err := r.f.sandbox(r.quiet(), command, args...); err != nil {
		r.t.Fatal(err)
	}
}

// memberFault is one of the sandbox's own.
func (r *round) memberFault(member, name string, pace float64) (heal func()) {
	end := r.outage(member, pace)
	r.sandbox("fault", member, name, "on")
	return func() {
		r.sandbox("fault", member, name, "off")
		end()
	}
}

func (r *round) apiDown(member string) (heal func()) { return r.memberFault(member, "api-down", 0) }
func (r *round) apiUnreachable(member string) (heal func()) {
	return r.memberFault(member, "api-unreachable", 0)
}

// slowPace is that of a path with round trips of 200 ms, where a service takes
// several of them.
const slowPace = 0.3

func (r *round) apiSlow(member string) (heal func()) {
	return r.memberFault(member, "api-slow=200ms", slowPace)
}

// signalled sends a component one signal now and another to heal.
func (r *round) signalled(subject, component, now, later string) (heal func()) {
	end := r.outage(subject, 0)
	r.sandbox(now, component)
	return func() {
		r.sandbox(later, component)
		end()
	}
}

func (r *round) apiKilled(member string) (heal func()) {
	return r.signalled(member, member+"-apiserver", "kill", "restart")
}

func (r *round) apiStopped(member string) (heal func()) {
	return r.signalled(member, member+"-apiserver", "stop", "cont")
}

func (r *round) hubKilled(string) (heal func()) {
	return r.catchingUp(r.backToWork(r.signalled(hubName, "hub-apiserver", "kill", "restart")), hubName)
}

func (r *round) hubStopped(string) (heal func()) {
	return r.catchingUp(r.backToWork(r.signalled(hubName, "hub-apiserver", "stop", "cont")), hubName)
}

// catchingUp is a heal after which caches come back by client-go's back-off: after as
// long as they were away.
func (r *round) catchingUp(heal func(), subjects ...string) func() {
	began := time.Now()
	return func() {
		heal()
		now := time.Now()
		later := now.Add(min(now.Sub(began)+time.Second, lastBackOff))
		r.views.tell(func(w *model.World) {
			for _, s := range subjects {
				w.Outage(model.Subject(s), 0, now)(later)
			}
		})
	}
}

// lastBackOff of caches: a hub that is away for longer loses its lease, and begins
// anew.
const lastBackOff = 15 * time.Second

func (r *round) managerKilled(string) (heal func()) {
	return r.backToWork(r.signalled(hubName, hubManager, "kill", "restart"))
}

func (r *round) managerStopped(string) (heal func()) {
	return r.backToWork(r.signalled(hubName, hubManager, "stop", "cont"))
}

// etcdRestarted ends the storage of the whole fleet for a moment.
func (r *round) etcdRestarted(string) (heal func()) {
	ends := []func(){r.outage(hubName, 0)}
	for _, name := range r.names() {
		ends = append(ends, r.outage(name, 0))
	}
	r.sandbox("restart", "etcd")
	for _, c := range r.f.clusters() {
		if !r.broken(c.name) {
			r.within(c.name+" is ready", patience, c.ready)
		}
	}
	for _, end := range ends[1:] {
		end()
	}
	return r.catchingUp(r.backToWork(ends[0]), append(r.names(), hubName)...)
}

// backToWork is a heal after which a manager works: one that has lost its lease
// ends, and whoever runs it starts it again.
func (r *round) backToWork(heal func()) func() {
	return func() {
		end := r.outage(hubName, 0)
		defer end()
		heal()
		r.within("the hub is ready", patience, r.f.hub.ready)
		healed := time.Now()
		r.within("a manager works", patience, func(ctx context.Context) error {
			state, err := r.f.managerState(ctx)
			if err != nil {
				return err
			}
			if state == "dead" {
				r.journal.note("the manager has ended, and is started again")
				if err := r.f.sandbox(ctx, "restart", hubManager); err != nil {
					return err
				}
			}
			return r.leads(ctx, healed)
		})
	}
}

// leads says whether a manager has renewed its lease after a point in time.
func (r *round) leads(ctx context.Context, after time.Time) error {
	lease := newLease()
	if err := r.f.hub.Get(ctx, client.ObjectKeyFromObject(lease), lease); err != nil {
		return err
	}
	if lease.Spec.RenewTime == nil || !lease.Spec.RenewTime.After(after) {
		return fmt.Errorf("nobody has renewed the lease since %s", after)
	}
	return nil
}

// serviceMadeAgain deletes the hub's Service and makes it again.
func (r *round) serviceMadeAgain(string) (heal func()) {
	name := r.service()
	// Meanwhile nothing has to happen to endpoints, and so nothing may.
	end := r.outage(string(model.SubjectOf(model.Service(name))), 0)
	r.deleteService(name)
	return func() {
		r.createService(name)
		end()
	}
}

// tokenRenewed renews a member's token while all goes on. Nothing may come of it.
func (r *round) tokenRenewed(member string) (heal func()) {
	if r.broken(hubName) {
		return nil
	}
	r.join(member)
	return func() {}
}

// tokenRevoked takes the hub's token away in the member, and gives it another.
func (r *round) tokenRevoked(member string) (heal func()) {
	end := r.outage(member, 0)
	r.do(nothing, func(ctx context.Context) error {
		return r.f.member(member).DeleteAllOf(ctx, &corev1.Secret{}, client.InNamespace(clusterv1alpha1.SystemNamespace),
			client.MatchingLabels{"karmada.io/system": "true"})
	})
	return func() {
		r.healTarget(hubName)
		r.join(member)
		end()
	}
}

// join joins a member, or renews its token.
func (r *round) join(member string) {
	r.t.Helper()
	if err := r.f.ctl(r.quiet(), "join", member); err != nil {
		r.fail("join of %s: %v", member, err)
	}
}

// unjoined has a member leave while all goes on, and come back some time later.
func (r *round) unjoined(member string) (heal func()) {
	if r.broken(hubName) {
		return nil
	}
	left := make(chan error, 1)
	under := r.setMember(member, model.Moving)
	go func() { left <- r.f.ctl(r.quiet(), "unjoin", member, "--wait-timeout", unjoinLimit.String()) }()
	return func() {
		r.healTarget(hubName)
		if err := <-left; err != nil {
			r.fail("unjoin of %s: %v", member, err)
			return
		}
		under()
		r.setMember(member, model.Out)()
		r.checkLeft(member)
		r.broke = append(r.broke, &fault{name: "away", target: member, left: 2 + r.rng.IntN(6), heal: func() {
			r.healTarget(hubName)
			under := r.setMember(member, model.Moving)
			r.join(member)
			under()
			r.setMember(member, model.In)()
		}})
	}
}

// setMember tells the model that a member joins or leaves from now on, until done
// is called.
func (r *round) setMember(member string, is model.Membership) (done func()) {
	d := &model.Deed{Began: time.Now()}
	r.views.tell(func(w *model.World) { w.SetMember(model.Member(member), is, d) })
	return func() { r.views.tell(func(*model.World) { d.Ended = time.Now() }) }
}

// checkLeft sees that a member that has left has nothing of ours, and the hub
// nothing of it.
func (r *round) checkLeft(member string) {
	lines, err := r.heldBy(r.quiet(), r.f.member(member))
	switch {
	case err != nil:
		r.fail("reading what %s holds: %v", member, err)
	case len(lines) > 0:
		r.fail("%s has left, and must hold nothing of ours; it holds %v", member, lines)
	}
	cluster := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: member}}
	if err := r.f.hub.Get(r.quiet(), client.ObjectKeyFromObject(cluster), cluster); !apierrors.IsNotFound(err) {
		r.fail("%s has left, and its Cluster is there (%v)", member, err)
	}
}
