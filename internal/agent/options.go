package agent

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/component-base/logs"
	logsapi "k8s.io/component-base/logs/api/v1"

	clusterv1alpha1 "github.com/namesake-io/namesake/api/cluster/v1alpha1"
)

// Options are what the flags of the agent say.
type Options struct {
	// MemberKubeconfig and MemberContext lead to the agent's own cluster.
	MemberKubeconfig string
	MemberContext    string
	// Credential is the Secret there that leads to the hub, as namespace/name.
	Credential string
	// CredentialTTL is for how long a credential is asked for.
	CredentialTTL time.Duration

	Logs *logsapi.LoggingConfiguration

	MetricsBindAddress string
	ProbeBindAddress   string
	// metrics is where those of a running agent are registered. Nil: nowhere, for a
	// process that holds other parts, too.
	metrics prometheus.Registerer

	KubeAPIQPS      float32
	KubeAPIBurst    int
	ClusterAPIQPS   float32
	ClusterAPIBurst int

	ClusterStatusUpdateFrequency time.Duration
	ClusterFailureThreshold      time.Duration
	ClusterSuccessThreshold      time.Duration
	ClusterLeaseRenewInterval    time.Duration
	ClusterEnablementInterval    time.Duration
	ClusterNodeSummary           bool
}

// NewOptions returns the defaults.
func NewOptions() *Options {
	return &Options{
		Credential:         clusterv1alpha1.SystemNamespace + "/" + clusterv1alpha1.AgentName,
		CredentialTTL:      7 * 24 * time.Hour,
		Logs:               logs.NewOptions(),
		MetricsBindAddress: "127.0.0.1:8080",
		ProbeBindAddress:   "127.0.0.1:10357",
		// High enough that the API servers' priority and fairness, and not the
		// client, decides; there to stop a runaway.
		KubeAPIQPS: 1000, KubeAPIBurst: 2000,
		ClusterAPIQPS: 1000, ClusterAPIBurst: 2000,
		ClusterStatusUpdateFrequency: 10 * time.Second,
		ClusterFailureThreshold:      30 * time.Second,
		ClusterSuccessThreshold:      30 * time.Second,
		ClusterLeaseRenewInterval:    10 * time.Second,
		ClusterEnablementInterval:    5 * time.Minute,
	}
}

// AddFlags adds the flags to a set.
func (o *Options) AddFlags(fs *pflag.FlagSet) {
	fs.StringVar(&o.MemberKubeconfig, "member-kubeconfig", o.MemberKubeconfig, "Kubeconfig file of the agent's own cluster, with a token in it. Empty: the pod's own account.")
	fs.StringVar(&o.MemberContext, "member-context", o.MemberContext, "Context in that kubeconfig. Empty: its current one.")
	fs.StringVar(&o.Credential, "credential", o.Credential, "Secret in the agent's own cluster, as namespace/name, that says where the hub is and holds the credential for it. 'namesakectl register' makes it, and the agent renews it.")
	fs.DurationVar(&o.CredentialTTL, "credential-ttl", o.CredentialTTL, "For how long the agent asks for a credential, which it renews at half of that. One that is away for longer has to be registered again.")
	logsapi.AddFlags(o.Logs, fs)

	fs.StringVar(&o.MetricsBindAddress, "metrics-bind-address", o.MetricsBindAddress, "Address of the metrics endpoint. '0' switches it off; ':8080' serves every interface.")
	fs.StringVar(&o.ProbeBindAddress, "health-probe-bind-address", o.ProbeBindAddress, "Address of /healthz and /readyz. '0' switches it off; ':10357' serves every interface.")

	fs.Float32Var(&o.KubeAPIQPS, "kube-api-qps", o.KubeAPIQPS, "Requests per second to the hub's API server. Below zero: no bound.")
	fs.IntVar(&o.KubeAPIBurst, "kube-api-burst", o.KubeAPIBurst, "Requests to the hub's API server in a burst.")
	fs.Float32Var(&o.ClusterAPIQPS, "cluster-api-qps", o.ClusterAPIQPS, "Requests per second to the cluster's own API server. Below zero: no bound.")
	fs.IntVar(&o.ClusterAPIBurst, "cluster-api-burst", o.ClusterAPIBurst, "Requests to the cluster's own API server in a burst.")

	fs.DurationVar(&o.ClusterStatusUpdateFrequency, "cluster-status-update-frequency", o.ClusterStatusUpdateFrequency,
		"How often a healthy API server is asked for its health.")
	fs.DurationVar(&o.ClusterFailureThreshold, "cluster-failure-threshold", o.ClusterFailureThreshold, "How long the cluster's API server must be silent before the cluster is not Ready.")
	fs.DurationVar(&o.ClusterSuccessThreshold, "cluster-success-threshold", o.ClusterSuccessThreshold,
		"How long it must answer before the cluster is Ready again.")
	fs.DurationVar(&o.ClusterLeaseRenewInterval, "cluster-lease-renew-interval", o.ClusterLeaseRenewInterval, "How often the hub is told that the agent lives. A quarter of the hub's --cluster-monitor-grace-period, or less.")
	fs.DurationVar(&o.ClusterEnablementInterval, "cluster-api-enablement-interval", o.ClusterEnablementInterval,
		"How often the cluster is asked which kinds it serves.")
	fs.BoolVar(&o.ClusterNodeSummary, "cluster-node-summary", o.ClusterNodeSummary, "Count the nodes of the cluster as often, if it was registered with --node-summary.")
}

// Validate says what is wrong with the options, all at once.
func (o *Options) Validate() error {
	var errs []error
	if key := o.credentialKey(); key.Namespace == "" || key.Name == "" {
		errs = append(errs, fmt.Errorf("--credential: %q is not namespace/name", o.Credential))
	}
	for _, d := range []struct {
		flag         string
		value, least time.Duration
	}{
		// The API server gives no token for less.
		{"credential-ttl", o.CredentialTTL, 10 * time.Minute},
		{"cluster-status-update-frequency", o.ClusterStatusUpdateFrequency, time.Second},
		{"cluster-lease-renew-interval", o.ClusterLeaseRenewInterval, time.Second},
		{"cluster-api-enablement-interval", o.ClusterEnablementInterval, time.Second},
		{"cluster-failure-threshold", o.ClusterFailureThreshold, 0},
		{"cluster-success-threshold", o.ClusterSuccessThreshold, 0},
	} {
		if d.value < d.least {
			errs = append(errs, fmt.Errorf("--%s: %s is too short: at least %s", d.flag, d.value, d.least))
		}
	}
	return errors.Join(errs...)
}

// credentialKey is the Secret of --credential.
func (o *Options) credentialKey() types.NamespacedName {
	namespace, name, _ := strings.Cut(o.Credential, "/")
	return types.NamespacedName{Namespace: namespace, Name: name}
}
