package membership

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/namesake-io/namesake/internal/cli/target"
)

// Remove takes from a member what a join left there. The marker goes last but
// one, so that an interrupted call can be repeated; the namespace goes when the
// join made it and nothing else is in it. The answer says what became of the
// namespace.
func Remove(ctx context.Context, member *target.Target, marker *Marker) (string, error) {
	objects := append([]client.Object{
		BindingObject(), RoleObject(), TokenSecret(TokenSecrets[0]), TokenSecret(TokenSecrets[1]), AccountObject(),
	}, agentObjects()...)
	if _, err := removeOurs(ctx, member, append(objects, markerObject())); err != nil {
		return "", err
	}
	if marker == nil || !marker.CreatedNamespace {
		return "namespace " + Namespace + " stays: it was there before the join", nil
	}
	left, err := contents(ctx, member)
	if err != nil {
		return fmt.Sprintf("namespace %s stays: %v", Namespace, err), nil
	}
	if len(left) > 0 {
		return fmt.Sprintf("namespace %s stays: it holds %s", Namespace, strings.Join(left, ", ")), nil
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: Namespace}}
	if err := client.IgnoreNotFound(member.Client.Delete(ctx, namespace)); err != nil {
		return "", fmt.Errorf("removing namespace %s: %w", Namespace, err)
	}
	return "namespace " + Namespace + " too", nil
}

// Commands are what a person runs in the member to the same end.
func Commands() []string {
	return []string{
		fmt.Sprintf("kubectl delete --ignore-not-found clusterrolebinding/%s clusterrole/%s clusterrolebinding/%s clusterrole/%s",
			Role, Role, Agent, Agent),
		fmt.Sprintf("kubectl delete --ignore-not-found -n %s serviceaccount/%s configmap/%s secret/%s",
			Namespace, Account, MarkerName, strings.Join(TokenSecrets[:], " secret/")),
		fmt.Sprintf("kubectl delete --ignore-not-found -n %s deployment/%s rolebinding/%s role/%s serviceaccount/%s secret/%s",
			Namespace, Agent, Agent, Agent, Agent, Agent),
	}
}

// contents names a few of the objects in the namespace that are not there by
// themselves.
func contents(ctx context.Context, member *target.Target) ([]string, error) {
	const enough = 3
	// Kinds that come with others: whatever matters has an object of another kind.
	beside := []string{"events", "endpoints"}
	d, err := member.Discovery()
	if err != nil {
		return nil, err
	}
	groups, err := discovery.ServerPreferredNamespacedResources(d)
	if err != nil {
		return nil, fmt.Errorf("what it holds is not known: %w", err)
	}
	var found []string
	for _, group := range groups {
		gv, err := schema.ParseGroupVersion(group.GroupVersion)
		if err != nil {
			return nil, fmt.Errorf("what it holds is not known: %w", err)
		}
		for i := range group.APIResources {
			r := &group.APIResources[i]
			if !slices.Contains(r.Verbs, "list") || slices.Contains(beside, r.Name) {
				continue
			}
			names, err := held(ctx, member.Client, gv.WithKind(r.Kind))
			if err != nil {
				return nil, fmt.Errorf("what it holds is not known: listing %s: %w", r.Name, err)
			}
			for _, name := range names {
				found = append(found, r.Name+"/"+name)
			}
			if len(found) >= enough {
				return found[:enough], nil
			}
		}
	}
	return found, nil
}

func held(ctx context.Context, c client.Client, kind schema.GroupVersionKind) (names []string, err error) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	err = c.List(ctx, list, client.InNamespace(Namespace), client.Limit(10))
	if apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	for i := range list.Items {
		item := &list.Items[i]
		byItself := kind.Kind == "ServiceAccount" && item.Name == "default" ||
			kind.Kind == "ConfigMap" && item.Name == "kube-root-ca.crt"
		if !byItself && item.DeletionTimestamp == nil {
			names = append(names, item.Name)
		}
	}
	return names, nil
}
