package chaos

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/namesake-io/namesake/api/cluster/v1alpha1"
	networkingv1alpha1 "github.com/namesake-io/namesake/api/networking/v1alpha1"
	workv1alpha1 "github.com/namesake-io/namesake/api/work/v1alpha1"
	workv1alpha2 "github.com/namesake-io/namesake/api/work/v1alpha2"
	"github.com/namesake-io/namesake/test/chaos/model"
)

// settle waits until everything is exactly as it should be, and no more.
func (r *round) settle() {
	began := time.Now()
	var last error
	look := func(ctx context.Context) error {
		err := r.exact(ctx)
		if err != nil {
			last = err
		}
		return err
	}
	if err := r.poll(settleLimit, look); err != nil {
		r.fail("everything has healed for %s, and this is not as it should be: %v", settleLimit, err)
		return
	}
	r.journal.note("settled after %s, the last thing was: %v", time.Since(began).Round(time.Millisecond), last)
}

// exact compares what is with what should be, everywhere.
func (r *round) exact(ctx context.Context) error {
	for _, m := range r.f.members {
		got, err := r.heldBy(ctx, m)
		if err != nil {
			return err
		}
		if diff := cmp.Diff(r.wantedIn(m.name), got); diff != "" {
			return fmt.Errorf("%s holds of ours (- wanted, + found):\n%s", m.name, diff)
		}
	}
	got, err := r.heldByHub(ctx)
	if err != nil {
		return err
	}
	if diff := cmp.Diff(r.wantedOnHub(), got); diff != "" {
		return fmt.Errorf("the hub holds (- wanted, + found):\n%s", diff)
	}
	return r.told(ctx)
}

// wantedIn lists what should stand in a member.
func (r *round) wantedIn(consumer string) []string {
	var out []string
	r.views.tell(func(w *model.World) {
		for _, provider := range r.names() {
			for _, s := range r.own[provider] {
				if w.Gives(model.Service(s.service), model.Member(provider), model.Member(consumer)) {
					ports := bothPorts
					if p := r.wishes[s.service].ports; len(p) > 0 {
						ports = strings.Join(p, ",")
					}
					out = append(out, sliceLine(provider+"-"+s.name, r.object(s), ports))
				}
			}
		}
		for i := range serviceCount {
			name := fmt.Sprintf("svc%d", i)
			if w.Stands(model.Service(name), model.Member(consumer)) {
				ports := []string{"admin", "http"}
				// Who consumes nothing sees what it provides as it is.
				if p := r.wishes[name].ports; len(p) > 0 && w.Consumes(model.Service(name), model.Member(consumer)) {
					ports = p
				}
				out = append(out, fmt.Sprintf("Service %s %v", name, ports))
			}
		}
	})
	slices.Sort(out)
	return out
}

func sliceLine(name string, slice *discoveryv1.EndpointSlice, ports string) string {
	var endpoints []string
	for i := range slice.Endpoints {
		e := &slice.Endpoints[i]
		endpoints = append(endpoints, fmt.Sprintf("%s %s", addressOf(e), stateOf(e)))
	}
	slices.Sort(endpoints)
	return fmt.Sprintf("slice %s of %s, ports %s: %s", name, serviceOf(slice), ports, strings.Join(endpoints, ", "))
}

// heldBy lists what stands in a member and is not its own.
func (r *round) heldBy(ctx context.Context, c *cluster) ([]string, error) {
	var out []string
	list := &discoveryv1.EndpointSliceList{}
	if err := c.List(ctx, list, client.InNamespace(r.ns)); err != nil {
		return nil, err
	}
	for i := range list.Items {
		if s := &list.Items[i]; !strings.HasPrefix(s.Name, ownPrefix) {
			out = append(out, sliceLine(s.Name, s, portsOf(s)))
		}
	}
	services := &corev1.ServiceList{}
	if err := c.List(ctx, services, client.InNamespace(r.ns)); err != nil {
		return nil, err
	}
	for i := range services.Items {
		s := &services.Items[i]
		var ports []string
		for _, p := range s.Spec.Ports {
			ports = append(ports, p.Name)
			if p.Port != portNumbers[p.Name] {
				ports = append(ports, fmt.Sprint(p.Port))
			}
		}
		slices.Sort(ports)
		out = append(out, fmt.Sprintf("Service %s %v", s.Name, ports))
	}
	slices.Sort(out)
	return out, nil
}

// wantedOnHub lists what the hub should hold of the round.
func (r *round) wantedOnHub() []string {
	var out []string
	r.views.tell(func(w *model.World) {
		for _, member := range r.names() {
			out = append(out, "Work for Namespace "+r.ns+" of "+member)
			for _, s := range r.own[member] {
				if w.Collects(model.Service(s.service), model.Member(member)) {
					out = append(out, fmt.Sprintf("Work for EndpointSlice %s of %s, remembers", s.name, member))
				}
			}
			for _, name := range r.wished() {
				if w.Stands(model.Service(name), model.Member(member)) {
					out = append(out, fmt.Sprintf("Work for Service %s of %s", name, member))
				}
			}
		}
		for _, name := range r.wished() {
			out = append(out, "MultiClusterService "+name, "ResourceBinding "+name+"-service")
		}
	})
	slices.Sort(out)
	return out
}

// heldByHub lists what the hub holds of the round.
func (r *round) heldByHub(ctx context.Context) ([]string, error) {
	var out []string
	works := &workv1alpha1.WorkList{}
	if err := r.f.hub.List(ctx, works); err != nil {
		return nil, err
	}
	for i := range works.Items {
		line, ours, err := r.workLine(&works.Items[i])
		if err != nil {
			return nil, err
		}
		if ours {
			out = append(out, line)
		}
	}
	wishes, bindings := &networkingv1alpha1.MultiClusterServiceList{}, &workv1alpha2.ResourceBindingList{}
	for prefix, list := range map[string]client.ObjectList{"MultiClusterService ": wishes, "ResourceBinding ": bindings} {
		if err := r.f.hub.List(ctx, list, client.InNamespace(r.ns)); err != nil {
			return nil, err
		}
		items, err := meta.ExtractList(list)
		if err != nil {
			return nil, err
		}
		for _, item := range items {
			obj, err := meta.Accessor(item)
			if err != nil {
				return nil, err
			}
			out = append(out, prefix+obj.GetName())
		}
	}
	slices.Sort(out)
	return out, nil
}

// workLine describes a Work that holds something of the round's namespace.
func (r *round) workLine(work *workv1alpha1.Work) (line string, ours bool, err error) {
	member := strings.TrimPrefix(work.Namespace, "karmada-es-")
	var what []string
	for _, m := range work.Spec.Workload.Manifests {
		obj := &metav1.PartialObjectMetadata{}
		if err := json.Unmarshal(m.Raw, obj); err != nil {
			return "", false, fmt.Errorf("reading Work %s/%s: %w", work.Namespace, work.Name, err)
		}
		ours = ours || obj.Namespace == r.ns || obj.Kind == "Namespace" && obj.Name == r.ns
		what = append(what, obj.Kind+" "+obj.Name)
	}
	line = "Work for " + strings.Join(what, " and ") + " of " + member
	if work.Spec.SuspendDispatching != nil && *work.Spec.SuspendDispatching {
		line += ", remembers"
	}
	return line, ours, nil
}

// told sees that conditions say that all is well.
func (r *round) told(ctx context.Context) error {
	wishes := &networkingv1alpha1.MultiClusterServiceList{}
	if err := r.f.hub.List(ctx, wishes, client.InNamespace(r.ns)); err != nil {
		return err
	}
	for i := range wishes.Items {
		w := &wishes.Items[i]
		ready := meta.FindStatusCondition(w.Status.Conditions, networkingv1alpha1.ConditionReady)
		if ready == nil || ready.Status != metav1.ConditionTrue || ready.ObservedGeneration != w.Generation {
			return fmt.Errorf("MultiClusterService %s of generation %d says %+v", w.Name, w.Generation, ready)
		}
	}
	clusters := &clusterv1alpha1.ClusterList{}
	if err := r.f.hub.List(ctx, clusters); err != nil {
		return err
	}
	for i := range clusters.Items {
		c := &clusters.Items[i]
		if !meta.IsStatusConditionTrue(c.Status.Conditions, clusterv1alpha1.ConditionReady) {
			return fmt.Errorf("cluster %s says %+v", c.Name, c.Status.Conditions)
		}
	}
	return nil
}

func newLease() *coordinationv1.Lease {
	return &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: clusterv1alpha1.SystemNamespace, Name: "namesake-controller-manager"}}
}

// rest waits until nothing is written any more, and sees that it stays so.
func (r *round) rest() {
	// A cache of the hub that lost its API server twice in a row comes back when its
	// back-off has passed. Until then nothing is written, and then what is late.
	if err := r.poll(quietLimit, func(ctx context.Context) error { return r.silentFor(ctx, comeback) }); err != nil {
		r.fail("all is as it should be, and after %s it is still written: %v", quietLimit, err)
		return
	}
	if err := r.silentFor(r.t.Context(), r.opts.rest); err != nil && r.t.Context().Err() == nil {
		r.fail("a write at rest, within %s: %v", r.opts.rest, err)
	}
}

// silentFor returns the writes that API servers get in a time, leases left out.
func (r *round) silentFor(ctx context.Context, d time.Duration) error {
	before, err := r.writes(ctx)
	if err != nil {
		return err
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
	}
	after, err := r.writes(ctx)
	if err != nil {
		return err
	}
	var more []string
	for kind, count := range after {
		if count > before[kind] {
			more = append(more, fmt.Sprintf("%s: %g", kind, count-before[kind]))
		}
	}
	if len(more) > 0 {
		slices.Sort(more)
		return fmt.Errorf("%s", strings.Join(more, "; "))
	}
	return nil
}
