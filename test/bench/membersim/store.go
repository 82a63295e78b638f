package membersim

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/apimachinery/pkg/watch"
)

// history is how many changes of a member can be watched from in hindsight.
const history = 4096

// object is one of the kinds that are served.
type object interface {
	runtime.Object
	metav1.Object
}

// change is what happened to an object. The object is not to be changed.
type change struct {
	kind    watch.EventType
	object  object
	was     object
	version uint64
}

// Member is one simulated member.
type Member struct {
	// latency of each answer, and whether there is none at all.
	latency atomic.Int64
	down    atomic.Bool

	mu      sync.Mutex
	version uint64
	objects map[string]map[types.NamespacedName]object
	changes map[string][]change
	// forgotten is the version up to which changes of a resource are not known
	// any more.
	forgotten map[string]uint64
	// news is closed and replaced with every change.
	news chan struct{}
	seen func(resource string, verb watch.EventType, obj runtime.Object)
}

// newMember returns a member with the namespace default.
func newMember() *Member {
	m := &Member{
		version: 1, news: make(chan struct{}), changes: map[string][]change{}, forgotten: map[string]uint64{},
		objects: map[string]map[types.NamespacedName]object{},
		seen:    func(string, watch.EventType, runtime.Object) {},
	}
	for _, r := range resources {
		m.objects[r.name] = map[types.NamespacedName]object{}
	}
	_, _ = m.create(namespaces, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: metav1.NamespaceDefault}}, "")
	return m
}

// SetLatency makes every answer but those of a watch take longer.
func (m *Member) SetLatency(d time.Duration) { m.latency.Store(int64(d)) }

// SetDown makes the member answer nobody, and end its watches, until it is up again.
func (m *Member) SetDown(down bool) {
	m.down.Store(down)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.tell()
}

// OnChange has a function called for every change from now on. It must be quick.
func (m *Member) OnChange(seen func(resource string, verb watch.EventType, obj runtime.Object)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.seen = seen
}

// CreateSlice makes a slice, and its namespace where it lacks, without a request.
func (m *Member) CreateSlice(slice *discoveryv1.EndpointSlice) error {
	m.mu.Lock()
	_, found := m.objects[namespaces.name][types.NamespacedName{Name: slice.Namespace}]
	m.mu.Unlock()
	if !found {
		if _, err := m.create(namespaces, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: slice.Namespace}}, ""); err != nil {
			return err
		}
	}
	_, err := m.create(endpointSlices, slice.DeepCopy(), "")
	return err
}

// ChangeSlice changes a slice without a request.
func (m *Member) ChangeSlice(key types.NamespacedName, edit func(*discoveryv1.EndpointSlice)) error {
	m.mu.Lock()
	have, ok := m.objects[endpointSlices.name][key].(*discoveryv1.EndpointSlice)
	m.mu.Unlock()
	if !ok {
		return fmt.Errorf("no slice %s", key)
	}
	slice := have.DeepCopy()
	edit(slice)
	_, err := m.update(endpointSlices, slice, "")
	return err
}

// Count returns how many objects of a resource stand.
func (m *Member) Count(resource string) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.objects[resource])
}

// tell wakes those who watch. The lock is held.
func (m *Member) tell() {
	close(m.news)
	m.news = make(chan struct{})
}

// put stores an object, or removes it, and tells. The lock is held.
func (m *Member) put(r resource, kind watch.EventType, obj, was object) {
	m.version++
	obj.SetResourceVersion(strconv.FormatUint(m.version, 10))
	key := keyOf(obj)
	if kind == watch.Deleted {
		delete(m.objects[r.name], key)
	} else {
		m.objects[r.name][key] = obj
	}
	m.changes[r.name] = append(m.changes[r.name], change{kind: kind, object: obj, was: was, version: m.version})
	if log := m.changes[r.name]; len(log) >= 2*history {
		m.forgotten[r.name] = log[history-1].version
		m.changes[r.name] = slices.Clone(log[history:])
	}
	m.tell()
	m.seen(r.name, kind, obj)
}

func keyOf(obj metav1.Object) types.NamespacedName {
	return types.NamespacedName{Namespace: obj.GetNamespace(), Name: obj.GetName()}
}

// get returns an object.
func (m *Member) get(r resource, key types.NamespacedName) (object, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	obj, found := m.objects[r.name][key]
	if !found {
		return nil, apierrors.NewNotFound(r.groupResource(), key.Name)
	}
	return obj, nil
}

// list returns the objects of a namespace, or of all, that a selector accepts,
// sorted, and the version as of which this is so.
func (m *Member) list(r resource, namespace string, selector labels.Selector) (found []object, version uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for key, obj := range m.objects[r.name] {
		if (namespace == "" || key.Namespace == namespace) && selector.Matches(labels.Set(obj.GetLabels())) {
			found = append(found, obj)
		}
	}
	slices.SortFunc(found, func(a, b object) int {
		return strings.Compare(a.GetNamespace()+"/"+a.GetName(), b.GetNamespace()+"/"+b.GetName())
	})
	return found, m.version
}

// create makes an object.
func (m *Member) create(r resource, obj object, manager string) (object, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if obj.GetName() == "" && obj.GetGenerateName() != "" {
		obj.SetName(obj.GetGenerateName() + string(uuid.NewUUID())[:5])
	}
	if r.namespaced {
		if _, found := m.objects[namespaces.name][types.NamespacedName{Name: obj.GetNamespace()}]; !found {
			return nil, apierrors.NewNotFound(namespaces.groupResource(), obj.GetNamespace())
		}
	}
	if _, found := m.objects[r.name][keyOf(obj)]; found {
		return nil, apierrors.NewAlreadyExists(r.groupResource(), obj.GetName())
	}
	if obj.GetResourceVersion() != "" {
		// Not a bad request, as one would think.
		return nil, &apierrors.StatusError{ErrStatus: metav1.Status{
			Status: metav1.StatusFailure, Code: 500, Message: "resourceVersion should not be set on objects to be created",
		}}
	}
	obj.SetUID(uuid.NewUUID())
	obj.SetCreationTimestamp(metav1.Time{Time: time.Now().Truncate(time.Second)})
	obj.SetManagedFields(managedBy(manager))
	m.complete(obj)
	m.put(r, watch.Added, obj, nil)
	return obj, nil
}

// update replaces an object.
func (m *Member) update(r resource, obj object, manager string) (object, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	have, found := m.objects[r.name][keyOf(obj)]
	switch {
	case !found:
		return nil, apierrors.NewNotFound(r.groupResource(), obj.GetName())
	case obj.GetUID() != "" && obj.GetUID() != have.GetUID():
		return nil, conflict(r, obj.GetName(), "the UID in the precondition does not match that of the object")
	case obj.GetResourceVersion() != "" && obj.GetResourceVersion() != have.GetResourceVersion():
		return nil, conflict(r, obj.GetName(), "the object has been modified; please apply your changes to the latest version and try again")
	}
	obj.SetUID(have.GetUID())
	obj.SetCreationTimestamp(have.GetCreationTimestamp())
	obj.SetResourceVersion(have.GetResourceVersion())
	obj.SetManagedFields(have.GetManagedFields())
	obj.SetGeneration(have.GetGeneration())
	m.complete(obj)
	if equality.Semantic.DeepEqual(obj, have) {
		return have, nil
	}
	if after, ok := obj.(*discoveryv1.EndpointSlice); ok {
		if before, ok := have.(*discoveryv1.EndpointSlice); ok && !sameContent(before, after) {
			obj.SetGeneration(have.GetGeneration() + 1)
		}
	}
	if manager != "" && !slices.ContainsFunc(have.GetManagedFields(), func(e metav1.ManagedFieldsEntry) bool { return e.Manager == manager }) {
		obj.SetManagedFields(append(slices.Clone(have.GetManagedFields()), managedBy(manager)...))
	}
	m.put(r, watch.Modified, obj, have)
	return obj, nil
}

// remove deletes an object.
func (m *Member) remove(r resource, key types.NamespacedName, pre *metav1.Preconditions) (object, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	have, found := m.objects[r.name][key]
	if !found {
		return nil, apierrors.NewNotFound(r.groupResource(), key.Name)
	}
	if pre != nil && pre.UID != nil && *pre.UID != have.GetUID() ||
		pre != nil && pre.ResourceVersion != nil && *pre.ResourceVersion != have.GetResourceVersion() {
		return nil, conflict(r, key.Name, "a precondition is not met")
	}
	gone, ok := have.DeepCopyObject().(object)
	if !ok {
		return nil, apierrors.NewInternalError(fmt.Errorf("%T is no object", have))
	}
	m.put(r, watch.Deleted, gone, have)
	return gone, nil
}

// conflict is the error of a write that is not about the object as it is.
func conflict(r resource, name, message string) error {
	return apierrors.NewConflict(r.groupResource(), name, fmt.Errorf("%s", message))
}

// managedBy is the account of managers, without their fields.
func managedBy(manager string) []metav1.ManagedFieldsEntry {
	if manager == "" {
		return nil
	}
	return []metav1.ManagedFieldsEntry{{Manager: manager, Operation: metav1.ManagedFieldsOperationUpdate}}
}

// sameContent says that two slices differ in nothing that makes a generation:
// labels do.
func sameContent(a, b *discoveryv1.EndpointSlice) bool {
	return equality.Semantic.DeepEqual(a.Labels, b.Labels) &&
		a.AddressType == b.AddressType && equality.Semantic.DeepEqual(a.Endpoints, b.Endpoints) && equality.Semantic.DeepEqual(a.Ports, b.Ports)
}

// complete fills in what an API server fills in. The lock is held.
func (m *Member) complete(obj object) {
	switch o := obj.(type) {
	case *discoveryv1.EndpointSlice:
		o.TypeMeta = metav1.TypeMeta{}
		if o.Generation == 0 {
			o.Generation = 1
		}
	case *corev1.Service:
		o.TypeMeta = metav1.TypeMeta{}
		if o.Spec.Type == "" {
			o.Spec.Type = corev1.ServiceTypeClusterIP
		}
		if o.Spec.SessionAffinity == "" {
			o.Spec.SessionAffinity = corev1.ServiceAffinityNone
		}
		if o.Spec.ClusterIP == "" {
			o.Spec.ClusterIP = fmt.Sprintf("10.96.%d.%d", m.version>>8&255, m.version&255)
		}
		for i := range o.Spec.Ports {
			p := &o.Spec.Ports[i]
			if p.Protocol == "" {
				p.Protocol = corev1.ProtocolTCP
			}
			if p.TargetPort.IntValue() == 0 && p.TargetPort.StrVal == "" {
				p.TargetPort.IntVal = p.Port
			}
		}
	case *corev1.Namespace:
		o.TypeMeta = metav1.TypeMeta{}
		o.Status.Phase = corev1.NamespaceActive
		if o.Labels[corev1.LabelMetadataName] == "" {
			if o.Labels == nil {
				o.Labels = map[string]string{}
			}
			o.Labels[corev1.LabelMetadataName] = o.Name
		}
	}
}
