package membership

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/namesake-io/namesake/api/cluster/v1alpha1"
	"github.com/namesake-io/namesake/internal/cli/target"
)

const (
	// Agent is the name of everything that an agent has, on both sides.
	Agent = clusterv1alpha1.AgentName
	// Registrar is the account on the hub that may register one cluster, and the
	// Secret that its token lives and dies with.
	Registrar = "namesake-register"
)

// Grant is a role on the hub and who has it.
type Grant struct {
	// Namespace of the role. Empty: a ClusterRole.
	Namespace string
	Name      string
	// Account in the execution namespace of the cluster.
	Account string
	Rules   []rbacv1.PolicyRule
}

// Grants are all that the hub grants to the agent of a cluster, and to whoever
// registers it. Nothing here reaches beyond that one cluster.
func Grants(cluster string) []Grant {
	own, works, clusters := clusterv1alpha1.ExecutionNamespace(cluster), "work.karmada.io", "cluster.karmada.io"
	this := []string{cluster}
	return []Grant{
		{Namespace: own, Name: Agent, Account: Agent, Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{works}, Resources: []string{"works"}, Verbs: []string{"get", "list", "watch", "create", "update", "patch", "delete"}},
			{APIGroups: []string{works}, Resources: []string{"works/status"}, Verbs: []string{"get", "update", "patch"}},
			{APIGroups: []string{"", "events.k8s.io"}, Resources: []string{"events"}, Verbs: []string{"create", "patch"}},
			{APIGroups: []string{""}, Resources: []string{"serviceaccounts/token"}, ResourceNames: []string{Agent}, Verbs: []string{"create"}},
		}},
		{Namespace: Namespace, Name: Agent + "-" + cluster, Account: Agent, Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, ResourceNames: this, Verbs: []string{"get", "create", "update", "patch"}},
		}},
		{Name: Agent + "-" + cluster, Account: Agent, Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{clusters}, Resources: []string{"clusters"}, ResourceNames: this, Verbs: []string{"get", "list", "watch"}},
			{APIGroups: []string{clusters}, Resources: []string{"clusters/status"}, ResourceNames: this, Verbs: []string{"get", "update", "patch"}},
		}},
		{Namespace: own, Name: Registrar, Account: Registrar, Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{""}, Resources: []string{"serviceaccounts/token"}, ResourceNames: []string{Agent}, Verbs: []string{"create"}},
			// Its own, so that a token registers once.
			{APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: []string{Registrar}, Verbs: []string{"delete"}},
		}},
		{Name: Registrar + "-" + cluster, Account: Registrar, Rules: []rbacv1.PolicyRule{
			// By server-side apply a name can be had by itself.
			{APIGroups: []string{clusters}, Resources: []string{"clusters"}, ResourceNames: this, Verbs: []string{"get", "create", "patch"}},
			// Whose UID identifies the hub.
			{APIGroups: []string{""}, Resources: []string{"namespaces"}, ResourceNames: []string{metav1.NamespaceSystem}, Verbs: []string{"get"}},
		}},
	}
}

// Ensure makes the grant stand.
func (g Grant) Ensure(ctx context.Context, hub *target.Target, cluster string) error {
	subjects := []rbacv1.Subject{{
		Kind: rbacv1.ServiceAccountKind, Namespace: clusterv1alpha1.ExecutionNamespace(cluster), Name: g.Account,
	}}
	meta := metav1.ObjectMeta{Namespace: g.Namespace, Name: g.Name}
	if g.Namespace == "" {
		role, binding := &rbacv1.ClusterRole{ObjectMeta: meta}, &rbacv1.ClusterRoleBinding{ObjectMeta: meta}
		if _, err := Ensure(ctx, hub, role, func() { role.Rules = g.Rules }); err != nil {
			return err
		}
		_, err := Ensure(ctx, hub, binding, func() {
			binding.RoleRef, binding.Subjects = rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: g.Name}, subjects
		})
		return err
	}
	role, binding := &rbacv1.Role{ObjectMeta: meta}, &rbacv1.RoleBinding{ObjectMeta: meta}
	if _, err := Ensure(ctx, hub, role, func() { role.Rules = g.Rules }); err != nil {
		return err
	}
	_, err := Ensure(ctx, hub, binding, func() {
		binding.RoleRef, binding.Subjects = rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: g.Name}, subjects
	})
	return err
}

// objects are the role and the binding, with nothing but their names.
func (g Grant) objects() []client.Object {
	meta := metav1.ObjectMeta{Namespace: g.Namespace, Name: g.Name}
	if g.Namespace == "" {
		return []client.Object{&rbacv1.ClusterRoleBinding{ObjectMeta: meta}, &rbacv1.ClusterRole{ObjectMeta: meta}}
	}
	return []client.Object{&rbacv1.RoleBinding{ObjectMeta: meta}, &rbacv1.Role{ObjectMeta: meta}}
}

// HubAccounts are the accounts of a cluster's agent and of whoever registers it.
func HubAccounts(cluster string) []*corev1.ServiceAccount {
	namespace := clusterv1alpha1.ExecutionNamespace(cluster)
	return []*corev1.ServiceAccount{
		{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: Agent}},
		{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: Registrar}},
	}
}

// RegistrarSecret is what a token to register lives and dies with.
func RegistrarSecret(cluster string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: clusterv1alpha1.ExecutionNamespace(cluster), Name: Registrar}}
}

// RevokeGrants takes from the hub what a cluster's agent was granted. It says
// whether there was anything.
func RevokeGrants(ctx context.Context, hub *target.Target, cluster string) (found bool, err error) {
	var objects []client.Object
	for _, g := range Grants(cluster) {
		objects = append(objects, g.objects()...)
	}
	for _, account := range HubAccounts(cluster) {
		objects = append(objects, account)
	}
	return removeOurs(ctx, hub, append(objects, RegistrarSecret(cluster)))
}

// removeOurs deletes the objects that are there and ours.
func removeOurs(ctx context.Context, t *target.Target, objects []client.Object) (found bool, err error) {
	for _, obj := range objects {
		err := t.Client.Get(ctx, client.ObjectKeyFromObject(obj), obj)
		if err == nil && IsOurs(obj) {
			found = true
			err = t.Client.Delete(ctx, obj)
		}
		if client.IgnoreNotFound(err) != nil {
			return found, fmt.Errorf("removing %s: %w", Describe(obj), err)
		}
	}
	return found, nil
}

// CredentialRules are the rights of an agent in its own cluster beside Rules: it
// renews its credential for the hub.
func CredentialRules() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: []string{Agent}, Verbs: []string{"get", "update", "patch"}},
	}
}

// agentObjects are what a registration leaves in the member, with nothing but their
// names; the namespace and the marker are as for a join.
func agentObjects() []client.Object {
	namespaced, cluster := metav1.ObjectMeta{Namespace: Namespace, Name: Agent}, metav1.ObjectMeta{Name: Agent}
	return []client.Object{
		&appsv1.Deployment{ObjectMeta: namespaced},
		&rbacv1.ClusterRoleBinding{ObjectMeta: cluster}, &rbacv1.ClusterRole{ObjectMeta: cluster},
		&rbacv1.RoleBinding{ObjectMeta: namespaced}, &rbacv1.Role{ObjectMeta: namespaced},
		&corev1.Secret{ObjectMeta: namespaced}, &corev1.ServiceAccount{ObjectMeta: namespaced},
	}
}
