package hub

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/namesake-io/namesake/api/cluster/v1alpha1"
)

// parse reads flags as the command does.
func parse(t *testing.T, args ...string) (*Options, error) {
	t.Helper()
	opts, err := NewOptions()
	if err != nil {
		t.Fatal(err)
	}
	fs := pflag.NewFlagSet("test", pflag.ContinueOnError)
	opts.AddFlags(fs)
	return opts, fs.Parse(args)
}

// Which controllers run, for what a user says.
func TestRunning(t *testing.T) {
	const all = "cluster namespace multiclusterservice binding execution endpointsliceCollect endpointsliceDispatch"
	for args, want := range map[string]string{
		"":                                      all,
		"--controllers=*":                       all,
		"--controllers=*,-namespace,-execution": "cluster multiclusterservice binding endpointsliceCollect endpointsliceDispatch",
		// Beside Karmada, which has the others.
		"--controllers=multiclusterservice,endpointsliceCollect,endpointsliceDispatch": "multiclusterservice endpointsliceCollect endpointsliceDispatch",
		"--controllers=-namespace":                  "",
		"--feature-gates=MultiClusterService=false": "cluster namespace binding execution",
		"--feature-gates=MultiClusterService=false --controllers=multiclusterservice,cluster": "cluster",
	} {
		t.Run(args, func(t *testing.T) {
			opts, err := parse(t, strings.Fields(args)...)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, e := range controllers() {
				if opts.runs(e) {
					got = append(got, e.name)
				}
			}
			if diff := cmp.Diff(strings.Fields(want), got); diff != "" && len(got)+len(want) > 0 {
				t.Errorf("controllers (-want +got):\n%s", diff)
			}
		})
	}
}

func TestValidate(t *testing.T) {
	for args, want := range map[string][]string{
		"": nil,
		"--controllers=nope,-neither": {
			`--controllers: unknown controller "nope": known are cluster, namespace, multiclusterservice`, `unknown controller "neither"`,
		},
		"--controllers=-*":                       nil,
		"--cluster-status-update-frequency=10ms": {"--cluster-status-update-frequency: 10ms is too short: at least 1s"},
		"--cluster-api-enablement-interval=0":    {"--cluster-api-enablement-interval: 0s is too short: at least 1s"},
		"--cluster-failure-threshold=-1s":        {"--cluster-failure-threshold: -1s is too short: at least 0s"},
		"--cluster-success-threshold=-1s":        {"--cluster-success-threshold"},
		"--unreachable-providers-policy=Drop":    {`--unreachable-providers-policy: unknown policy "Drop": say Retain, MarkNotReady, Withdraw`},
		"--unreachable-providers-policy=Withdraw --unreachable-providers-grace-period=-1s": {"--unreachable-providers-grace-period: -1s is too short"},
		"--cluster-failure-threshold=0":                         nil,
		"--leader-elect-lease-duration=5s":                      {"--leader-elect-lease-duration (5s) must be longer than --leader-elect-renew-deadline (7s)"},
		"--leader-elect-lease-duration=5s --leader-elect=false": nil,
		"--cluster-failure-threshold=-1s --controllers=nope":    {"--controllers", "--cluster-failure-threshold"},
	} {
		t.Run(args, func(t *testing.T) {
			opts, err := parse(t, strings.Fields(args)...)
			if err != nil {
				t.Fatal(err)
			}
			err = opts.Validate()
			if (err != nil) != (len(want) > 0) {
				t.Fatalf("error %v, want %q", err, want)
			}
			for _, part := range want {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("want %q in: %v", part, err)
				}
			}
		})
	}
	if _, err := parse(t, "--feature-gates=Nope=true"); err == nil || !strings.Contains(err.Error(), "Nope") {
		t.Errorf("an unknown feature: %v, want an error that names it", err)
	}
}

// Flags that Karmada has keep their names and their values.
func TestKarmadasFlags(t *testing.T) {
	opts, err := NewOptions()
	if err != nil {
		t.Fatal(err)
	}
	fs := pflag.NewFlagSet("test", pflag.ContinueOnError)
	opts.AddFlags(fs)
	for name, want := range map[string]string{
		"cluster-status-update-frequency": "10s", "cluster-failure-threshold": "30s", "cluster-success-threshold": "30s",
		"cluster-monitor-grace-period": "40s", "leader-elect": "true", "controllers": "[*]",
		"kube-api-qps": "", "kube-api-burst": "", "cluster-api-qps": "", "cluster-api-burst": "",
		"metrics-bind-address": "", "health-probe-bind-address": "", "feature-gates": "",
	} {
		flag := fs.Lookup(name)
		if flag == nil {
			t.Errorf("there is no flag --%s", name)
		} else if want != "" && flag.DefValue != want {
			t.Errorf("--%s is %s, want %s", name, flag.DefValue, want)
		}
	}
}

// Of the changes of a Cluster only those may change who takes part that the core
// sees: probes that find all well cost nothing.
func TestSelectionDiffers(t *testing.T) {
	type clusterEdit func(*clusterv1alpha1.Cluster)
	condition := func(c metav1.Condition) clusterEdit {
		return func(cluster *clusterv1alpha1.Cluster) {
			cluster.Status.Conditions = append(cluster.Status.Conditions, c)
		}
	}
	at := metav1.NewTime(time.Unix(1000, 0))
	for title, tc := range map[string]struct {
		edit clusterEdit
		want bool
	}{
		"nothing":          {edit: func(*clusterv1alpha1.Cluster) {}},
		"its version":      {edit: func(c *clusterv1alpha1.Cluster) { c.Status.KubernetesVersion = "v2" }},
		"its annotations":  {edit: func(c *clusterv1alpha1.Cluster) { c.Annotations = map[string]string{"a": "b"} }},
		"it is ready":      {edit: condition(metav1.Condition{Type: "Ready", Status: metav1.ConditionTrue, LastTransitionTime: at})},
		"it is not ready":  {edit: condition(metav1.Condition{Type: "Ready", Status: metav1.ConditionFalse, Reason: clusterv1alpha1.ReasonClusterNotReady, LastTransitionTime: at})},
		"it is silent":     {edit: condition(metav1.Condition{Type: "Ready", Status: metav1.ConditionFalse, Reason: clusterv1alpha1.ReasonClusterNotReachable, LastTransitionTime: at}), want: true},
		"its labels":       {edit: func(c *clusterv1alpha1.Cluster) { c.Labels = map[string]string{"region": "eu"} }, want: true},
		"it leaves":        {edit: func(c *clusterv1alpha1.Cluster) { c.DeletionTimestamp = &at }, want: true},
		"it is another":    {edit: func(c *clusterv1alpha1.Cluster) { c.UID = "2" }, want: true},
		"it has no slices": {edit: condition(metav1.Condition{Type: clusterv1alpha1.ConditionCompleteAPIEnablements, Status: metav1.ConditionTrue}), want: true},
	} {
		t.Run(title, func(t *testing.T) {
			old := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "a", UID: "1"}}
			current := old.DeepCopy()
			tc.edit(current)
			if got := selectionDiffers(old, current); got != tc.want {
				t.Errorf("differs %v, want %v", got, tc.want)
			}
		})
	}
	if !selectionDiffers(nil, &clusterv1alpha1.Cluster{}) {
		t.Error("a cluster that came differs from none")
	}
}
