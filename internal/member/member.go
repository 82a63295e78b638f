package member

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	utildiscovery "k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/namesake-io/namesake/internal/apply"
	"github.com/namesake-io/namesake/internal/discovery"
)

// ID identifies a member through its life. A cluster that joins under a name
// that another has left has another UID, and shares nothing with it.
type ID struct {
	Name discovery.ClusterName
	UID  types.UID
}

// Config says how to reach a member.
type Config struct {
	ID ID
	// Endpoint is the URL of the API server.
	Endpoint string
	// CABundle verifies it, in PEM.
	CABundle []byte
	// Token authenticates the hub, and Reload reads it anew when it is refused.
	Token  string
	Reload func(context.Context) (string, error)

	InsecureSkipTLSVerification bool
	ProxyURL                    string
	ProxyHeader                 map[string]string
}

// Options are the same for all members.
type Options struct {
	// Scheme knows the kinds that are read and written in members.
	Scheme *runtime.Scheme
	// ProbeInterval is how often a healthy member is asked for its health.
	ProbeInterval time.Duration
	// QPS and Burst bound the requests to one member. QPS below zero: no bound.
	QPS   float32
	Burst int
	// Expected says of a service that its slices will be asked for. Nil: nobody knows.
	Expected func(service types.NamespacedName) bool
	// GuardWrites wraps the transport of the client that controllers write with.
	// Nil: nothing is held back.
	GuardWrites func(http.RoundTripper) http.RoundTripper
}

// Member is the connection to one member. It lives until it is stopped.
type Member struct {
	id       ID
	config   Config
	tokens   *tokenSource
	gate     *gate
	dialer   *connections
	prober   *prober
	client   client.WithWatch
	watching client.WithWatch
	disco    utildiscovery.DiscoveryInterface
	slices   *SliceStore
	objects  *objects
	watch    *watchGuard
	emit     func(Event)

	mu     sync.RWMutex
	health Health

	cancel  context.CancelFunc
	stopped sync.WaitGroup
}

// ID returns which member this is.
func (m *Member) ID() ID { return m.id }

// Name returns the name of the member's Cluster object.
func (m *Member) Name() discovery.ClusterName { return m.id.Name }

// Client reads from and writes to the member's API server, without a cache. It
// fails with ErrUnreachable while the member is known not to answer.
func (m *Member) Client() client.Client { return m.client }

// Slices is the view of the member's slices.
func (m *Member) Slices() *SliceStore { return m.slices }

// Health returns what the last probe found.
func (m *Member) Health() Health {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.health
}

// Watch tells how the watch of the member's slices is.
func (m *Member) Watch() WatchState { return m.watch.State() }

// Reachable says whether requests to the member are sent at all.
func (m *Member) Reachable() bool { return m.gate.isOpen() }

// Discovery lists what the member's API server serves.
func (m *Member) Discovery() utildiscovery.DiscoveryInterface { return m.disco }

// connect builds a member, which shares contents with others. Nothing runs yet.
func connect(cfg Config, opts Options, shared *contents, emit func(Event)) (*Member, error) {
	base, dialer, err := newTransport(&cfg)
	if err != nil {
		return nil, fmt.Errorf("connecting to member %q: %w", cfg.ID.Name, err)
	}
	m := &Member{
		id: cfg.ID, config: cfg, dialer: dialer, gate: newGate(), emit: emit,
		tokens: &tokenSource{token: cfg.Token, reload: cfg.Reload},
		slices: newSliceStore(shared),
	}
	authenticated := authenticate(base, m.tokens)
	m.prober = &prober{
		endpoint: strings.TrimRight(cfg.Endpoint, "/"),
		client:   &http.Client{Transport: authenticated},
		interval: opts.ProbeInterval,
		failed:   make(chan struct{}, 1),
		report:   m.setHealth,
	}
	reported := reporting(authenticated, m.prober.hurry)
	config := &rest.Config{Host: cfg.Endpoint, QPS: -1, UserAgent: "namesake"}
	if opts.QPS > 0 {
		config.RateLimiter = flowcontrol.NewTokenBucketRateLimiter(opts.QPS, opts.Burst)
	}

	guarded := reported
	if opts.GuardWrites != nil {
		guarded = opts.GuardWrites(reported)
	}
	direct := &http.Client{Transport: failingFast(guarded, m.gate), Timeout: writeTimeout}
	patient := &http.Client{Transport: waiting(reported, m.gate)}
	mapper, err := newMapper(config, direct)
	if err != nil {
		return nil, fmt.Errorf("making a REST mapper for member %q: %w", cfg.ID.Name, err)
	}
	if m.client, err = client.NewWithWatch(config, client.Options{HTTPClient: direct, Scheme: opts.Scheme, Mapper: mapper}); err != nil {
		return nil, fmt.Errorf("making a client for member %q: %w", cfg.ID.Name, err)
	}
	patientMapper, err := newMapper(config, patient)
	if err != nil {
		return nil, fmt.Errorf("making a REST mapper for the caches of member %q: %w", cfg.ID.Name, err)
	}
	if m.watching, err = client.NewWithWatch(config, client.Options{HTTPClient: patient, Scheme: opts.Scheme, Mapper: patientMapper}); err != nil {
		return nil, fmt.Errorf("making a watching client for member %q: %w", cfg.ID.Name, err)
	}
	if m.disco, err = utildiscovery.NewDiscoveryClientForConfigAndClient(config, direct); err != nil {
		return nil, fmt.Errorf("making a discovery client for member %q: %w", cfg.ID.Name, err)
	}
	if m.objects, err = newObjects(config, cache.Options{HTTPClient: patient, Scheme: opts.Scheme, Mapper: patientMapper}, m); err != nil {
		return nil, err
	}
	m.slices.list, m.slices.listPatiently, m.slices.expected = listSlices(m.client), listSlices(m.watching), opts.Expected
	m.watch = &watchGuard{reachable: m.gate.isOpen, changed: func() { emit(Event{Kind: EventWatch, Member: m}) }}
	m.slices.changed = func(old, current *discoveryv1.EndpointSlice) {
		emit(Event{Kind: EventSlice, Member: m, Old: old, New: current})
	}
	m.slices.synced = func() { emit(Event{Kind: EventSynced, Member: m}) }
	return m, nil
}

// start runs the member until stop is called.
func (m *Member) start(ctx context.Context) {
	ctx, m.cancel = context.WithCancel(klog.NewContext(ctx, klog.FromContext(ctx).WithValues("member", m.id.Name)))
	m.stopped.Go(func() { m.prober.run(ctx) })
	m.stopped.Go(func() { m.reflectSlices(ctx) })
	m.stopped.Go(func() { m.watch.run(ctx) })
	for range readers {
		m.stopped.Go(func() { m.slices.readMissing(ctx) })
	}
	m.stopped.Go(func() { m.objects.run(ctx) })
}

// stop ends the member and returns when nothing of it runs any more.
func (m *Member) stop() {
	m.cancel()
	m.gate.release()
	m.dialer.end()
	m.stopped.Wait()
}

// setHealth takes in what a probe found.
func (m *Member) setHealth(h Health) {
	m.mu.Lock()
	changed := !m.health.same(h)
	m.health = h
	m.mu.Unlock()

	if m.gate.set(h.Reachable) && !h.Reachable {
		// Requests and watches on a dead path would hang until they time out.
		m.dialer.CloseAll()
	}
	if changed {
		m.emit(Event{Kind: EventHealth, Member: m})
	}
}

// reflectSlices keeps the slice store. The back-off is short: while the member
// cannot be reached requests wait at the gate, and do not turn in circles.
func (m *Member) reflectSlices(ctx context.Context) {
	lw := &toolscache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, opts metav1.ListOptions) (runtime.Object, error) {
			list := &discoveryv1.EndpointSliceList{}
			err := m.watching.List(ctx, list, &client.ListOptions{Raw: &opts})
			if ctx.Err() == nil {
				m.watch.listed(err)
			}
			return list, err
		},
		WatchFuncWithContext: func(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error) {
			return m.watch.watching(m.watching.Watch(ctx, &discoveryv1.EndpointSliceList{}, &client.ListOptions{Raw: &opts}))
		},
	}
	logger := klog.FromContext(ctx)
	reflector := toolscache.NewReflectorWithOptions(lw, &discoveryv1.EndpointSlice{}, m.slices, toolscache.ReflectorOptions{
		Name:    "slices of " + string(m.id.Name),
		Logger:  &logger,
		Backoff: &wait.Backoff{Duration: 200 * time.Millisecond, Factor: 2, Jitter: 0.5, Steps: 10, Cap: 5 * time.Second},
	})
	reflector.RunWithContext(ctx)
}

// listSlices returns a function that reads the slices of one service, whole. With a
// version that need not be the last one the API server answers from its memory,
// where for the very last it may have to wait for its storage: 100 ms are usual.
func listSlices(c client.Client) func(context.Context, types.NamespacedName, string) ([]discoveryv1.EndpointSlice, error) {
	return func(ctx context.Context, service types.NamespacedName, version string) ([]discoveryv1.EndpointSlice, error) {
		list := &discoveryv1.EndpointSliceList{}
		err := c.List(ctx, list, client.InNamespace(service.Namespace),
			client.MatchingLabels{discoveryv1.LabelServiceName: service.Name},
			&client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: version, ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan}})
		return list.Items, err
	}
}

// IsMissingKind says that an error means that the member does not serve a kind.
func IsMissingKind(err error) bool { return meta.IsNoMatchError(err) || apply.NoResource(err) }
