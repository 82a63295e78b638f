package membership

import (
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/namesake-io/namesake/api/cluster/v1alpha1"
	workv1alpha1 "github.com/namesake-io/namesake/api/work/v1alpha1"
)

// Namespace of everything here, in the member and on the hub.
const Namespace = clusterv1alpha1.SystemNamespace

// Names in the member.
const (
	// Account is the ServiceAccount that the hub acts as.
	Account = "namesake"
	// Role is the ClusterRole of the account, and its ClusterRoleBinding.
	Role = "namesake-hub"
	// MarkerName is the ConfigMap that says which hub the member belongs to.
	MarkerName = "namesake"
)

// TokenSecrets are the names that the Secret with the account's token takes in
// turn: a renewal fills the one that is free before it removes the other.
var TokenSecrets = [2]string{"namesake-token", "namesake-token-2"}

// Rules are the rights of the hub in a member, and the least that it can work
// with: it reads and writes services and slices, it makes namespaces that a
// service needs, and it asks how the API server is. nodes adds that it counts nodes.
func Rules(nodes bool) []rbacv1.PolicyRule {
	write := []string{"get", "list", "watch", "create", "update", "patch", "delete"}
	rules := []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"services"}, Verbs: write},
		{APIGroups: []string{"discovery.k8s.io"}, Resources: []string{"endpointslices"}, Verbs: write},
		{APIGroups: []string{""}, Resources: []string{"namespaces"}, Verbs: []string{"get", "list", "watch", "create"}},
		{NonResourceURLs: []string{"/readyz", "/livez", "/version", "/api", "/api/*", "/apis", "/apis/*"}, Verbs: []string{"get"}},
	}
	if nodes {
		rules = append(rules, rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"nodes"}, Verbs: []string{"list"}})
	}
	return rules
}

// AccountObject is the ServiceAccount, with nothing but its name.
func AccountObject() *corev1.ServiceAccount {
	return &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: Account}}
}

// RoleObject is the ClusterRole, with nothing but its name.
func RoleObject() *rbacv1.ClusterRole {
	return &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: Role}}
}

// BindingObject is the ClusterRoleBinding, with nothing but its name.
func BindingObject() *rbacv1.ClusterRoleBinding {
	return &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: Role}}
}

// TokenSecret is a Secret with the account's token, with nothing but its name.
func TokenSecret(name string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: name}}
}

// Mark labels obj as ours.
func Mark(obj client.Object) {
	labels := obj.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	labels[workv1alpha1.SystemLabel] = workv1alpha1.ManagedValue
	obj.SetLabels(labels)
}

// IsOurs is whether obj carries our label.
func IsOurs(obj client.Object) bool {
	return obj.GetLabels()[workv1alpha1.SystemLabel] == workv1alpha1.ManagedValue
}
