package demo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/namesake-io/namesake/sandbox/internal/fleet"
)

// What the story makes.
const (
	namespace   = "demo"
	serviceName = "echo"
	// nodeName is a Node that nothing runs on, beside the data plane's.
	nodeName = "paper-node"

	podPort     = 8080
	servicePort = 80
)

var (
	namespaces           = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
	nodes                = schema.GroupVersionResource{Version: "v1", Resource: "nodes"}
	pods                 = schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	services             = schema.GroupVersionResource{Version: "v1", Resource: "services"}
	endpointSlices       = schema.GroupVersionResource{Group: "discovery.k8s.io", Version: "v1", Resource: "endpointslices"}
	multiClusterServices = schema.GroupVersionResource{Group: "networking.karmada.io", Version: "v1alpha1", Resource: "multiclusterservices"}
	works                = schema.GroupVersionResource{Group: "work.karmada.io", Version: "v1alpha1", Resource: "works"}
)

const (
	// pollInterval is how often a thing that is not watched is looked at.
	pollInterval = 10 * time.Millisecond
	// requestTimeout bounds what a poll waits for a server that does not answer.
	requestTimeout = 5 * time.Second
)

// cluster is the hub or a member.
type cluster struct {
	name   string
	client dynamic.Interface
	// book is nil for the hub.
	book *book
	// number of a member, from 1.
	number int
	// pods holds the pods of the service, and whether each is ready.
	pods endpoints
}

// world is a fleet, seen from outside.
type world struct {
	hub     *cluster
	members []*cluster

	stop     context.CancelFunc
	watchers sync.WaitGroup
}

// openWorld connects to a fleet and watches the service's slices in each member
// until close.
func openWorld(ctx context.Context, status fleet.Status) (*world, error) {
	hub, err := connect("hub", status.Hub.Kubeconfig)
	if err != nil {
		return nil, err
	}
	w := &world{hub: hub}
	for i, m := range status.Members {
		c, err := connect(m.Name, m.Kubeconfig)
		if err != nil {
			return nil, err
		}
		c.number, c.book, c.pods = i+1, newBook(m.Name), endpoints{}
		w.members = append(w.members, c)
	}
	ctx, w.stop = context.WithCancel(ctx)
	for _, m := range w.members {
		w.watchers.Go(func() { m.watchSlices(ctx) })
	}
	return w, nil
}

func (w *world) close() {
	w.stop()
	w.watchers.Wait()
}

func connect(name, kubeconfig string) (*cluster, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("reading the kubeconfig of %s: %w", name, err)
	}
	config.QPS = -1 // no limit: it would be measured too
	config.WarningHandler = rest.NoWarnings{}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making a client of %s: %w", name, err)
	}
	return &cluster{name: name, client: client}, nil
}

// others returns every member but one.
func (w *world) others(than *cluster) []*cluster {
	var list []*cluster
	for _, m := range w.members {
		if m != than {
			list = append(list, m)
		}
	}
	return list
}

func namesOf(clusters []*cluster) string {
	var list []string
	for _, c := range clusters {
		list = append(list, c.name)
	}
	return names(list)
}

// losses tells what consumers lost though they had to keep it.
func (w *world) losses() error {
	var errs []error
	for _, m := range w.members {
		for _, text := range m.book.losses() {
			errs = append(errs, errors.New(text))
		}
	}
	return errors.Join(errs...)
}

// create makes an object that is given as a typed one or as a map.
func (c *cluster) create(ctx context.Context, resource schema.GroupVersionResource, in string, object any) error {
	content, ok := object.(map[string]any)
	if !ok {
		var err error
		if content, err = runtime.DefaultUnstructuredConverter.ToUnstructured(object); err != nil {
			return fmt.Errorf("encoding %s: %w", resource.Resource, err)
		}
	}
	u := &unstructured.Unstructured{Object: content}
	if _, err := c.client.Resource(resource).Namespace(in).Create(ctx, u, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("creating %s %s in %s: %w", resource.Resource, u.GetName(), c.name, err)
	}
	return nil
}

// get reads an object in the story's namespace.
func (c *cluster) get(ctx context.Context, resource schema.GroupVersionResource, in, name string) (*unstructured.Unstructured, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	return c.client.Resource(resource).Namespace(in).Get(ctx, name, metav1.GetOptions{})
}

// poll tries until it succeeds. When the limit comes first, its error tells what
// was missing last.
func poll(ctx context.Context, limit time.Duration, try func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	var last error
	for {
		if err := try(ctx); err == nil {
			return nil
		} else if ctx.Err() == nil || last == nil {
			last = err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("not within %s: %w", limit, last)
		}
	}
}

// pause watches the world go by.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (c *cluster) createNode(ctx context.Context) error {
	return c.create(ctx, nodes, "", &corev1.Node{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Node"},
		ObjectMeta: metav1.ObjectMeta{Name: nodeName},
	})
}

func (w *world) createNamespace(ctx context.Context) error {
	return w.hub.create(ctx, namespaces, "", &corev1.Namespace{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"},
		ObjectMeta: metav1.ObjectMeta{Name: namespace},
	})
}

func (w *world) createService(ctx context.Context) error {
	return w.hub.create(ctx, services, namespace, &corev1.Service{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Service"},
		ObjectMeta: metav1.ObjectMeta{Name: serviceName},
		Spec: corev1.ServiceSpec{
			Selector: podLabels(),
			Ports:    []corev1.ServicePort{{Port: servicePort, TargetPort: intstr.FromInt32(podPort)}},
		},
	})
}

// createMultiClusterService names no clusters, which means all of them.
func (w *world) createMultiClusterService(ctx context.Context) error {
	return w.hub.create(ctx, multiClusterServices, namespace, map[string]any{
		"apiVersion": multiClusterServices.GroupVersion().String(),
		"kind":       "MultiClusterService",
		"metadata":   map[string]any{"name": serviceName},
		"spec":       map[string]any{"types": []any{"CrossCluster"}},
	})
}

func podLabels() map[string]string { return map[string]string{"app": serviceName} }

// podName and podAddress name the n-th pod of a member. Nothing answers at the
// address: it is one of the range that is set aside for benchmarks.
func (c *cluster) podName(n int) string { return fmt.Sprintf("%s-%d", serviceName, n) }

func (c *cluster) podAddress(n int) string { return fmt.Sprintf("198.18.%d.%d", c.number, 10+n) }

// createPod makes a pod that is not yet running anywhere.
func (c *cluster) createPod(ctx context.Context, n int) error {
	return c.create(ctx, pods, namespace, &corev1.Pod{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{Name: c.podName(n), Labels: podLabels()},
		Spec: corev1.PodSpec{
			NodeName:   nodeName,
			Containers: []corev1.Container{{Name: serviceName, Image: serviceName}},
		},
	})
}

// reportPod does what a node does: it says that the pod runs, and whether it is
// ready.
func (c *cluster) reportPod(ctx context.Context, n int, ready bool) error {
	condition := corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionFalse, LastTransitionTime: metav1.Now()}
	if ready {
		condition.Status = corev1.ConditionTrue
	}
	address := c.podAddress(n)
	patch, err := json.Marshal(map[string]any{"status": corev1.PodStatus{
		Phase:      corev1.PodRunning,
		PodIP:      address,
		PodIPs:     []corev1.PodIP{{IP: address}},
		Conditions: []corev1.PodCondition{condition},
	}})
	if err != nil {
		return fmt.Errorf("encoding the status of a pod: %w", err)
	}
	_, err = c.client.Resource(pods).Namespace(namespace).Patch(ctx, c.podName(n), types.MergePatchType, patch, metav1.PatchOptions{}, "status")
	if err != nil {
		return fmt.Errorf("writing the status of pod %s in %s: %w", c.podName(n), c.name, err)
	}
	return nil
}

// deletePod removes a pod at once, since there is no node to confirm its end.
func (c *cluster) deletePod(ctx context.Context, n int) error {
	now := int64(0)
	err := c.client.Resource(pods).Namespace(namespace).Delete(ctx, c.podName(n), metav1.DeleteOptions{GracePeriodSeconds: &now})
	if err != nil {
		return fmt.Errorf("deleting pod %s in %s: %w", c.podName(n), c.name, err)
	}
	return nil
}

// mustBeGone is an error as long as the object is there.
func (c *cluster) mustBeGone(ctx context.Context, resource schema.GroupVersionResource, name string) error {
	_, err := c.get(ctx, resource, namespace, name)
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err == nil:
		err = fmt.Errorf("%s %s is still in %s", resource.Resource, name, c.name)
	}
	return err
}

func without(list []*cluster, unwanted *cluster) []*cluster {
	var rest []*cluster
	for _, c := range list {
		if c != unwanted {
			rest = append(rest, c)
		}
	}
	return rest
}
