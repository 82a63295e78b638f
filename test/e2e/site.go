package e2e

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	networkingv1alpha1 "github.com/namesake-io/namesake/api/networking/v1alpha1"
)

const (
	// patience is how long anything may take that no bound is set for. The
	// machine may be busy with other things.
	patience = 45 * time.Second
	// soon is what a user calls "within seconds".
	soon = 5 * time.Second
	// interval between two looks.
	interval = 25 * time.Millisecond
)

// skipNamespace on a hub's namespace keeps it out of members.
const skipNamespace = "namespace.karmada.io/skip-auto-propagation"

// addresses counts pods, so that each has an address of its own.
var addresses atomic.Uint32

// newAddress returns an address that no other endpoint of the tests has.
func newAddress() string {
	n := addresses.Add(1)
	return fmt.Sprintf("198.18.%d.%d", n/250, n%250+1)
}

// site is a namespace of one test, on the hub and in the members.
type site struct {
	*fleet
	t  *testing.T
	ns string
}

// newSite makes a namespace on the hub, from where it comes into the members.
func (f *fleet) newSite(t *testing.T, labels map[string]string) *site {
	t.Helper()
	name := strings.NewReplacer("/", "-", "_", "-").Replace(strings.ToLower(t.Name()))
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: name[:min(len(name), 50)] + "-", Labels: labels}}
	if err := f.hub.Create(t.Context(), ns); err != nil {
		t.Fatal(err)
	}
	s := &site{fleet: f, t: t, ns: ns.Name}
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(s.describe())
		}
		s.clear()
	})
	return s
}

// clear takes back every wish, so that no later test pays for it: a member that
// joins is given all services that there are. What a test has broken may keep one
// for a while.
func (s *site) clear() {
	ctx := context.WithoutCancel(s.t.Context())
	if err := s.hub.DeleteAllOf(ctx, &networkingv1alpha1.MultiClusterService{}, client.InNamespace(s.ns)); err != nil {
		s.t.Logf("taking the wishes of %s back: %v", s.ns, err)
		return
	}
	err := wait.PollUntilContextTimeout(ctx, interval, patience, true, func(ctx context.Context) (bool, error) {
		left := &networkingv1alpha1.MultiClusterServiceList{}
		err := s.hub.List(ctx, left, client.InNamespace(s.ns))
		return err == nil && len(left.Items) == 0, nil
	})
	if err != nil {
		s.t.Logf("wishes of %s are left after %s", s.ns, patience)
	}
}

// within waits until try succeeds, and fails the test with its last error.
func within(t *testing.T, limit time.Duration, what string, try func(context.Context) error) {
	t.Helper()
	var last error
	err := wait.PollUntilContextTimeout(context.WithoutCancel(t.Context()), interval, limit, true, func(ctx context.Context) (bool, error) {
		err := try(ctx)
		if err != nil && ctx.Err() == nil || last == nil {
			last = err
		}
		return err == nil, nil
	})
	if err != nil {
		t.Fatalf("%s: not so after %s: %v", what, limit, last)
	}
}

// eventually waits for as long as anything may take.
func (s *site) eventually(what string, try func(context.Context) error) {
	s.t.Helper()
	within(s.t, patience, what, try)
}

// must fails the test on an error.
func (s *site) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

// get reads an object of the namespace and returns it.
func get[T client.Object](ctx context.Context, s *site, c *cluster, name string, obj T) (T, error) {
	err := c.Get(ctx, client.ObjectKey{Namespace: s.ns, Name: name}, obj)
	return obj, err
}

// meta of an object of the site.
func (s *site) meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: s.ns, Name: name}
}

// newService returns a Service that selects app=<name>, port http 80 to 8080.
func (s *site) newService(name string, change ...func(*corev1.Service)) *corev1.Service {
	svc := &corev1.Service{
		ObjectMeta: s.meta(name),
		Spec: corev1.ServiceSpec{
			Selector: map[string]string{"app": name},
			Ports:    []corev1.ServicePort{{Name: "http", Port: 80}},
		},
	}
	for _, c := range change {
		c(svc)
	}
	return svc
}

// createService makes a Service on the hub.
func (s *site) createService(name string, change ...func(*corev1.Service)) *corev1.Service {
	s.t.Helper()
	svc := s.newService(name, change...)
	s.must(s.hub.Create(s.t.Context(), svc))
	return svc
}

// selectorless takes the selector off a Service: its slices are made by hand.
func selectorless(svc *corev1.Service) { svc.Spec.Selector = nil }

// headless takes the address off a Service.
func headless(svc *corev1.Service) { svc.Spec.ClusterIP = corev1.ClusterIPNone }

// createMCS makes a MultiClusterService on the hub: all to all, if not changed.
func (s *site) createMCS(name string, change ...func(*networkingv1alpha1.MultiClusterService)) *networkingv1alpha1.MultiClusterService {
	s.t.Helper()
	mcs := &networkingv1alpha1.MultiClusterService{
		ObjectMeta: s.meta(name),
		Spec:       networkingv1alpha1.MultiClusterServiceSpec{Types: []networkingv1alpha1.ExposureType{networkingv1alpha1.ExposureTypeCrossCluster}},
	}
	for _, c := range change {
		c(mcs)
	}
	s.must(s.hub.Create(s.t.Context(), mcs))
	return mcs
}

// from and to name the clusters of a wish.
func from(names ...string) func(*networkingv1alpha1.MultiClusterService) {
	return func(mcs *networkingv1alpha1.MultiClusterService) { mcs.Spec.ProviderClusters = selectors(names) }
}

func to(names ...string) func(*networkingv1alpha1.MultiClusterService) {
	return func(mcs *networkingv1alpha1.MultiClusterService) { mcs.Spec.ConsumerClusters = selectors(names) }
}

func selectors(names []string) []networkingv1alpha1.ClusterSelector {
	var out []networkingv1alpha1.ClusterSelector
	for _, name := range names {
		out = append(out, networkingv1alpha1.ClusterSelector{Name: networkingv1alpha1.ClusterName(name)})
	}
	return out
}

// changeMCS changes the wish.
func (s *site) changeMCS(name string, change ...func(*networkingv1alpha1.MultiClusterService)) {
	s.t.Helper()
	mcs := &networkingv1alpha1.MultiClusterService{ObjectMeta: s.meta(name)}
	s.change(s.hub, mcs, func() {
		for _, c := range change {
			c(mcs)
		}
	})
}

// change reads an object, changes it, and writes what differs.
func (s *site) change(c *cluster, obj client.Object, change func()) {
	s.t.Helper()
	ctx := s.t.Context()
	s.must(c.Get(ctx, client.ObjectKeyFromObject(obj), obj))
	before, ok := obj.DeepCopyObject().(client.Object)
	if !ok {
		s.t.Fatalf("%T is no object", obj)
	}
	change()
	s.must(c.Patch(ctx, obj, client.MergeFrom(before)))
}

// runPods makes pods of a service in a member, and makes them ready: the real
// controller there makes slices of them.
func (s *site) runPods(member, service string, count int) []string {
	s.t.Helper()
	var names []string
	for range count {
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: s.ns, GenerateName: service + "-", Labels: map[string]string{"app": service}},
			Spec:       corev1.PodSpec{NodeName: nodeName, Containers: []corev1.Container{{Name: "app", Image: "none"}}},
		}
		// The namespace and its account may still be on their way.
		s.eventually("a pod can be made in "+member, func(ctx context.Context) error {
			return s.members[member].Create(ctx, pod)
		})
		address := newAddress()
		pod.Status = corev1.PodStatus{
			Phase: corev1.PodRunning, PodIP: address, PodIPs: []corev1.PodIP{{IP: address}},
			Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
		}
		s.must(s.members[member].Status().Update(s.t.Context(), pod))
		names = append(names, pod.Name)
	}
	return names
}

// newSlice returns a slice as a person makes it.
func (s *site) newSlice(service, name string, endpoints ...string) *discoveryv1.EndpointSlice {
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.ns, Name: name, Labels: map[string]string{
			discoveryv1.LabelServiceName: service, discoveryv1.LabelManagedBy: "e2e",
		}},
		AddressType: discoveryv1.AddressTypeIPv4,
		Ports:       []discoveryv1.EndpointPort{{Name: ptr.To("http"), Port: ptr.To[int32](8080), Protocol: ptr.To(corev1.ProtocolTCP)}},
	}
	for _, address := range endpoints {
		slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{
			Addresses: []string{address}, Conditions: discoveryv1.EndpointConditions{Ready: ptr.To(true)},
		})
	}
	return slice
}

// putSlice makes a slice with one endpoint in a member.
func (s *site) putSlice(member, service, name string) *discoveryv1.EndpointSlice {
	s.t.Helper()
	var slice *discoveryv1.EndpointSlice
	s.eventually("a slice can be made in "+member, func(ctx context.Context) error {
		slice = s.newSlice(service, name, newAddress())
		return s.members[member].Create(ctx, slice)
	})
	return slice
}

// changeSlice gives a slice another address.
func (s *site) changeSlice(member, name string) (address string) {
	s.t.Helper()
	slice := &discoveryv1.EndpointSlice{ObjectMeta: s.meta(name)}
	address = newAddress()
	s.change(s.members[member], slice, func() { slice.Endpoints[0].Addresses = []string{address} })
	return address
}

// condition returns a condition of a MultiClusterService, once it is about the
// object as it is now.
func (s *site) condition(ctx context.Context, name, kind string) (*metav1.Condition, error) {
	mcs, err := get(ctx, s, s.hub, name, &networkingv1alpha1.MultiClusterService{})
	if err != nil {
		return nil, err
	}
	c := meta.FindStatusCondition(mcs.Status.Conditions, kind)
	if c == nil {
		return nil, fmt.Errorf("no condition %s", kind)
	}
	if c.ObservedGeneration != mcs.Generation {
		return nil, fmt.Errorf("condition %s is of generation %d, not %d", kind, c.ObservedGeneration, mcs.Generation)
	}
	return c, nil
}

// waitCondition waits until a condition has this reason, or any if it is empty,
// in words that have a part.
func (s *site) waitCondition(name, kind, reason, part string) {
	s.t.Helper()
	s.eventually(fmt.Sprintf("condition %s of %s", kind, name), func(ctx context.Context) error {
		c, err := s.condition(ctx, name, kind)
		if err != nil {
			return err
		}
		if reason != "" && c.Reason != reason || !strings.Contains(c.Message, part) {
			return fmt.Errorf("%s, %s: %q, want %s and %q", c.Status, c.Reason, c.Message, reason, part)
		}
		return nil
	})
}

// waitReady waits until the MultiClusterService says that all is well.
func (s *site) waitReady(name string) {
	s.t.Helper()
	s.waitCondition(name, networkingv1alpha1.ConditionReady, networkingv1alpha1.ReasonAllReady, "")
}

// waitEvent waits for an event about the MultiClusterService.
func (s *site) waitEvent(uid types.UID, reason, part string) {
	s.t.Helper()
	s.eventually("event "+reason, func(ctx context.Context) error {
		list := &corev1.EventList{}
		if err := s.hub.List(ctx, list, client.InNamespace(s.ns)); err != nil {
			return err
		}
		var seen []string
		for i := range list.Items {
			e := &list.Items[i]
			if e.InvolvedObject.UID == uid && e.Reason == reason && strings.Contains(e.Message, part) {
				return nil
			}
			seen = append(seen, e.Reason+": "+e.Message)
		}
		return fmt.Errorf("there are only %q", seen)
	})
}

// describe says what stands where, for a person who looks why a test failed.
func (s *site) describe() string {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(s.t.Context()), soon)
	defer cancel()
	var out strings.Builder
	wishes := &networkingv1alpha1.MultiClusterServiceList{}
	err := s.hub.List(ctx, wishes, client.InNamespace(s.ns))
	for i := range wishes.Items {
		w := &wishes.Items[i]
		text, encodeErr := yaml.Marshal(w.Status)
		err = errors.Join(err, encodeErr)
		fmt.Fprintf(&out, "MultiClusterService %s/%s, generation %d, deleted %v, finalizers %v\n%s", w.Namespace, w.Name, w.Generation, w.DeletionTimestamp, w.Finalizers, text)
	}
	for _, name := range s.names() {
		list := &discoveryv1.EndpointSliceList{}
		err = errors.Join(err, s.members[name].List(ctx, list, client.InNamespace(s.ns)))
		for i := range list.Items {
			slice := &list.Items[i]
			fmt.Fprintf(&out, "%s: slice %s %v %v %v\n", name, slice.Name, slice.Labels, slice.Annotations, endpointsOf(slice))
		}
	}
	if err != nil {
		fmt.Fprintf(&out, "and %v\n", err)
	}
	return out.String()
}
