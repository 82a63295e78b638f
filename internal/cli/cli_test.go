package cli_test

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/namesake-io/namesake/api/cluster/v1alpha1"
	networkingv1alpha1 "github.com/namesake-io/namesake/api/networking/v1alpha1"
	"github.com/namesake-io/namesake/internal/cli"
)

func TestInstallIsIdempotent(t *testing.T) {
	needServers(t)
	r := succeed(t, "install") // TestMain was first
	want := `Installing on the hub HUB
  ✓ CustomResourceDefinition clusters.cluster.karmada.io: unchanged (TIME)
  ✓ CustomResourceDefinition multiclusterservices.networking.karmada.io: unchanged (TIME)
  ✓ CustomResourceDefinition resourcebindings.work.karmada.io: unchanged (TIME)
  ✓ CustomResourceDefinition works.work.karmada.io: unchanged (TIME)
  ✓ Namespace karmada-cluster: unchanged (TIME)
  ✓ served: clusters.cluster.karmada.io (TIME)
  ✓ served: multiclusterservices.networking.karmada.io (TIME)
  ✓ served: resourcebindings.work.karmada.io (TIME)
  ✓ served: works.work.karmada.io (TIME)
The hub is ready for ` + "`namesakectl join`" + `, in TIME
`
	if diff := cmp.Diff(want, steady(r.out)); diff != "" {
		t.Errorf("stdout (-want +got):\n%s", diff)
	}
}

func TestInstallDryRunChangesNothing(t *testing.T) {
	needServers(t)
	r := succeed(t, "install", "--dry-run", "--kubeconfig", member.kubeconfig)
	want := `Checking what an install would do on the hub MEMBER
  ✓ CustomResourceDefinition clusters.cluster.karmada.io: created (dry run) (TIME)
  ✓ CustomResourceDefinition multiclusterservices.networking.karmada.io: created (dry run) (TIME)
  ✓ CustomResourceDefinition resourcebindings.work.karmada.io: created (dry run) (TIME)
  ✓ CustomResourceDefinition works.work.karmada.io: created (dry run) (TIME)
  ✓ Namespace karmada-cluster: created (dry run) (TIME)
Nothing was changed; checked in TIME
`
	if diff := cmp.Diff(want, steady(r.out)); diff != "" {
		t.Errorf("stdout (-want +got):\n%s", diff)
	}
	if r := run(t, "get", "clusters", "--kubeconfig", member.kubeconfig); r.code != 1 {
		t.Errorf("the kinds are served after a dry run: %s", r)
	}
}

func TestInstallWithoutPermission(t *testing.T) {
	needServers(t)
	kubeconfig := hub.kubeconfigOf(t, "guest")
	r := run(t, "install", "--kubeconfig", kubeconfig)
	want := `error: user "guest" may not get customresourcedefinitions.apiextensions.k8s.io at the cluster scope of the hub HUB
hint:  let an administrator grant this, or use a kubeconfig of somebody who may (kubeconfig KUBECONFIG, context envtest was used)
`
	if diff := cmp.Diff(want, steady(r.err, kubeconfig, "KUBECONFIG")); r.code != 1 || diff != "" {
		t.Errorf("exit code %d; stderr (-want +got):\n%s", r.code, diff)
	}
}

// namespace makes one for the test.
func namespace(t *testing.T, name string) string {
	t.Helper()
	hub.create(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
	return name
}

func service(namespace, name string) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{
			{Name: "http", Port: 80}, {Name: "metrics", Port: 9090},
		}},
	}
}

func TestExpose(t *testing.T) {
	needServers(t)
	ns := namespace(t, "expose")
	hub.create(t, service(ns, "foo"))
	for _, name := range []string{"alpha", "beta"} {
		hub.create(t, &clusterv1alpha1.Cluster{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec:       clusterv1alpha1.ClusterSpec{SyncMode: clusterv1alpha1.Push, APIEndpoint: "https://" + name},
		})
	}

	const all = "multiclusterservice.networking.karmada.io/foo "
	for _, step := range []struct {
		name             string
		args             []string
		wantCode         int
		wantOut, wantErr string
	}{
		{
			name:    "client dry run",
			args:    []string{"foo", "--from", "alpha", "--port", "http:80", "--dry-run", "-o", "yaml"},
			wantOut: "apiVersion: networking.karmada.io/v1alpha1\nkind: MultiClusterService\nmetadata:\n  name: foo\n  namespace: expose\nspec:\n  ports:\n  - name: http\n    port: 80\n  providerClusters:\n  - name: alpha\n  types:\n  - CrossCluster\n",
		},
		{name: "server dry run", args: []string{"foo", "--dry-run=server"}, wantOut: all + "created (server dry run)\n"},
		{
			name:    "created",
			args:    []string{"foo", "--from", "alpha,beta", "--to", "beta", "--port", "http:80"},
			wantOut: all + "created\n",
		},
		{
			name:    "the same again",
			args:    []string{"foo", "--from", "beta,alpha", "--to", "beta", "--port", "http:80"},
			wantOut: all + "unchanged: it is exposed like that already\n",
		},
		{
			name: "different", args: []string{"foo", "--from", "alpha"}, wantCode: 1,
			wantErr: `error: expose/foo is already exposed, and differently: ports is [http:80], asked for was all; providerClusters is [alpha beta], asked for was [alpha]; consumerClusters is [beta], asked for was all
hint:  to change it: kubectl edit mcs foo -n expose
`,
		},
		{
			name: "another type", args: []string{"foo", "--from", "alpha,beta", "--to", "beta", "--port", "http:80", "--type", "LoadBalancer"}, wantCode: 1,
			wantErr: `error: expose/foo is already exposed, and differently: types is [CrossCluster], asked for was [LoadBalancer]
hint:  a type cannot be changed; to make a new one, first: kubectl delete mcs foo -n expose
`,
		},
		{
			name: "nothing there yet", args: []string{"later", "--from", "alpha,gamma", "--to", "delta", "-o", "name"},
			wantOut: "multiclusterservice.networking.karmada.io/later\n",
			wantErr: `warning: the hub has no Service expose/later: nothing is shared until it has
hint:    apply the Service that the clusters have to the hub as well
warning: not joined: gamma, delta
hint:    they count as soon as they join: namesakectl get clusters
`,
		},
		{
			name: "port that the Service lacks", args: []string{"foo", "--port", "81,metrics:9090", "--dry-run=server"},
			wantOut: all + "created (server dry run)\n",
			wantErr: "warning: Service expose/foo has no port 81\nhint:    it has: http:80, metrics:9090\n",
		},
		{
			name: "bad name", args: []string{"foo.bar"}, wantCode: 2,
			wantErr: `error: the name "foo.bar" is not one of a Service: a DNS-1035 label of at most 63 characters
hint:  lower case letters, digits and '-', starting with a letter
`,
		},
		{
			name: "bad cluster", args: []string{"foo", "--from", "alpha,EU.west"}, wantCode: 2,
			wantErr: `error: --from: the name "EU.west" has a dot: a cluster's name is a DNS-1123 label of at most 48 characters (lower case letters, digits and '-', no dots)
hint:  for example "EU-west"
`,
		},
		{
			name: "bad port", args: []string{"foo", "--port", "http:70000"}, wantCode: 2,
			wantErr: `error: --port "http:70000" has no port number from 1 to 65535
hint:  for example --port http:80, or --port 80
`,
		},
		{
			name: "bad type", args: []string{"foo", "--type", "NodePort"}, wantCode: 2,
			wantErr: "error: --type \"NodePort\" is neither CrossCluster nor LoadBalancer\n",
		},
		{
			name: "namespace that is not there", args: []string{"foo", "-n", "nowhere"}, wantCode: 1,
			wantErr: `warning: the hub has no Service nowhere/foo: nothing is shared until it has
hint:    apply the Service that the clusters have to the hub as well
error: the hub HUB has no namespace "nowhere"
hint:  create it there first, with the Service: kubectl create namespace nowhere
`,
		},
	} {
		t.Run(step.name, func(t *testing.T) {
			if step.name == "port that the Service lacks" {
				deleteMCS(t, ns, "foo")
			}
			r := run(t, append([]string{"expose", "-n", ns}, step.args...)...)
			if r.code != step.wantCode {
				t.Errorf("exit code = %d, want %d", r.code, step.wantCode)
			}
			if diff := cmp.Diff(step.wantOut, r.out); diff != "" {
				t.Errorf("stdout (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(step.wantErr, steady(r.err)); diff != "" {
				t.Errorf("stderr (-want +got):\n%s", diff)
			}
		})
	}
	deleteMCS(t, ns, "later")
}

func deleteMCS(t *testing.T, namespace, name string) {
	t.Helper()
	mcs := &networkingv1alpha1.MultiClusterService{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	if err := client.IgnoreNotFound(hub.client.Delete(context.Background(), mcs)); err != nil {
		t.Fatal(err)
	}
}

func TestGet(t *testing.T) {
	needServers(t)
	ns := namespace(t, "get")
	hub.create(t, &clusterv1alpha1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Name: "omega"},
		Spec:       clusterv1alpha1.ClusterSpec{SyncMode: clusterv1alpha1.Push, APIEndpoint: "https://omega"},
	})
	hub.create(t, &networkingv1alpha1.MultiClusterService{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "foo"},
		Spec:       networkingv1alpha1.MultiClusterServiceSpec{Types: []networkingv1alpha1.ExposureType{"CrossCluster"}},
	})
	for name, tc := range map[string]struct {
		args             []string
		wantCode         int
		wantOut, wantErr string
		contains         []string
	}{
		"clusters":           {args: []string{"clusters"}, contains: []string{"NAME", "VERSION", "omega", "Push", "Unknown"}},
		"clusters by name":   {args: []string{"clusters", "omega", "-o", "name"}, wantOut: "cluster.cluster.karmada.io/omega\n"},
		"clusters as a List": {args: []string{"clusters", "omega", "-o", "json"}, contains: []string{`"kind": "List"`, `"kind": "Cluster"`, `"items": [`}},
		"jsonpath":           {args: []string{"clusters", "-o", "jsonpath={.items[*].spec.apiEndpoint}"}, wantOut: "https://omega"},
		"unknown cluster": {
			args: []string{"clusters", "omega", "psi", "-o", "name"}, wantCode: 1,
			wantOut: "cluster.cluster.karmada.io/omega\n",
			wantErr: "error: no such clusters on the hub HUB: psi\nhint:  there are: omega\n",
		},
		"services": {
			args:    []string{"services", "-n", ns},
			wantOut: "NAME   TYPES          PROVIDERS   CONSUMERS   ENDPOINTS   READY     AGE\nfoo    CrossCluster   <none>      <none>      <none>      Unknown   TIME\n",
		},
		"services of all namespaces": {
			args:    []string{"services", "-A"},
			wantOut: "NAMESPACE   NAME   TYPES          PROVIDERS   CONSUMERS   ENDPOINTS   READY     AGE\nget         foo    CrossCluster   <none>      <none>      <none>      Unknown   TIME\n",
		},
		"no services":          {args: []string{"services", "-n", "default"}, wantErr: "No services found in default namespace.\n"},
		"no services, as yaml": {args: []string{"services", "-n", "default", "-o", "yaml"}, wantOut: "apiVersion: v1\nitems: []\nkind: List\n"},
		"unknown service": {
			args: []string{"services", "bar", "-n", ns}, wantCode: 1,
			wantErr: "error: no such services in namespace get on the hub HUB: bar\nhint:  there are: foo\n",
		},
		"name and all namespaces": {
			args: []string{"services", "foo", "-A"}, wantCode: 2,
			wantErr: "error: names and --all-namespaces exclude each other: a name is one in a namespace\n",
		},
		"unknown format": {
			args: []string{"clusters", "-o", "xml"}, wantCode: 2,
			contains: nil,
			wantErr:  "error: unknown output format \"xml\"\nhint:  known are: wide, json, yaml, kyaml, name, go-template, go-template-file, template, templatefile, jsonpath, jsonpath-as-json, jsonpath-file\n",
		},
		"unknown kind": {
			args: []string{"servces"}, wantCode: 2,
			wantErr: "error: unknown command \"servces\" for \"namesakectl get\"\nhint:  did you mean: services?\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := run(t, append([]string{"get"}, tc.args...)...)
			if r.code != tc.wantCode {
				t.Errorf("exit code = %d, want %d", r.code, tc.wantCode)
			}
			if diff := cmp.Diff(tc.wantOut, steady(r.out)); diff != "" && tc.contains == nil {
				t.Errorf("stdout (-want +got):\n%s", diff)
			}
			for _, want := range tc.contains {
				if !strings.Contains(r.out, want) {
					t.Errorf("stdout does not hold %q:\n%s", want, r.out)
				}
			}
			if diff := cmp.Diff(tc.wantErr, steady(r.err)); diff != "" {
				t.Errorf("stderr (-want +got):\n%s", diff)
			}
		})
	}
}

func TestCompletion(t *testing.T) {
	needServers(t)
	ns := namespace(t, "completion")
	hub.create(t, service(ns, "svc-a"))
	hub.create(t, service(ns, "svc-b"))
	for _, name := range []string{"comp-a", "comp-b"} {
		hub.create(t, &clusterv1alpha1.Cluster{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec:       clusterv1alpha1.ClusterSpec{SyncMode: clusterv1alpha1.Push},
		})
	}
	for name, tc := range map[string]struct {
		args []string
		want []string
	}{
		"clusters":           {args: []string{"unjoin", "comp"}, want: []string{"comp-a", "comp-b"}},
		"clusters not twice": {args: []string{"get", "clusters", "comp-a", "comp"}, want: []string{"comp-b"}},
		"one argument only":  {args: []string{"unjoin", "comp-a", ""}},
		"list of clusters":   {args: []string{"expose", "foo", "--from", "comp-a,c"}, want: []string{"comp-a,comp-b"}},
		"services":           {args: []string{"expose", "-n", ns, "svc"}, want: []string{"svc-a", "svc-b"}},
		"namespaces":         {args: []string{"get", "services", "-n", "compl"}, want: []string{"completion"}},
		"contexts":           {args: []string{"get", "services", "--context", ""}, want: []string{"envtest"}},
		"member's contexts":  {args: []string{"join", "x", "--cluster-kubeconfig", member.kubeconfig, "--cluster-context", "e"}, want: []string{"envtest"}},
	} {
		t.Run(name, func(t *testing.T) {
			r := succeed(t, append([]string{"__complete"}, tc.args...)...)
			lines := strings.Split(strings.TrimSpace(r.out), "\n")
			got := lines[:len(lines)-1] // the last is cobra's directive
			if len(got) == 0 {
				got = nil
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("completions (-want +got):\n%s", diff)
			}
		})
	}
}

func TestCommandLine(t *testing.T) {
	for name, tc := range map[string]struct {
		program  string
		args     []string
		wantCode int
		wantOut  string
		wantErr  string
	}{
		"help": {
			program: "namesakectl", args: []string{"--help"},
			wantOut: "namesakectl join member1 --cluster-kubeconfig member1.kubeconfig",
		},
		"as a plugin of kubectl": {
			program: "kubectl-namesake", args: []string{"--help"},
			wantOut: "kubectl namesake join member1 --cluster-kubeconfig member1.kubeconfig",
		},
		"usage as a plugin of kubectl": {
			program: "/usr/local/bin/kubectl-namesake", args: []string{"join", "--help"},
			wantOut: "kubectl namesake join NAME --cluster-kubeconfig FILE",
		},
		"hint as a plugin of kubectl": {
			program: "kubectl-namesake", args: []string{"unjoin"}, wantCode: 2,
			wantErr: "error: NAME is missing: kubectl namesake unjoin NAME [flags]\nhint:  kubectl namesake unjoin --help\n",
		},
		"unknown command": {
			program: "namesakectl", args: []string{"jion"}, wantCode: 2,
			wantErr: "error: unknown command \"jion\" for \"namesakectl\"\nhint:  did you mean: join?\n",
		},
		"unknown flag": {
			program: "namesakectl", args: []string{"get", "clusters", "--colour"}, wantCode: 2,
			wantErr: "error: unknown flag: --colour\nhint:  namesakectl get clusters --help\n",
		},
		"too many arguments": {
			program: "namesakectl", args: []string{"version", "please"}, wantCode: 2,
			wantErr: "error: unexpected argument \"please\": namesakectl version [flags]\nhint:  namesakectl version --help\n",
		},
		"verbosity that would log tokens": {
			program: "namesakectl", args: []string{"version", "-v", "8"}, wantCode: 2,
			wantErr: "error: -v 8 is not between 0 and 7\nhint:  more would log tokens\n",
		},
		"missing kubeconfig": {
			program: "namesakectl", args: []string{"get", "clusters", "--kubeconfig", "nowhere"}, wantCode: 1,
			wantErr: "error: reading kubeconfig nowhere: stat nowhere: no such file or directory\nhint:  name the hub's kubeconfig with --kubeconfig FILE, and one of its contexts with --context NAME\n",
		},
		"version": {program: "namesakectl", args: []string{"version"}, wantOut: "v"},
		"shell":   {program: "namesakectl", args: []string{"completion", "bash"}, wantOut: "# bash completion"},
	} {
		t.Run(name, func(t *testing.T) {
			var out, errOut bytes.Buffer
			streams := genericiooptions.IOStreams{In: strings.NewReader(""), Out: &out, ErrOut: &errOut}
			code := cli.Run(t.Context(), append([]string{tc.program}, tc.args...), streams)
			if code != tc.wantCode {
				t.Errorf("exit code = %d, want %d", code, tc.wantCode)
			}
			if !strings.Contains(out.String(), tc.wantOut) {
				t.Errorf("stdout does not hold %q:\n%s", tc.wantOut, out.String())
			}
			if diff := cmp.Diff(tc.wantErr, errOut.String()); diff != "" {
				t.Errorf("stderr (-want +got):\n%s", diff)
			}
		})
	}
}
