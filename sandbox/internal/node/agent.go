package node

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"

	"github.com/virtual-kubelet/virtual-kubelet/log"
	vkslog "github.com/virtual-kubelet/virtual-kubelet/log/slog"
	"github.com/virtual-kubelet/virtual-kubelet/node"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/workqueue"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/namesake-io/namesake/sandbox/internal/echo"
	"github.com/namesake-io/namesake/sandbox/internal/fabric"
	"github.com/namesake-io/namesake/sandbox/internal/images"
	"github.com/namesake-io/namesake/sandbox/internal/plan"
	"github.com/namesake-io/namesake/sandbox/internal/process"
)

const (
	requestTimeout = 10 * time.Second
	podWorkers     = 8
	leaseSeconds   = 40
)

// Options are what a node is started with.
type Options struct {
	// Dir is the fleet's directory and Self this program.
	Dir, Self string
	Member    string
	// Images names a file with more images, or nothing.
	Images string
	Logger *slog.Logger
}

// Agent is one member's node.
type Agent struct {
	dir, self string
	network   *plan.Network
	member    plan.MemberNetwork
	images    images.Map
	client    kubernetes.Interface
	logger    *slog.Logger

	mu     sync.Mutex
	pods   map[string]*pod // by namespace/name
	used   map[int]bool    // addresses
	next   int
	report func(*corev1.Pod)
}

// New prepares a node; Run brings it to life.
func New(o Options) (*Agent, error) {
	network, err := fabric.Read(filepath.Join(o.Dir, plan.NetworkFile))
	if err != nil {
		return nil, err
	}
	member, err := network.Member(o.Member)
	if err != nil {
		return nil, err
	}
	a := &Agent{
		dir: o.Dir, self: o.Self, network: network, member: member, logger: o.Logger,
		images: images.Builtin(o.Self), pods: map[string]*pod{}, used: map[int]bool{}, next: -1,
	}
	if o.Images != "" {
		more, err := images.Load(o.Images)
		if err != nil {
			return nil, err
		}
		a.images = append(more, a.images...)
	}
	config, err := clientcmd.BuildConfigFromFlags("", filepath.Join(o.Dir, "pki", plan.NodePort(o.Member)+".kubeconfig"))
	if err != nil {
		return nil, fmt.Errorf("reading the node's kubeconfig: %w", err)
	}
	config.QPS, config.Burst = 1000, 2000
	if a.client, err = kubernetes.NewForConfig(config); err != nil {
		return nil, fmt.Errorf("making a client: %w", err)
	}
	return a, nil
}

// Run runs the node until the context ends. Its pods end with it.
func (a *Agent) Run(ctx context.Context) error {
	if err := a.sweep(); err != nil {
		return err
	}
	if err := a.linkBusybox(ctx); err != nil {
		return err
	}
	ctx = log.WithLogger(ctx, vkslog.FromSlog(a.logger))
	pods, informers, err := a.podController(ctx)
	if err != nil {
		return err
	}
	leases := a.client.CoordinationV1().Leases(corev1.NamespaceNodeLease)
	nodes, err := node.NewNodeController(node.NewNaiveNodeProvider(), a.object(), a.client.CoreV1().Nodes(),
		node.WithNodeEnableLeaseV1(leases, leaseSeconds))
	if err != nil {
		return fmt.Errorf("making the node controller: %w", err)
	}
	group, ctx := errgroup.WithContext(ctx)
	for _, factory := range informers {
		factory.Start(ctx.Done())
	}
	group.Go(func() error { return pods.Run(ctx, podWorkers) })
	group.Go(func() error {
		// Pods that were here before are known before new ones come.
		select {
		case <-pods.Ready():
			return nodes.Run(ctx)
		case <-ctx.Done():
			return nil
		}
	})
	group.Go(func() error { return a.bind(ctx) })
	group.Go(func() error {
		ready := func() bool {
			select {
			case <-nodes.Ready():
				return true
			default:
				return false
			}
		}
		return a.serve(ctx, ready)
	})
	if err := group.Wait(); ctx.Err() == nil || err != nil {
		return err
	}
	return nil
}

// podController makes virtual-kubelet's half of a node, and what informs it.
func (a *Agent) podController(ctx context.Context) (*node.PodController, []informers.SharedInformerFactory, error) {
	mine := informers.NewSharedInformerFactoryWithOptions(a.client, 0, informers.WithTweakListOptions(func(o *metav1.ListOptions) {
		o.FieldSelector = fields.OneTermEqualSelector("spec.nodeName", plan.NodeName).String()
	}))
	others := informers.NewSharedInformerFactory(a.client, 0)
	broadcaster := record.NewBroadcaster(record.WithContext(ctx))
	broadcaster.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: a.client.CoreV1().Events("")})
	limiter := func() workqueue.TypedRateLimiter[any] {
		return workqueue.NewTypedItemExponentialFailureRateLimiter[any](time.Millisecond, 5*time.Second)
	}
	controller, err := node.NewPodController(node.PodControllerConfig{
		PodClient:         a.client.CoreV1(),
		PodInformer:       mine.Core().V1().Pods(),
		EventRecorder:     broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "sandbox-node", Host: plan.NodeName}),
		Provider:          a,
		ConfigMapInformer: others.Core().V1().ConfigMaps(),
		SecretInformer:    others.Core().V1().Secrets(),
		ServiceInformer:   others.Core().V1().Services(),

		SyncPodsFromKubernetesRateLimiter:    limiter(),
		DeletePodsFromKubernetesRateLimiter:  limiter(),
		SyncPodStatusFromProviderRateLimiter: limiter(),
		// Environments are made when a container starts, since they may hold
		// the pod's address.
		SkipDownwardAPIResolution: true,
	})
	if err != nil {
		return nil, nil, fmt.Errorf("making the pod controller: %w", err)
	}
	return controller, []informers.SharedInformerFactory{mine, others}, nil
}

// sweep removes what the pods of a killed agent left. Their processes are gone:
// they die with the process that started them.
func (a *Agent) sweep() error {
	if err := fabric.RemovePods(a.network, a.member); err != nil {
		return fmt.Errorf("removing the network of former pods: %w", err)
	}
	if err := os.RemoveAll(a.podFile("", "")); err != nil {
		return fmt.Errorf("removing the files of former pods: %w", err)
	}
	return nil
}

// busybox is a directory with a link for each of busybox's applets. It stands
// last in the path of every container, for what this machine lacks.
func (a *Agent) busybox() string { return plan.MemberFile(a.dir, a.member.Name, "busybox") }

func (a *Agent) linkBusybox(ctx context.Context) error {
	program, err := exec.LookPath("busybox")
	if err != nil {
		return nil // then there are no applets
	}
	if err := os.MkdirAll(a.busybox(), 0o700); err != nil {
		return fmt.Errorf("making the directory of busybox: %w", err)
	}
	if out, err := exec.CommandContext(ctx, program, "--install", "-s", a.busybox()).CombinedOutput(); err != nil {
		a.logger.Info("Busybox made no links", "err", err, "output", string(out)) // the second time, it finds its own
	}
	return nil
}

// podFile returns the path of a pod's file; without a UID, the root of all.
func (a *Agent) podFile(uid, name string) string {
	return filepath.Join(a.dir, "pods", a.member.Name, uid, name)
}

func (a *Agent) hostIPs() []string {
	return []string{a.member.Node4.String(), a.member.Node6.String()}
}

// baseEnv is the environment that every container has.
func (a *Agent) baseEnv(hostname string) []string {
	const path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
	return []string{
		"PATH=" + path + ":" + a.busybox(),
		"HOSTNAME=" + hostname,
		"HOME=/root",
		echo.ClusterVariable + "=" + a.member.Name,
		process.Marker + "=" + a.dir,
	}
}
