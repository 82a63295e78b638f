package join

import (
	"context"
	"fmt"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"

	"github.com/namesake-io/namesake/internal/cli/console"
	"github.com/namesake-io/namesake/internal/cli/membership"
	"github.com/namesake-io/namesake/internal/cli/target"
)

// need is a kind that the command writes.
type need struct {
	group, resource, namespace string
}

func (n need) String() string {
	name := n.resource
	if n.group != "" {
		name += "." + n.group
	}
	if n.namespace != "" {
		name += " in " + n.namespace
	}
	return name
}

func (j *joining) checkMemberPermissions(ctx context.Context) (string, error) {
	return checkPermissions(ctx, j.member, []need{
		{"", "namespaces", ""},
		{"", "serviceaccounts", membership.Namespace},
		{"", "secrets", membership.Namespace},
		{"", "configmaps", membership.Namespace},
		{"rbac.authorization.k8s.io", "clusterroles", ""},
		{"rbac.authorization.k8s.io", "clusterrolebindings", ""},
	})
}

func (j *joining) checkHubPermissions(ctx context.Context) (string, error) {
	return checkPermissions(ctx, j.hub, []need{
		{"", "namespaces", ""},
		{"", "secrets", membership.Namespace},
		{"cluster.karmada.io", "clusters", ""},
	})
}

// checkPermissions asks before the first write whether the user of t may write
// everything, so that a refusal half-way stays the exception.
func checkPermissions(ctx context.Context, t *target.Target, needs []need) (string, error) {
	all := authorizationv1.ResourceAttributes{Verb: "*", Group: "*", Resource: "*"}
	if allowed, err := may(ctx, t, all); err != nil || allowed {
		return "all", err
	}
	var missing []string
	for _, n := range needs {
		for _, verb := range []string{"create", "patch"} {
			attributes := authorizationv1.ResourceAttributes{Verb: verb, Group: n.group, Resource: n.resource, Namespace: n.namespace}
			allowed, err := may(ctx, t, attributes)
			if err != nil {
				return "", err
			}
			if !allowed {
				missing = append(missing, verb+" "+n.String())
			}
		}
	}
	if len(missing) > 0 {
		return "", console.WithHint(
			fmt.Errorf("the user of kubeconfig %s may not do this in the %s: %s", t.Kubeconfig, t, strings.Join(missing, ", ")),
			"use a kubeconfig of somebody who may, for example one with the role cluster-admin")
	}
	return "sufficient", nil
}

func may(ctx context.Context, t *target.Target, what authorizationv1.ResourceAttributes) (bool, error) {
	review := &authorizationv1.SelfSubjectAccessReview{
		Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &what},
	}
	if err := t.Client.Create(ctx, review); err != nil {
		return false, fmt.Errorf("asking for permissions: %w", err)
	}
	return review.Status.Allowed, nil
}
