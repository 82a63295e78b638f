package token

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"text/tabwriter"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/namesake-io/namesake/api/cluster/v1alpha1"
	workv1alpha1 "github.com/namesake-io/namesake/api/work/v1alpha1"
	"github.com/namesake-io/namesake/internal/cli/console"
	"github.com/namesake-io/namesake/internal/cli/membership"
	"github.com/namesake-io/namesake/internal/cli/target"
)

const (
	// leaderLease is the lease of the controller-manager, beside those of agents.
	leaderLease = "namesake-controller-manager"
	// expirationAnnotation, on the Secret that a token is bound to, says when the
	// token ends, and registrarLabel marks it.
	expirationAnnotation = "cluster.namesake.io/expiration"
	registrarLabel       = "cluster.namesake.io/registers"
)

// Create makes a token and says how to use it.
func Create(ctx context.Context, f *target.Factory, o Options) error {
	hub, err := f.Hub()
	if err != nil {
		return err
	}
	if err := checkName(ctx, hub, f.Program, o.Name); err != nil {
		return hub.Explain(f.Program, err)
	}
	if err := prepare(ctx, hub, o.Name); err != nil {
		return hub.Explain(f.Program, err)
	}
	request, err := issue(ctx, hub, o)
	if err != nil {
		return hub.Explain(f.Program, err)
	}
	server := o.HubServer
	if server == "" {
		server = hub.URL()
	}
	if o.Write != "" {
		if err := write(o, server, hub.Config.CAData, request.Status.Token); err != nil {
			return err
		}
		fmt.Fprintf(f.Out, "%s holds a token that registers one cluster as %s, once, until %s. Run with it, where the cluster can be reached:\n\n"+
			"  %s register %s --hub-kubeconfig %s --cluster-kubeconfig FILE\n",
			o.Write, o.Name, request.Status.ExpirationTimestamp.UTC().Format(time.RFC3339), f.Program, o.Name, o.Write)
		return nil
	}
	authority := ""
	if len(hub.Config.CAData) > 0 {
		authority = " --hub-ca-data " + base64.StdEncoding.EncodeToString(hub.Config.CAData)
	}
	fmt.Fprintf(f.Out, "This registers one cluster as %s, once, until %s. Run it where the cluster can be reached:\n\n"+
		"  NAMESAKE_TOKEN=%s \\\n  %s register %s --hub-server %s%s --cluster-kubeconfig FILE\n",
		o.Name, request.Status.ExpirationTimestamp.UTC().Format(time.RFC3339), request.Status.Token, f.Program, o.Name, server, authority)
	return nil
}

// checkName refuses a name that another cluster has.
func checkName(ctx context.Context, hub *target.Target, program, name string) error {
	cluster := &clusterv1alpha1.Cluster{}
	err := hub.Client.Get(ctx, client.ObjectKey{Name: name}, cluster)
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return fmt.Errorf("reading Cluster %s: %w", name, err)
	case cluster.DeletionTimestamp != nil:
		return console.WithHint(fmt.Errorf("the cluster %q is being unjoined from the hub", name),
			"wait until `%s get clusters` no longer shows it, then run this again", program)
	case cluster.Spec.SyncMode != clusterv1alpha1.Pull:
		return console.WithHint(fmt.Errorf("the cluster %q has joined in Push mode, where the hub needs no agent", name),
			"to change the mode, run first: %s unjoin %s", program, name)
	}
	return nil
}

// prepare makes the accounts of the agent, and of whoever registers it.
func prepare(ctx context.Context, hub *target.Target, name string) error {
	for _, namespace := range []string{membership.Namespace, clusterv1alpha1.ExecutionNamespace(name)} {
		if err := ensureNamespace(ctx, hub, namespace); err != nil {
			return err
		}
	}
	for _, account := range membership.HubAccounts(name) {
		if _, err := membership.Ensure(ctx, hub, account, func() {}); err != nil {
			return err
		}
	}
	for _, grant := range membership.Grants(name) {
		if err := grant.Ensure(ctx, hub, name); err != nil {
			return err
		}
	}
	return nil
}

// ensureNamespace makes a namespace. One that is going is waited for: it is what an
// unjoin leaves for a moment.
func ensureNamespace(ctx context.Context, hub *target.Target, name string) error {
	const patience = 30 * time.Second
	err := target.Await(ctx, patience, func(ctx context.Context) (bool, error) {
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if name != membership.Namespace {
			namespace.Labels = map[string]string{workv1alpha1.ManagedLabel: workv1alpha1.ManagedValue}
		}
		membership.Mark(namespace)
		err := hub.Client.Create(ctx, namespace)
		if !apierrors.IsAlreadyExists(err) {
			return true, err
		}
		err = hub.Client.Get(ctx, client.ObjectKeyFromObject(namespace), namespace)
		return err == nil && namespace.DeletionTimestamp == nil, client.IgnoreNotFound(err)
	})
	if errors.Is(err, target.ErrTimeout) {
		return console.WithHint(fmt.Errorf("namespace %s is still being deleted after %s", name, patience),
			"see what holds it: kubectl get namespace %s -o yaml", name)
	}
	if err != nil {
		return fmt.Errorf("making namespace %s: %w", name, err)
	}
	return nil
}

// issue makes the token. One that was made for that name before ends.
func issue(ctx context.Context, hub *target.Target, o Options) (*authenticationv1.TokenRequest, error) {
	secret := membership.RegistrarSecret(o.Name)
	if err := client.IgnoreNotFound(hub.Client.Delete(ctx, secret)); err != nil {
		return nil, fmt.Errorf("revoking an earlier token: %w", err)
	}
	secret = membership.RegistrarSecret(o.Name)
	membership.Mark(secret)
	secret.Labels[registrarLabel] = o.Name
	secret.Annotations = map[string]string{expirationAnnotation: time.Now().Add(o.TTL).UTC().Format(time.RFC3339)}
	if err := hub.Client.Create(ctx, secret); err != nil {
		return nil, fmt.Errorf("creating %s: %w", membership.Describe(secret), err)
	}
	seconds := int64(o.TTL.Seconds())
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
		ExpirationSeconds: &seconds,
		BoundObjectRef: &authenticationv1.BoundObjectReference{
			APIVersion: "v1", Kind: "Secret", Name: secret.Name, UID: secret.UID,
		},
	}}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: secret.Namespace, Name: membership.Registrar}}
	if err := hub.Client.SubResource("token").Create(ctx, account, request); err != nil {
		return nil, errors.Join(fmt.Errorf("asking for a token: %w", err), client.IgnoreNotFound(hub.Client.Delete(ctx, secret)))
	}
	return request, nil
}

// write puts the token and the way to the hub into a file that only its owner reads.
func write(o Options, server string, ca []byte, token string) error {
	const name = "hub"
	config := clientcmdapi.NewConfig()
	config.Clusters[name] = &clientcmdapi.Cluster{Server: server, CertificateAuthorityData: ca}
	config.AuthInfos[name] = &clientcmdapi.AuthInfo{Token: token}
	config.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
	config.CurrentContext = name
	if err := clientcmd.WriteToFile(*config, o.Write); err != nil {
		return fmt.Errorf("writing the token: %w", err)
	}
	return nil
}

// List prints the tokens that can still be used.
func List(ctx context.Context, f *target.Factory) error {
	hub, err := f.Hub()
	if err != nil {
		return err
	}
	secrets := &corev1.SecretList{}
	if err := hub.Client.List(ctx, secrets, client.HasLabels{registrarLabel}); err != nil {
		return hub.Explain(f.Program, fmt.Errorf("listing tokens: %w", err))
	}
	w := tabwriter.NewWriter(f.Out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "CLUSTER\tEXPIRES")
	for i := range secrets.Items {
		s := &secrets.Items[i]
		expires, err := time.Parse(time.RFC3339, s.Annotations[expirationAnnotation])
		if s.Name != membership.Registrar || err != nil || expires.Before(time.Now()) {
			continue
		}
		fmt.Fprintf(w, "%s\t%s\n", s.Labels[registrarLabel], expires.Format(time.RFC3339))
	}
	return w.Flush()
}

// Delete revokes a token, and where nobody has registered by it, all that was
// made with it.
func Delete(ctx context.Context, f *target.Factory, name string) error {
	hub, err := f.Hub()
	if err != nil {
		return err
	}
	done, err := revoke(ctx, hub, name)
	if err != nil {
		return hub.Explain(f.Program, err)
	}
	fmt.Fprintln(f.Out, done)
	return nil
}

func revoke(ctx context.Context, hub *target.Target, name string) (string, error) {
	cluster := &clusterv1alpha1.Cluster{}
	err := hub.Client.Get(ctx, client.ObjectKey{Name: name}, cluster)
	switch {
	case err == nil:
		err := hub.Client.Delete(ctx, membership.RegistrarSecret(name))
		if client.IgnoreNotFound(err) != nil {
			return "", fmt.Errorf("revoking the token: %w", err)
		}
		return "No token registers a cluster as " + name + " any more; the one that has keeps its credential", nil
	case !apierrors.IsNotFound(err):
		return "", fmt.Errorf("reading Cluster %s: %w", name, err)
	}
	found, err := membership.RevokeGrants(ctx, hub, name)
	if err != nil {
		return "", err
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: clusterv1alpha1.ExecutionNamespace(name)}}
	err = hub.Client.Get(ctx, client.ObjectKeyFromObject(namespace), namespace)
	if err == nil && membership.IsOurs(namespace) && namespace.DeletionTimestamp == nil {
		found, err = true, hub.Client.Delete(ctx, namespace)
	}
	if client.IgnoreNotFound(err) != nil {
		return "", fmt.Errorf("removing namespace %s: %w", namespace.Name, err)
	}
	if !found {
		return "", console.WithHint(fmt.Errorf("there is no token for %q", name), "see `token list`")
	}
	return "No token registers a cluster as " + name + " any more; its accounts are gone", nil
}
