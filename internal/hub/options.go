package hub

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-base/featuregate"
	"k8s.io/component-base/logs"
	logsapi "k8s.io/component-base/logs/api/v1"

	clusterv1alpha1 "github.com/namesake-io/namesake/api/cluster/v1alpha1"
	networkingv1alpha1 "github.com/namesake-io/namesake/api/networking/v1alpha1"
	"github.com/namesake-io/namesake/internal/feature"
	"github.com/namesake-io/namesake/internal/webhook"
)

// Options are what the flags of the controller-manager say.
type Options struct {
	Kubeconfig string
	Context    string

	// Controllers as in --controllers.
	Controllers []string
	Features    featuregate.MutableFeatureGate
	Logs        *logsapi.LoggingConfiguration

	LeaderElect          bool
	LeaderElectNamespace string
	// LeaderElectIdentity is this replica's name. Empty: one made for this run.
	LeaderElectIdentity string
	LeaseDuration       time.Duration
	RenewDeadline       time.Duration
	RetryPeriod         time.Duration

	MetricsBindAddress string
	ProbeBindAddress   string
	PprofBindAddress   string
	Webhook            webhook.Options

	KubeAPIQPS      float32
	KubeAPIBurst    int
	ClusterAPIQPS   float32
	ClusterAPIBurst int

	ClusterStatusUpdateFrequency time.Duration
	ClusterFailureThreshold      time.Duration
	ClusterSuccessThreshold      time.Duration
	ClusterMonitorGracePeriod    time.Duration
	ClusterEnablementInterval    time.Duration
	ClusterNodeSummary           bool

	// UnreachablePolicy and UnreachableGracePeriod are for services without
	// spec.unreachableProviders.
	UnreachablePolicy      string
	UnreachableGracePeriod time.Duration
}

// NewOptions returns the defaults.
func NewOptions() (*Options, error) {
	gate, err := feature.NewGate()
	if err != nil {
		return nil, err
	}
	return &Options{
		Controllers:          []string{"*"},
		Features:             gate,
		Logs:                 logs.NewOptions(),
		LeaderElect:          true,
		LeaderElectNamespace: clusterv1alpha1.SystemNamespace,
		// A takeover costs little, since a replica that waits is connected and has
		// seen everything: so it need not be put off for long.
		LeaseDuration:      10 * time.Second,
		RenewDeadline:      7 * time.Second,
		RetryPeriod:        time.Second,
		MetricsBindAddress: "127.0.0.1:8080",
		ProbeBindAddress:   "127.0.0.1:10357",
		Webhook:            webhook.DefaultOptions(),
		// High enough that the API server's priority and fairness, and not the
		// client, decides; there to stop a runaway.
		KubeAPIQPS: 1000, KubeAPIBurst: 2000,
		ClusterAPIQPS: 1000, ClusterAPIBurst: 2000,
		ClusterStatusUpdateFrequency: 10 * time.Second,
		ClusterFailureThreshold:      30 * time.Second,
		ClusterSuccessThreshold:      30 * time.Second,
		ClusterMonitorGracePeriod:    40 * time.Second,
		ClusterEnablementInterval:    5 * time.Minute,
		UnreachablePolicy:            string(networkingv1alpha1.UnreachableRetain),
		UnreachableGracePeriod:       5 * time.Minute,
	}, nil
}

// AddFlags adds the flags to a set.
func (o *Options) AddFlags(fs *pflag.FlagSet) {
	fs.StringVar(&o.Kubeconfig, "kubeconfig", o.Kubeconfig, "Kubeconfig file of the hub. Empty: the pod's own account, or the KUBECONFIG environment variable.")
	fs.StringVar(&o.Context, "context", o.Context, "Context in the kubeconfig. Empty: its current one.")
	fs.StringSliceVar(&o.Controllers, "controllers", o.Controllers, "Controllers to run: '*' for all, 'name' for one, '-name' for all but one. Known: "+strings.Join(Names(), ", ")+".")
	o.Features.AddFlag(fs)
	logsapi.AddFlags(o.Logs, fs)

	fs.BoolVar(&o.LeaderElect, "leader-elect", o.LeaderElect, "Work only while holding the lease, so that of several replicas one works.")
	fs.StringVar(&o.LeaderElectNamespace, "leader-elect-resource-namespace", o.LeaderElectNamespace, "Namespace of the lease, on the hub.")
	fs.StringVar(&o.LeaderElectIdentity, "leader-elect-identity", o.LeaderElectIdentity, "Name of this replica, as the lease holds it. A replica that is killed and started again under its name works on at once, without waiting for its own lease to run out. No two replicas may have one name; a pod's name is a good one. Empty: a name made for this run.")
	fs.DurationVar(&o.LeaseDuration, "leader-elect-lease-duration", o.LeaseDuration, "How long others wait for a leader that does not renew its lease.")
	fs.DurationVar(&o.RenewDeadline, "leader-elect-renew-deadline", o.RenewDeadline, "How long a leader tries to renew its lease before it stops.")
	fs.DurationVar(&o.RetryPeriod, "leader-elect-retry-period", o.RetryPeriod, "How often the lease is renewed, or tried for.")

	fs.StringVar(&o.MetricsBindAddress, "metrics-bind-address", o.MetricsBindAddress, "Address of the metrics endpoint. '0' switches it off; ':8080' serves every interface.")
	fs.StringVar(&o.ProbeBindAddress, "health-probe-bind-address", o.ProbeBindAddress, "Address of /healthz and /readyz. '0' switches it off; ':10357' serves every interface.")
	fs.StringVar(&o.PprofBindAddress, "pprof-bind-address", o.PprofBindAddress, "Address of the profiling endpoint. Empty: none.")

	o.Webhook.AddFlags(fs)

	fs.Float32Var(&o.KubeAPIQPS, "kube-api-qps", o.KubeAPIQPS, "Requests per second to the hub's API server. Below zero: no bound.")
	fs.IntVar(&o.KubeAPIBurst, "kube-api-burst", o.KubeAPIBurst, "Requests to the hub's API server in a burst.")
	fs.Float32Var(&o.ClusterAPIQPS, "cluster-api-qps", o.ClusterAPIQPS, "Requests per second to each member's API server. Below zero: no bound.")
	fs.IntVar(&o.ClusterAPIBurst, "cluster-api-burst", o.ClusterAPIBurst, "Requests to each member's API server in a burst.")

	fs.DurationVar(&o.ClusterStatusUpdateFrequency, "cluster-status-update-frequency", o.ClusterStatusUpdateFrequency,
		"How often a healthy member is asked for its health.")
	fs.DurationVar(&o.ClusterFailureThreshold, "cluster-failure-threshold", o.ClusterFailureThreshold, "How long a member must be silent before it is not Ready. Its endpoints stay all the same, see unreachableProviders.")
	fs.DurationVar(&o.ClusterSuccessThreshold, "cluster-success-threshold", o.ClusterSuccessThreshold, "How long a member must answer before it is Ready again. It is worked with at once.")
	fs.DurationVar(&o.ClusterMonitorGracePeriod, "cluster-monitor-grace-period", o.ClusterMonitorGracePeriod, "How long a pull member's lease may be overdue before its state is Unknown.")
	fs.DurationVar(&o.ClusterEnablementInterval, "cluster-api-enablement-interval", o.ClusterEnablementInterval,
		"How often a member is asked which kinds it serves.")
	fs.BoolVar(&o.ClusterNodeSummary, "cluster-node-summary", o.ClusterNodeSummary, "Count the nodes of members as often, of those that were joined with --node-summary.")

	fs.StringVar(&o.UnreachablePolicy, "unreachable-providers-policy", o.UnreachablePolicy,
		"What happens to the endpoints of a provider whose API server cannot be reached, where a MultiClusterService does not say it itself: "+
			strings.Join(unreachablePolicies, ", ")+". An API server that does not answer says nothing of its pods.")
	fs.DurationVar(&o.UnreachableGracePeriod, "unreachable-providers-grace-period", o.UnreachableGracePeriod,
		"How long a provider must be unreachable before a policy other than Retain takes effect.")
}

// unreachablePolicies are the values of --unreachable-providers-policy.
var unreachablePolicies = []string{
	string(networkingv1alpha1.UnreachableRetain), string(networkingv1alpha1.UnreachableMarkNotReady), string(networkingv1alpha1.UnreachableWithdraw),
}

// unreachable is what the flags say of providers that cannot be reached.
func (o *Options) unreachable() networkingv1alpha1.UnreachableProviders {
	return networkingv1alpha1.UnreachableProviders{
		Policy:      networkingv1alpha1.UnreachablePolicy(o.UnreachablePolicy),
		GracePeriod: &metav1.Duration{Duration: o.UnreachableGracePeriod},
	}
}

// Validate says what is wrong with the options, all at once.
func (o *Options) Validate() error {
	errs := []error{o.Webhook.Validate()}
	for _, name := range o.Controllers {
		bare := strings.TrimPrefix(name, "-")
		if bare != "*" && !slices.Contains(Names(), bare) {
			errs = append(errs, fmt.Errorf("--controllers: unknown controller %q: known are %s", bare, strings.Join(Names(), ", ")))
		}
	}
	for _, d := range []struct {
		flag         string
		value, least time.Duration
	}{
		{"cluster-status-update-frequency", o.ClusterStatusUpdateFrequency, time.Second},
		{"cluster-api-enablement-interval", o.ClusterEnablementInterval, time.Second},
		{"cluster-failure-threshold", o.ClusterFailureThreshold, 0},
		{"cluster-success-threshold", o.ClusterSuccessThreshold, 0},
		{"cluster-monitor-grace-period", o.ClusterMonitorGracePeriod, 0},
		{"unreachable-providers-grace-period", o.UnreachableGracePeriod, 0},
	} {
		if d.value < d.least {
			errs = append(errs, fmt.Errorf("--%s: %s is too short: at least %s", d.flag, d.value, d.least))
		}
	}
	if !slices.Contains(unreachablePolicies, o.UnreachablePolicy) {
		errs = append(errs, fmt.Errorf("--unreachable-providers-policy: unknown policy %q: say %s", o.UnreachablePolicy, strings.Join(unreachablePolicies, ", ")))
	}
	if o.LeaderElect && o.LeaseDuration <= o.RenewDeadline {
		errs = append(errs, fmt.Errorf("--leader-elect-lease-duration (%s) must be longer than --leader-elect-renew-deadline (%s), so that a leader stops before the next one starts", o.LeaseDuration, o.RenewDeadline))
	}
	return errors.Join(errs...)
}

// runs says whether a controller of the list is to run.
func (o *Options) runs(e entry) bool {
	return o.enabled(e.name) && (!e.gated || o.Features.Enabled(feature.MultiClusterService))
}

// enabled says whether a controller is asked for.
func (o *Options) enabled(name string) bool {
	switch {
	case slices.Contains(o.Controllers, "-"+name):
		return false
	case slices.Contains(o.Controllers, name):
		return true
	}
	return slices.Contains(o.Controllers, "*")
}
