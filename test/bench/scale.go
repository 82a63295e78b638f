package main

import (
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	stdlog "log"
	"net/http/httptest"
	"slices"
	"sync"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	clusterv1alpha1 "github.com/namesake-io/namesake/api/cluster/v1alpha1"
	networkingv1alpha1 "github.com/namesake-io/namesake/api/networking/v1alpha1"
	"github.com/namesake-io/namesake/test/bench/membersim"
)

// scaleOptions are the settings of a run on simulated members.
type scaleOptions struct {
	*options
	simulated, services, providers, consumers int
	rate                                      float64
	churn                                     time.Duration
}

func scaleCommand() *cobra.Command {
	o := &scaleOptions{options: newOptions(), simulated: 200, services: 100, providers: 20, consumers: 5, rate: 20, churn: 30 * time.Second}
	cmd := &cobra.Command{
		Use:   "scale [--simulated N]",
		Short: "Measure a real hub with simulated members: one service everywhere, then many that change",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return scale(cmd.Context(), o, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	fs := cmd.Flags()
	fs.StringVar(&o.sandbox, "sandbox", o.sandbox, "`program` that starts the hub")
	fs.StringArrayVar(&o.managerArgs, "controller-manager-arg", nil, "another `argument` for the hub's controller-manager (repeatable)")
	fs.IntVar(&o.simulated, "simulated", o.simulated, "how many simulated members")
	fs.IntVar(&o.changes, "changes", 20, "how many changes of the one service, one after the other")
	fs.IntVar(&o.services, "services", o.services, "how many other services")
	fs.IntVar(&o.providers, "providers", o.providers, "providers of each service")
	fs.IntVar(&o.consumers, "consumers", o.consumers, "consumers of each of the other services")
	fs.Float64Var(&o.rate, "rate", o.rate, "changes a second of the other services")
	fs.DurationVar(&o.churn, "churn", o.churn, "for how long they change")
	fs.DurationVar(&o.patience, "patience", 10*time.Minute, "how long one step may take")
	return cmd
}

// world is a hub with simulated members.
type world struct {
	*plane
	opts  *scaleOptions
	fleet *membersim.Fleet
	names []string
	ns    string
	out   io.Writer

	mu      sync.Mutex
	next    int
	waiting map[string]*arrival
}

// arrival waits until an address is in a number of members.
type arrival struct {
	left int
	last time.Time
	done chan struct{}
}

// scale measures.
func scale(ctx context.Context, o *scaleOptions, out, log io.Writer) (err error) {
	o.options.members = 0
	p, leave, err := open(ctx, o.options, log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, leave()) }()
	w := &world{plane: p, opts: o, ns: metav1.NamespaceDefault, out: out, waiting: map[string]*arrival{}}
	for i := range o.simulated {
		w.names = append(w.names, fmt.Sprintf("sim%04d", i))
	}
	w.fleet = membersim.NewFleet(w.names...)
	for _, name := range w.names {
		w.fleet.Member(name).OnChange(w.changed)
	}
	server := httptest.NewUnstartedServer(w.fleet)
	// A process that is killed in the middle of a handshake is part of the measurement.
	server.Config.ErrorLog = stdlog.New(io.Discard, "", 0)
	server.EnableHTTP2 = true
	server.StartTLS()
	// Without waiting for the hub to let go of its connections.
	defer func() { _ = server.Config.Close() }()
	for _, step := range []func(context.Context) error{
		func(ctx context.Context) error { return w.join(ctx, server) },
		w.everywhere, w.many, w.restart,
	} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// changed takes in what a member holds now.
func (w *world) changed(_ string, kind watch.EventType, obj runtime.Object) {
	slice, ok := obj.(*discoveryv1.EndpointSlice)
	if !ok || kind == watch.Deleted || providerOf(slice) == "" {
		return
	}
	now := time.Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := range slice.Endpoints {
		address := slice.Endpoints[i].Addresses[0]
		if a := w.waiting[address]; a != nil {
			a.last = now
			a.left--
			if a.left == 0 {
				delete(w.waiting, address)
				close(a.done)
			}
		}
	}
}

// expect waits for an address in a number of members.
func (w *world) expect(address string, members int) *arrival {
	w.mu.Lock()
	defer w.mu.Unlock()
	a := &arrival{left: members, done: make(chan struct{})}
	w.waiting[address] = a
	return a
}

// wait returns when the last member had it.
func (w *world) wait(ctx context.Context, a *arrival) (time.Time, error) {
	ctx, cancel := context.WithTimeout(ctx, w.opts.patience)
	defer cancel()
	select {
	case <-a.done:
		return a.last, nil
	case <-ctx.Done():
		w.mu.Lock()
		defer w.mu.Unlock()
		return time.Time{}, fmt.Errorf("%d members lack a change after %s", a.left, w.opts.patience)
	}
}

// address returns one that nobody has had.
func (w *world) address() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.next++
	return fmt.Sprintf("10.%d.%d.%d", w.next>>16, w.next>>8&255, w.next&255)
}

// say prints a line, with what the control plane's process takes.
func (w *world) say(ctx context.Context, format string, args ...any) {
	rss, _ := sumMetric(ctx, w.metricsURL, "process_resident_memory_bytes")
	cpu, _ := sumMetric(ctx, w.metricsURL, "process_cpu_seconds_total")
	fmt.Fprintf(w.out, "%s; the hub's process: %.0f MB, %.1f s of CPU so far\n", fmt.Sprintf(format, args...), rss/1e6, cpu)
}

// join makes every simulated member one of the hub.
func (w *world) join(ctx context.Context, server *httptest.Server) error {
	start := time.Now()
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	err := each(ctx, 8, w.names, func(ctx context.Context, name string) error {
		_, err := w.hub.kube.CoreV1().Secrets(clusterv1alpha1.SystemNamespace).Create(ctx, &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Data:       map[string][]byte{clusterv1alpha1.SecretTokenKey: []byte("simulated"), clusterv1alpha1.SecretCABundleKey: ca},
		}, createOptions)
		if err != nil {
			return fmt.Errorf("making the Secret of %s: %w", name, err)
		}
		cluster, err := unstructuredOf(&clusterv1alpha1.Cluster{
			TypeMeta:   metav1.TypeMeta{APIVersion: clusterv1alpha1.GroupVersion.String(), Kind: "Cluster"},
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: clusterv1alpha1.ClusterSpec{
				SyncMode: clusterv1alpha1.Push, APIEndpoint: server.URL + "/" + name,
				SecretRef: &clusterv1alpha1.LocalSecretReference{Namespace: clusterv1alpha1.SystemNamespace, Name: name},
			},
		})
		if err != nil {
			return err
		}
		_, err = w.hub.custom.Resource(clusters).Create(ctx, cluster, createOptions)
		return err
	})
	if err != nil {
		return fmt.Errorf("joining members: %w", err)
	}
	if err := w.awaitReady(ctx); err != nil {
		return err
	}
	if err := w.settled(ctx, w.opts.patience); err != nil {
		return err
	}
	w.say(ctx, "%d members joined, all Ready and quiet after %.0f s", len(w.names), time.Since(start).Seconds())
	return nil
}

// awaitReady waits until every Cluster is Ready.
func (w *world) awaitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, w.opts.patience)
	defer cancel()
	for {
		list, err := w.hub.custom.Resource(clusters).List(ctx, listOptions)
		if err != nil {
			return fmt.Errorf("listing Clusters: %w", err)
		}
		ready := 0
		for i := range list.Items {
			if isReady(&list.Items[i]) {
				ready++
			}
		}
		if ready == len(w.names) {
			return nil
		}
		if err := pause(ctx, time.Second); err != nil {
			return fmt.Errorf("%d of %d members are Ready: %w", ready, len(w.names), err)
		}
	}
}

// isReady reads the condition Ready of any kind.
func isReady(obj *unstructured.Unstructured) bool {
	conditions, _, _ := unstructured.NestedSlice(obj.Object, "status", "conditions")
	return slices.ContainsFunc(conditions, func(c any) bool {
		fields, ok := c.(map[string]any)
		return ok && fields["type"] == "Ready" && fields["status"] == "True"
	})
}

// serve makes the slices of a service in its providers, and the Service.
func (w *world) serve(ctx context.Context, service string, providers []string) error {
	for _, provider := range providers {
		slice := &discoveryv1.EndpointSlice{
			ObjectMeta:  metav1.ObjectMeta{Namespace: w.ns, Name: service + "-x", Labels: map[string]string{discoveryv1.LabelServiceName: service}},
			AddressType: discoveryv1.AddressTypeIPv4,
		}
		for range w.opts.endpoints {
			slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{Addresses: []string{w.address()}})
		}
		if err := w.fleet.Member(provider).CreateSlice(slice); err != nil {
			return fmt.Errorf("making a slice in %s: %w", provider, err)
		}
	}
	_, err := w.hub.kube.CoreV1().Services(w.ns).Create(ctx, &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: service}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Name: "http", Port: 80}}},
	}, createOptions)
	return err
}

// wish asks for a service. No consumers: everybody.
func (w *world) wish(ctx context.Context, service string, providers, consumers []string) error {
	spec := networkingv1alpha1.MultiClusterServiceSpec{Types: []networkingv1alpha1.ExposureType{networkingv1alpha1.ExposureTypeCrossCluster}}
	for _, name := range providers {
		spec.ProviderClusters = append(spec.ProviderClusters, networkingv1alpha1.ClusterSelector{Name: networkingv1alpha1.ClusterName(name)})
	}
	for _, name := range consumers {
		spec.ConsumerClusters = append(spec.ConsumerClusters, networkingv1alpha1.ClusterSelector{Name: networkingv1alpha1.ClusterName(name)})
	}
	mcs, err := unstructuredOf(&networkingv1alpha1.MultiClusterService{
		TypeMeta:   metav1.TypeMeta{APIVersion: networkingv1alpha1.GroupVersion.String(), Kind: "MultiClusterService"},
		ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: service}, Spec: spec,
	})
	if err != nil {
		return err
	}
	_, err = w.hub.custom.Resource(wishes).Namespace(w.ns).Create(ctx, mcs, createOptions)
	return err
}

// everywhere measures one service with a few providers that every member consumes.
func (w *world) everywhere(ctx context.Context) error {
	const service = "everywhere"
	providers := w.names[:min(w.opts.providers, len(w.names))]
	if err := w.serve(ctx, service, providers); err != nil {
		return err
	}
	first := w.change(service, providers[0])
	arrived := w.expect(first, len(w.names)-1)
	start := time.Now()
	if err := w.wish(ctx, service, providers, nil); err != nil {
		return err
	}
	last, err := w.wait(ctx, arrived)
	if err != nil {
		return err
	}
	spread := last.Sub(start)
	if err := w.settled(ctx, w.opts.patience); err != nil {
		return err
	}
	w.say(ctx, "one service, %d providers, %d consumers: the first provider's slice everywhere after %s, quiet after %s",
		len(providers), len(w.names), spread.Round(time.Millisecond), time.Since(start).Round(time.Second))

	var took []milliseconds
	for i := range w.opts.changes {
		if err := pause(ctx, 2*time.Second); err != nil {
			return err
		}
		provider, address := providers[i%len(providers)], w.address()
		arrived := w.expect(address, len(w.names)-1)
		start := time.Now()
		w.set(service, provider, address)
		last, err := w.wait(ctx, arrived)
		if err != nil {
			return err
		}
		took = append(took, millisecondsOf(last.Sub(start)))
	}
	w.say(ctx, "one change in all %d consumers: p50 %s, p99 %s", len(w.names)-1, quantile(took, 0.5), quantile(took, 0.99))
	return nil
}

// change returns an address of a provider's slice.
func (w *world) change(service, provider string) string {
	address := w.address()
	w.set(service, provider, address)
	return address
}

// set gives an endpoint of a provider's slice an address.
func (w *world) set(service, provider, address string) {
	err := w.fleet.Member(provider).ChangeSlice(types.NamespacedName{Namespace: w.ns, Name: service + "-x"}, func(s *discoveryv1.EndpointSlice) {
		s.Endpoints[0].Addresses = []string{address}
	})
	if err != nil {
		fmt.Fprintln(w.out, "bench: changing a slice:", err)
	}
}

// pick returns a few members, others for each service.
func (w *world) pick(first, count int) []string {
	out := make([]string, 0, count)
	for i := range min(count, len(w.names)) {
		out = append(out, w.names[(first+i)%len(w.names)])
	}
	slices.Sort(out)
	return out
}

// parts returns the providers and consumers of one of many services.
func (w *world) parts(i int) (providers, consumers []string) {
	first := i * 7
	return w.pick(first, w.opts.providers), w.pick(first+w.opts.providers, w.opts.consumers)
}

// many measures many services that a few members provide and a few consume, while
// their endpoints change at a rate.
func (w *world) many(ctx context.Context) error {
	services := names("svc-", w.opts.services)
	index := map[string]int{}
	for i, service := range services {
		index[service] = i
	}
	start := time.Now()
	err := each(ctx, 8, services, func(ctx context.Context, service string) error {
		providers, consumers := w.parts(index[service])
		if err := w.serve(ctx, service, providers); err != nil {
			return err
		}
		return w.wish(ctx, service, providers, consumers)
	})
	if err != nil {
		return fmt.Errorf("making services: %w", err)
	}
	if err := w.settled(ctx, w.opts.patience); err != nil {
		return err
	}
	held := 0
	for _, name := range w.names {
		held += w.fleet.Member(name).Count("endpointslices")
	}
	w.say(ctx, "%d more services, %d providers and %d consumers each: quiet after %s, the members hold %d slices",
		len(services), w.opts.providers, w.opts.consumers, time.Since(start).Round(time.Second), held)
	return w.churned(ctx, services)
}

// churned changes endpoints at a rate and follows each change, and the queues.
func (w *world) churned(ctx context.Context, services []string) error {
	var (
		mu     sync.Mutex
		took   []milliseconds
		errs   []error
		deep   float64
		behind sync.WaitGroup
	)
	before, err := w.account(ctx)
	if err != nil {
		return err
	}
	ticks := time.NewTicker(time.Duration(float64(time.Second) / w.opts.rate))
	defer ticks.Stop()
	start := time.Now()
	for i := 0; time.Since(start) < w.opts.churn; i++ {
		select {
		case <-ticks.C:
		case <-ctx.Done():
			return ctx.Err()
		}
		k := i % len(services)
		providers, consumers := w.parts(k)
		// Another endpoint each round: none is overtaken by the next change of it.
		provider := providers[i/len(services)%len(providers)]
		others := len(consumers)
		if slices.Contains(consumers, provider) {
			others-- // it has no slice of its own
		}
		address := w.address()
		arrived, at := w.expect(address, others), time.Now()
		w.set(services[k], provider, address)
		behind.Go(func() {
			last, err := w.wait(ctx, arrived)
			mu.Lock()
			defer mu.Unlock()
			errs = append(errs, err)
			took = append(took, millisecondsOf(last.Sub(at)))
		})
		if i%int(max(w.opts.rate, 1)) == 0 {
			if depth, err := sumMetric(ctx, w.metricsURL, "namesake_queue_depth"); err == nil {
				deep = max(deep, depth)
			}
		}
	}
	behind.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	spent := time.Since(start)
	after, err := w.account(ctx)
	if err != nil {
		return err
	}
	c := after.since(before, nil, nil)
	w.say(ctx, "%d changes, %.0f a second for %s: p50 %s, p99 %s, max %s; CPU %.1f ms and %.1f hub writes for each; deepest queues together %.0f",
		len(took), w.opts.rate, spent.Round(time.Second), quantile(took, 0.5), quantile(took, 0.99), quantile(took, 1),
		1000*c.CPUSeconds/float64(len(took)), c.HubWrites.total()/float64(len(took)), deep)
	return nil
}

// restart kills the hub's process and waits until a change arrives everywhere.
func (w *world) restart(ctx context.Context) error {
	const service = "everywhere"
	if err := w.kill(ctx); err != nil {
		return err
	}
	address := w.address()
	arrived := w.expect(address, len(w.names)-1)
	w.set(service, w.names[0], address)
	writes, start := w.fleet.Writes.Load(), time.Now()
	if err := w.start(ctx); err != nil {
		return err
	}
	last, err := w.wait(ctx, arrived)
	if err != nil {
		return err
	}
	w.say(ctx, "started after SIGKILL: a change made meanwhile is everywhere after %s, by %d writes in members",
		last.Sub(start).Round(time.Millisecond), w.fleet.Writes.Load()-writes)
	return nil
}
