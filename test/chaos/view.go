package chaos

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/namesake-io/namesake/test/chaos/model"
)

// judgeInterval is how often what stands is judged though nothing happens: what
// was right becomes wrong when its time is over.
const judgeInterval = 200 * time.Millisecond

// ownPrefix begins the names of slices that the test makes, so that all others are
// somebody's who dispatched them, whatever marks they bear.
const ownPrefix = "own-"

// views is what every member holds, as its watches tell, and the model that judges
// each event of them.
type views struct {
	journal *journal

	mu      sync.Mutex
	world   *model.World
	members map[model.Member]*view
}

// view is what one member holds.
type view struct {
	slices   map[string]*discoveryv1.EndpointSlice
	services map[string]bool
	// listed is true of what has been listed once.
	listed struct{ slices, services bool }
}

func newViews(j *journal, world *model.World, members []*cluster) *views {
	v := &views{journal: j, world: world, members: map[model.Member]*view{}}
	for _, m := range members {
		v.members[model.Member(m.name)] = &view{slices: map[string]*discoveryv1.EndpointSlice{}, services: map[string]bool{}}
	}
	return v
}

// tell tells the model of something.
func (v *views) tell(what func(*model.World)) {
	v.mu.Lock()
	defer v.mu.Unlock()
	what(v.world)
}

// watch keeps the views until the context ends.
func (v *views) watch(ctx context.Context, ns string, members []*cluster) {
	var done sync.WaitGroup
	for _, m := range members {
		done.Go(func() { v.follow(ctx, m, ns, func() client.ObjectList { return &discoveryv1.EndpointSliceList{} }) })
		done.Go(func() { v.follow(ctx, m, ns, func() client.ObjectList { return &corev1.ServiceList{} }) })
	}
	done.Go(func() {
		for tick := time.NewTicker(judgeInterval); ; {
			select {
			case <-ctx.Done():
				tick.Stop()
				return
			case <-tick.C:
				v.judgeAll()
			}
		}
	})
	done.Wait()
}

// follow lists and watches a kind, again and again: the API server may go.
func (v *views) follow(ctx context.Context, c *cluster, ns string, newList func() client.ObjectList) {
	retry := time.NewTicker(interval)
	defer retry.Stop()
	for ctx.Err() == nil {
		list := newList()
		if err := v.list(ctx, c, ns, list); err == nil {
			w, err := c.Watch(ctx, list, client.InNamespace(ns), &client.ListOptions{
				Raw: &metav1.ListOptions{ResourceVersion: list.GetResourceVersion()},
			})
			if err == nil {
				v.take(c.name, w)
			}
		}
		select {
		case <-ctx.Done():
		case <-retry.C:
		}
	}
}

// list reads everything of a kind and takes in what differs.
func (v *views) list(ctx context.Context, c *cluster, ns string, list client.ObjectList) error {
	limited, cancel := context.WithTimeout(ctx, soon)
	defer cancel()
	if err := c.List(limited, list, client.InNamespace(ns)); err != nil {
		return err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	m := v.members[model.Member(c.name)]
	switch l := list.(type) {
	case *discoveryv1.EndpointSliceList:
		before := m.slices
		m.slices = map[string]*discoveryv1.EndpointSlice{}
		for i := range l.Items {
			if slice := &l.Items[i]; !strings.HasPrefix(slice.Name, ownPrefix) {
				m.slices[slice.Name] = slice
			}
		}
		m.listed.slices = true
		v.judgeSlices(model.Member(c.name), slices.AppendSeq(slices.Collect(maps.Values(before)), maps.Values(m.slices)), time.Now())
	case *corev1.ServiceList:
		m.services = map[string]bool{}
		for i := range l.Items {
			m.services[l.Items[i].Name] = true
		}
		m.listed.services = true
	}
	return nil
}

// take takes in events until there are none.
func (v *views) take(member string, w watch.Interface) {
	defer w.Stop()
	for e := range w.ResultChan() {
		obj, ok := e.Object.(client.Object)
		if e.Type == watch.Error || !ok {
			return
		}
		if e.Type != watch.Bookmark {
			v.happened(member, e.Type, obj)
		}
	}
}

// happened takes in one event and judges what it changed.
func (v *views) happened(name string, kind watch.EventType, obj client.Object) {
	v.mu.Lock()
	defer v.mu.Unlock()
	member, now := model.Member(name), time.Now()
	switch o := obj.(type) {
	case *discoveryv1.EndpointSlice:
		if strings.HasPrefix(o.Name, ownPrefix) {
			return
		}
		if kind == watch.Deleted {
			o = nil
		}
		v.setSlice(member, obj.GetName(), o, now)
	case *corev1.Service:
		v.setService(member, o.Name, kind != watch.Deleted, now)
	}
}

// setSlice takes in a slice, nil when it is gone. The lock is held.
func (v *views) setSlice(member model.Member, name string, slice *discoveryv1.EndpointSlice, now time.Time) {
	m := v.members[member]
	before := m.slices[name]
	if slice == nil {
		delete(m.slices, name)
	} else {
		m.slices[name] = slice
	}
	v.judgeSlices(member, []*discoveryv1.EndpointSlice{before, slice}, now)
}

// judgeSlices judges what was or is in slices, nil among them. The lock is held.
func (v *views) judgeSlices(member model.Member, all []*discoveryv1.EndpointSlice, now time.Time) {
	services := map[model.Service]bool{}
	addresses := map[model.Address]bool{}
	for _, s := range all {
		if s == nil {
			continue
		}
		services[serviceOf(s)] = true
		for i := range s.Endpoints {
			addresses[addressOf(&s.Endpoints[i])] = true
		}
	}
	for service := range services {
		for address := range addresses {
			v.judge(member, service, address, now)
		}
	}
}

// setService takes in that a Service stands or not. The lock is held.
func (v *views) setService(member model.Member, name string, stands bool, now time.Time) {
	m := v.members[member]
	if m.services[name] = stands; !stands {
		delete(m.services, name)
	}
	if wrong := v.world.JudgeService(member, model.Service(name), stands, now); wrong != "" {
		v.journal.find(now, wrong)
	}
}

// judgeAll judges everything that stands, and everything that does not.
func (v *views) judgeAll() {
	v.mu.Lock()
	defer v.mu.Unlock()
	now := time.Now()
	for member, m := range v.members {
		if m.listed.slices {
			for service, address := range v.world.Endpoints() {
				v.judge(member, service, address, now)
			}
		}
		if m.listed.services {
			for _, service := range v.world.Services() {
				if wrong := v.world.JudgeService(member, service, m.services[string(service)], now); wrong != "" {
					v.journal.find(now, wrong)
				}
			}
		}
	}
}

// judge judges one endpoint of a service in a member. The lock is held.
func (v *views) judge(member model.Member, service model.Service, address model.Address, now time.Time) {
	if service == "" {
		return // of no service, it is nobody's
	}
	seen := v.members[member].sight(service, address)
	if wrong := v.world.JudgeEndpoint(member, service, address, seen, now); wrong != "" {
		v.journal.find(now, wrong)
	}
}

// sight returns how an endpoint of a service is seen: in the best state that any
// slice has it in.
func (m *view) sight(service model.Service, address model.Address) model.Sight {
	out := model.Sight{State: model.Absent}
	for _, slice := range m.slices {
		if serviceOf(slice) != service {
			continue
		}
		for i := range slice.Endpoints {
			e := &slice.Endpoints[i]
			if addressOf(e) != address || out.State == model.Ready {
				continue
			}
			out = model.Sight{State: stateOf(e), Ports: portsOf(slice)}
		}
	}
	return out
}

// dispatched returns the slices that a member holds of others, by name, sorted.
func (v *views) dispatched(member string) []*discoveryv1.EndpointSlice {
	v.mu.Lock()
	defer v.mu.Unlock()
	m := v.members[model.Member(member)].slices
	out := make([]*discoveryv1.EndpointSlice, 0, len(m))
	for _, name := range slices.Sorted(maps.Keys(m)) {
		out = append(out, m[name])
	}
	return out
}

func serviceOf(slice *discoveryv1.EndpointSlice) model.Service {
	return model.Service(slice.Labels[discoveryv1.LabelServiceName])
}

func addressOf(e *discoveryv1.Endpoint) model.Address { return model.Address(e.Addresses[0]) }

func stateOf(e *discoveryv1.Endpoint) model.State {
	if ptr.Deref(e.Conditions.Ready, true) {
		return model.Ready
	}
	return model.NotReady
}

// portsOf returns the names of a slice's ports, sorted.
func portsOf(slice *discoveryv1.EndpointSlice) string {
	var names []string
	for _, p := range slice.Ports {
		names = append(names, ptr.Deref(p.Name, ""))
	}
	slices.Sort(names)
	return strings.Join(names, ",")
}
