package register

import (
	"context"
	"errors"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/namesake-io/namesake/api/cluster/v1alpha1"
	"github.com/namesake-io/namesake/internal/cli/console"
	"github.com/namesake-io/namesake/internal/cli/membership"
	"github.com/namesake-io/namesake/internal/cli/target"
)

// writeAccount makes the agent's account in the member, with the rights that the
// hub has in others, and the marker first: of two hubs that take one member at
// once, only one can create it.
func (r *registering) writeAccount(ctx context.Context) (string, error) {
	created, err := r.ensureNamespace(ctx)
	if err != nil {
		return "", err
	}
	marker := membership.Marker{HubID: r.hubID, HubURL: r.hub.URL(), Cluster: r.Name, CreatedNamespace: created}
	if r.marker != nil {
		marker.CreatedNamespace = marker.CreatedNamespace || r.marker.CreatedNamespace
	}
	wanted := marker.Object()
	config := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: wanted.Namespace, Name: wanted.Name}}
	named, cluster := metav1.ObjectMeta{Namespace: membership.Namespace, Name: membership.Agent}, metav1.ObjectMeta{Name: membership.Agent}
	account, role, binding := &corev1.ServiceAccount{ObjectMeta: named}, &rbacv1.Role{ObjectMeta: named}, &rbacv1.RoleBinding{ObjectMeta: named}
	clusterRole, clusterBinding := &rbacv1.ClusterRole{ObjectMeta: cluster}, &rbacv1.ClusterRoleBinding{ObjectMeta: cluster}
	subjects := []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: named.Namespace, Name: named.Name}}
	for _, o := range []struct {
		obj client.Object
		set func()
	}{
		{config, func() { config.Data = wanted.Data }},
		{account, func() {}},
		{clusterRole, func() { clusterRole.Rules = membership.Rules(r.NodeSummary) }},
		{clusterBinding, func() {
			clusterBinding.RoleRef = rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: membership.Agent}
			clusterBinding.Subjects = subjects
		}},
		{role, func() { role.Rules = membership.CredentialRules() }},
		{binding, func() {
			binding.RoleRef = rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: membership.Agent}
			binding.Subjects = subjects
		}},
	} {
		if _, err := membership.Ensure(ctx, r.member, o.obj, o.set); err != nil {
			return "", err
		}
	}
	return named.Namespace + "/" + named.Name, nil
}

// ensureNamespace makes the system namespace and returns whether it did. One that
// is going is waited for: it is what an unjoin leaves for a moment.
func (r *registering) ensureNamespace(ctx context.Context) (created bool, err error) {
	const patience = 30 * time.Second
	err = target.Await(ctx, patience, func(ctx context.Context) (bool, error) {
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: membership.Namespace}}
		membership.Mark(namespace)
		err := r.member.Client.Create(ctx, namespace)
		if !apierrors.IsAlreadyExists(err) {
			created = err == nil
			return true, err
		}
		err = r.member.Client.Get(ctx, client.ObjectKeyFromObject(namespace), namespace)
		return err == nil && namespace.DeletionTimestamp == nil, client.IgnoreNotFound(err)
	})
	if errors.Is(err, target.ErrTimeout) {
		return false, console.WithHint(fmt.Errorf("namespace %s of the %s is still being deleted after %s", membership.Namespace, r.member, patience),
			"see what holds it: kubectl get namespace %s -o yaml", membership.Namespace)
	}
	if err != nil {
		return false, fmt.Errorf("making namespace %s: %w", membership.Namespace, err)
	}
	return created, nil
}

// writeCredential puts into the member what leads its agent to the hub.
func (r *registering) writeCredential(ctx context.Context) (string, error) {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: membership.Namespace, Name: membership.Agent}}
	_, err := membership.Ensure(ctx, r.member, secret, func() {
		secret.Type = corev1.SecretTypeOpaque
		secret.Data = map[string][]byte{
			clusterv1alpha1.SecretServerKey:     []byte(r.way.server),
			clusterv1alpha1.SecretClusterKey:    []byte(r.Name),
			clusterv1alpha1.SecretTokenKey:      []byte(r.credential.Status.Token),
			clusterv1alpha1.SecretExpirationKey: []byte(r.credential.Status.ExpirationTimestamp.UTC().Format(time.RFC3339)),
		}
		if len(r.way.ca) > 0 {
			secret.Data[clusterv1alpha1.SecretCABundleKey] = r.way.ca
		}
	})
	return "Secret " + secret.Namespace + "/" + secret.Name, err
}

// startAgent has the agent run, as far as the options say.
func (r *registering) startAgent(ctx context.Context) (string, error) {
	if r.AgentKubeconfig != "" {
		if err := r.writeAgentKubeconfig(ctx); err != nil {
			return "", err
		}
	}
	if r.Image == "" {
		if r.AgentKubeconfig != "" {
			return "run it: agent --member-kubeconfig " + r.AgentKubeconfig, nil
		}
		return fmt.Sprintf("run it in the cluster, as account %s/%s, or register again with --image", membership.Namespace, membership.Agent), nil
	}
	want := deployment(r.Image)
	obj := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: want.Namespace, Name: want.Name}}
	_, err := membership.Ensure(ctx, r.member, obj, func() {
		if obj.ResourceVersion == "" {
			obj.Spec = want.Spec
			return
		}
		// The rest may have been adapted to the cluster.
		for i := range obj.Spec.Template.Spec.Containers {
			if c := &obj.Spec.Template.Spec.Containers[i]; c.Name == "agent" {
				c.Image = r.Image
			}
		}
	})
	return "Deployment " + want.Namespace + "/" + want.Name, err
}

// writeAgentKubeconfig writes how an agent outside of the cluster reaches it.
func (r *registering) writeAgentKubeconfig(ctx context.Context) error {
	const tenYears = int64(10 * 365 * 24 * 60 * 60)
	seconds := tenYears
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &seconds}}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: membership.Namespace, Name: membership.Agent}}
	if err := r.member.Client.SubResource("token").Create(ctx, account, request); err != nil {
		return fmt.Errorf("asking for a token of the agent's account: %w", err)
	}
	config := clientcmdapi.NewConfig()
	config.Clusters[r.Name] = &clientcmdapi.Cluster{
		Server: r.member.URL(), CertificateAuthorityData: r.member.Config.CAData, InsecureSkipTLSVerify: r.member.Cluster.InsecureSkipTLSVerify,
	}
	config.AuthInfos[r.Name] = &clientcmdapi.AuthInfo{Token: request.Status.Token}
	config.Contexts[r.Name] = &clientcmdapi.Context{Cluster: r.Name, AuthInfo: r.Name}
	config.CurrentContext = r.Name
	if err := clientcmd.WriteToFile(*config, r.AgentKubeconfig); err != nil {
		return fmt.Errorf("writing --agent-kubeconfig: %w", err)
	}
	return nil
}

// deployment runs one agent. Never two: the old one ends before a new one starts.
func deployment(image string) *appsv1.Deployment {
	labels := map[string]string{"app.kubernetes.io/name": membership.Agent}
	one, yes, no := int32(1), true, false
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: membership.Namespace, Name: membership.Agent},
		Spec: appsv1.DeploymentSpec{
			Replicas: &one, Selector: &metav1.LabelSelector{MatchLabels: labels},
			Strategy: appsv1.DeploymentStrategy{Type: appsv1.RecreateDeploymentStrategyType},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{
					ServiceAccountName: membership.Agent,
					SecurityContext: &corev1.PodSecurityContext{
						RunAsNonRoot: &yes, SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
					},
					Containers: []corev1.Container{{
						Name: "agent", Image: image, Command: []string{"agent"},
						SecurityContext: &corev1.SecurityContext{
							AllowPrivilegeEscalation: &no, ReadOnlyRootFilesystem: &yes, Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
						},
					}},
				},
			},
		},
	}
}
