package rules

import (
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	clusterv1alpha1 "github.com/namesake-io/namesake/api/cluster/v1alpha1"
)

var syncModes = []clusterv1alpha1.ClusterSyncMode{clusterv1alpha1.Push, clusterv1alpha1.Pull}

// Cluster says what is wrong with a Cluster. old is the object before an update,
// nil on creation. As with a MultiClusterService, what stays as it was passes.
func Cluster(cluster, old *clusterv1alpha1.Cluster) (errs field.ErrorList) {
	if cluster.DeletionTimestamp != nil {
		return nil
	}
	if old == nil {
		errs = append(errs, clusterName(cluster.Name, field.NewPath("metadata", "name"))...)
	}
	if !ClusterChanged(cluster, old) {
		return errs
	}
	spec, path := &cluster.Spec, field.NewPath("spec")
	if !slices.Contains(syncModes, spec.SyncMode) {
		errs = append(errs, field.NotSupported(path.Child("syncMode"), spec.SyncMode, syncModes))
	}
	if why := badEndpoint(spec.APIEndpoint); why != "" {
		errs = append(errs, field.Invalid(path.Child("apiEndpoint"), spec.APIEndpoint,
			why+": give the URL of the member's API server, for example https://10.0.0.1:6443"))
	}
	if why := badURL(spec.ProxyURL, "http", "https", "socks5"); spec.ProxyURL != "" && why != "" {
		errs = append(errs, field.Invalid(path.Child("proxyURL"), redacted(spec.ProxyURL),
			why+": give the URL of a proxy, for example http://10.0.0.2:3128"))
	}
	errs = append(errs, secretRef(spec.SecretRef, path.Child("secretRef"))...)
	return append(errs, secretRef(spec.ImpersonatorSecretRef, path.Child("impersonatorSecretRef"))...)
}

// ClusterChanged says that an update asks for something else than before. Taints
// are the controllers' to change.
func ClusterChanged(cluster, old *clusterv1alpha1.Cluster) bool {
	if old == nil {
		return true
	}
	is, was := cluster.Spec.DeepCopy(), old.Spec.DeepCopy()
	is.Taints, was.Taints = nil, nil
	return !equality.Semantic.DeepEqual(is, was)
}

// ClusterWarnings says what keeps a Cluster from being worked with, though it may
// come later, or is unsafe.
func ClusterWarnings(cluster *clusterv1alpha1.Cluster) (out []string) {
	spec := &cluster.Spec
	if spec.SyncMode == clusterv1alpha1.Push {
		if spec.APIEndpoint == "" {
			out = append(out, "spec.apiEndpoint is empty: a Push cluster is not connected until it is set; `namesakectl join` does all that is needed")
		}
		if spec.SecretRef == nil {
			out = append(out, "spec.secretRef is empty: a Push cluster is not connected without a credential; `namesakectl join` does all that is needed")
		}
	}
	if strings.HasPrefix(spec.APIEndpoint, "http://") {
		out = append(out, "spec.apiEndpoint is not https: the credential crosses the network readable by anybody on the way")
	}
	if spec.InsecureSkipTLSVerification {
		out = append(out, "spec.insecureSkipTLSVerification lets anybody on the way pose as the cluster: for tests only")
	}
	return out
}

// badEndpoint says what is wrong with the address of an API server: a URL, or the
// host, with or without a port, that Karmada also allows. Empty: nothing.
func badEndpoint(s string) string {
	switch {
	case s == "":
		return ""
	case strings.Contains(s, "://"):
		return badURL(s, "https", "http")
	}
	return badURL("https://"+s, "https")
}

// badURL says what is wrong with a URL. Empty: nothing.
func badURL(s string, schemes ...string) string {
	u, err := url.Parse(s)
	switch {
	case err != nil:
		return "is no URL"
	case !slices.Contains(schemes, u.Scheme):
		return fmt.Sprintf("has the scheme %q, not %s", u.Scheme, strings.Join(schemes, " or "))
	case u.Hostname() == "":
		return "names no host"
	case net.ParseIP(u.Hostname()) == nil && len(validation.IsDNS1123Subdomain(strings.ToLower(u.Hostname()))) > 0:
		return fmt.Sprintf("names the host %q, which is neither an address nor a name", u.Hostname())
	}
	return ""
}

// redacted is a URL without its password, which may not be told to others.
func redacted(s string) string {
	if u, err := url.Parse(s); err == nil {
		return u.Redacted()
	}
	return "(withheld: it cannot be parsed and may hold a password)"
}

func secretRef(ref *clusterv1alpha1.LocalSecretReference, path *field.Path) (errs field.ErrorList) {
	if ref == nil {
		return nil
	}
	for name, value := range map[string]string{"namespace": ref.Namespace, "name": ref.Name} {
		switch {
		case value == "":
			errs = append(errs, field.Required(path.Child(name), "name the Secret on the hub, or leave secretRef out"))
		case len(validation.IsDNS1123Subdomain(value)) > 0:
			errs = append(errs, field.Invalid(path.Child(name), value, "no Secret on the hub can have it: lower case letters, digits, '-' and '.'"))
		}
	}
	slices.SortFunc(errs, func(a, b *field.Error) int { return strings.Compare(a.Field, b.Field) })
	return errs
}
