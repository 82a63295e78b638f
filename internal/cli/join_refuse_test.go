package cli_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	clusterv1alpha1 "github.com/namesake-io/namesake/api/cluster/v1alpha1"
)

// nameRule ends each message about a cluster's name.
const nameRule = `a cluster's name is a DNS-1123 label of at most 48 characters (lower case letters, digits and '-', no dots)`

func TestJoinRefuses(t *testing.T) {
	needServers(t)
	dir := t.TempDir()
	broken := writeFile(t, dir, "broken.kubeconfig", "this is: [no kubeconfig")
	empty := writeFile(t, dir, "empty.kubeconfig", "apiVersion: v1\nkind: Config\n")
	unreachable := editedKubeconfig(t, func(c *cluster) { c.Server = "https://127.0.0.1:1" })
	plain := editedKubeconfig(t, func(c *cluster) { c.Server = "http://127.0.0.1:1" })
	serverName := editedKubeconfig(t, func(c *cluster) { c.TLSServerName = "elsewhere.example" })
	wrongCA := editedKubeconfig(t, func(c *cluster) { c.CertificateAuthorityData = hub.config.CAData })
	nobody := member.kubeconfigOf(t, "nobody")
	reader := member.kubeconfigOf(t, "reader", rbacv1.PolicyRule{
		APIGroups: []string{""}, Resources: []string{"namespaces", "configmaps"}, Verbs: []string{"get"},
	})
	nobodyOnHub := hub.kubeconfigOf(t, "nobody-on-hub")
	long := strings.Repeat("a", 49)

	for name, tc := range map[string]struct {
		args     []string
		wantCode int
		want     string
	}{
		"name of 49 characters": {
			args: joinArgs(long), wantCode: 2,
			want: `error: the name "` + long + `" is 49 characters long: ` + nameRule + `
hint:  choose a shorter name: it becomes part of the names of namespaces and slices
`,
		},
		"name with a dot": {
			args: joinArgs("eu.west"), wantCode: 2,
			want: `error: the name "eu.west" has a dot: ` + nameRule + `
hint:  for example "eu-west"
`,
		},
		"name in capitals": {
			args: joinArgs("EU"), wantCode: 2,
			want: `error: the name "EU" is not valid: ` + nameRule + `
hint:  for example "member1" or "eu-west-1a"
`,
		},
		"no name": {
			args: []string{"join"}, wantCode: 2,
			want: `error: NAME is missing: namesakectl join NAME --cluster-kubeconfig FILE [flags]
hint:  namesakectl join --help
`,
		},
		"no kubeconfig": {
			args: []string{"join", "x"}, wantCode: 2,
			want: `error: --cluster-kubeconfig is required
hint:  --cluster-kubeconfig FILE names the kubeconfig of the cluster to join
`,
		},
		"missing file": {
			args: joinArgs("x", "--cluster-kubeconfig", "nowhere.kubeconfig"), wantCode: 1,
			want: `error: reading kubeconfig nowhere.kubeconfig: stat nowhere.kubeconfig: no such file or directory
hint:  --cluster-kubeconfig names the kubeconfig of the cluster to join, --cluster-context one of its contexts
`,
		},
		"file without contexts": {
			args: joinArgs("x", "--cluster-kubeconfig", empty), wantCode: 1,
			want: `error: reading kubeconfig ` + empty + `: it has no current-context and none was named
hint:  --cluster-kubeconfig names the kubeconfig of the cluster to join, --cluster-context one of its contexts
`,
		},
		"unknown context": {
			args: joinArgs("x", "--cluster-context", "nope"), wantCode: 1,
			want: `error: reading kubeconfig MEMBER.kubeconfig, context nope: it has no context "nope"
hint:  --cluster-kubeconfig names the kubeconfig of the cluster to join, --cluster-context one of its contexts
`,
		},
		"unreachable": {
			args: joinArgs("x", "--cluster-kubeconfig", unreachable), wantCode: 1,
			want: `error: the member https://127.0.0.1:1 cannot be reached (kubeconfig ` + unreachable +
				`, context envtest): dial tcp 127.0.0.1:1: connect: connection refused
hint:  is its API server up, and is the address right from here?
`,
		},
		"unreachable hub": {
			args: joinArgs("x", "--kubeconfig", unreachable), wantCode: 1,
			want: `error: the hub https://127.0.0.1:1 cannot be reached (kubeconfig ` + unreachable +
				`, context envtest): dial tcp 127.0.0.1:1: connect: connection refused
hint:  is its API server up, and is the address right from here?
`,
		},
		"no https": {
			args: joinArgs("x", "--cluster-kubeconfig", plain), wantCode: 1,
			want: `error: kubeconfig ` + plain + ` names the API server "http://127.0.0.1:1", which is no https URL
hint:  the hub sends a token to the member and does so through TLS only
`,
		},
		"tls-server-name": {
			args: joinArgs("x", "--cluster-kubeconfig", serverName), wantCode: 1,
			want: `error: kubeconfig ` + serverName + ` sets tls-server-name "elsewhere.example", which a Cluster cannot express
hint:  use an address that the API server's certificate names, and remove tls-server-name
`,
		},
		"another server's certificate authority": {
			args: joinArgs("x", "--cluster-kubeconfig", wrongCA), wantCode: 1,
			want: `error: the member MEMBER cannot be reached (kubeconfig ` + wrongCA + `, context envtest): ` +
				`tls: failed to verify certificate: x509: certificate signed by unknown authority ` +
				`(possibly because of "x509: ECDSA verification failure" while trying to verify candidate authority certificate "envtest-environment")
hint:  the kubeconfig's certificate authority does not fit this API server: is the file the right one, and fresh?
`,
		},
		"no permission at all": {
			args: joinArgs("x", "--cluster-kubeconfig", nobody), wantCode: 1,
			want: `error: user "nobody" may not get namespaces in the namespace "kube-system" of the member MEMBER
hint:  let an administrator grant this, or use a kubeconfig of somebody who may (kubeconfig ` + nobody + `, context envtest was used)
`,
		},
		"not enough permissions": {
			args: joinArgs("x", "--cluster-kubeconfig", reader), wantCode: 1,
			want: `error: the user of kubeconfig ` + reader + ` may not do this in the member MEMBER: create namespaces, patch namespaces, ` +
				`create serviceaccounts in karmada-cluster, patch serviceaccounts in karmada-cluster, create secrets in karmada-cluster, ` +
				`patch secrets in karmada-cluster, create configmaps in karmada-cluster, patch configmaps in karmada-cluster, ` +
				`create clusterroles.rbac.authorization.k8s.io, patch clusterroles.rbac.authorization.k8s.io, ` +
				`create clusterrolebindings.rbac.authorization.k8s.io, patch clusterrolebindings.rbac.authorization.k8s.io
hint:  use a kubeconfig of somebody who may, for example one with the role cluster-admin
`,
		},
		"no permission on the hub": {
			args: joinArgs("x", "--kubeconfig", nobodyOnHub), wantCode: 1,
			want: `error: user "nobody-on-hub" may not list clusters.cluster.karmada.io at the cluster scope of the hub HUB
hint:  let an administrator grant this, or use a kubeconfig of somebody who may (kubeconfig ` + nobodyOnHub + `, context envtest was used)
`,
		},
		"hub without CRDs": {
			args: joinArgs("x", "--kubeconfig", member.kubeconfig), wantCode: 1,
			want: `error: the hub MEMBER does not serve Namesake's kinds
hint:  install them: namesakectl install
`,
		},
		"bad api-endpoint": {
			args: joinArgs("x", "--api-endpoint", "10.0.0.1:6443"), wantCode: 2,
			want: `error: --api-endpoint "10.0.0.1:6443" is no https URL, for example https://10.0.0.1:6443
`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := run(t, tc.args...)
			if r.code != tc.wantCode {
				t.Errorf("exit code = %d, want %d", r.code, tc.wantCode)
			}
			if diff := cmp.Diff(tc.want, steady(r.err)); diff != "" {
				t.Errorf("stderr (-want +got):\n%s", diff)
			}
			if left := leftInMember(t); len(left) > 0 {
				t.Errorf("left in the member: %v", left)
			}
		})
	}
	t.Run("file that is no kubeconfig", func(t *testing.T) {
		r := run(t, joinArgs("x", "--cluster-kubeconfig", broken)...)
		if want := "error: reading kubeconfig " + broken + ": error loading config file"; r.code != 1 || !strings.HasPrefix(r.err, want) {
			t.Errorf("got %s\nwant exit code 1 and %q", r, want)
		}
	})
}

func TestJoinConflicts(t *testing.T) {
	needServers(t)
	join(t, "first")
	other := &clusterv1alpha1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Name: "taken"},
		Spec:       clusterv1alpha1.ClusterSpec{ID: "another", SyncMode: clusterv1alpha1.Push, APIEndpoint: "https://10.0.0.1:6443"},
	}
	hub.create(t, other)
	before := leftInMember(t)

	for name, tc := range map[string]struct {
		args []string
		want string
	}{
		"joined under another name": {
			args: joinArgs("second"),
			want: `error: this cluster has already joined the hub HUB as "first"
hint:  it can have one name only: keep that one, or run first: namesakectl unjoin first
`,
		},
		"force does not give it two names": {
			args: joinArgs("second", "--force"),
			want: `error: this cluster has already joined the hub HUB as "first"
hint:  it can have one name only: keep that one, or run first: namesakectl unjoin first
`,
		},
		"name taken by another cluster": {
			args: []string{"join", "taken", "--cluster-kubeconfig", hub.kubeconfig},
			want: `error: the name "taken" is taken on the hub by another cluster (https://10.0.0.1:6443, id another)
hint:  choose another name, or run first: namesakectl unjoin taken
`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := run(t, tc.args...)
			if r.code != 1 {
				t.Errorf("exit code = %d, want 1", r.code)
			}
			if diff := cmp.Diff(tc.want, steady(r.err)); diff != "" {
				t.Errorf("stderr (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(before, leftInMember(t)); diff != "" {
				t.Errorf("objects in the member (-before +after):\n%s", diff)
			}
		})
	}
}

// cluster is a kubeconfig's entry for an API server.
type cluster = clientcmdapi.Cluster

func editedKubeconfig(t *testing.T, edit func(*cluster)) string {
	t.Helper()
	config, err := clientcmd.LoadFromFile(member.kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range config.Clusters {
		edit(c)
	}
	file := filepath.Join(t.TempDir(), "edited.kubeconfig")
	if err := clientcmd.WriteToFile(*config, file); err != nil {
		t.Fatal(err)
	}
	return file
}

func writeFile(t *testing.T, dir, name, content string) string {
	t.Helper()
	file := filepath.Join(dir, name)
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}
