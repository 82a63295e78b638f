package join

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/namesake-io/namesake/internal/cli/console"
	"github.com/namesake-io/namesake/internal/cli/membership"
	"github.com/namesake-io/namesake/internal/cli/target"
)

// credential is what the hub gets.
type credential struct {
	token string
	// secret is the member's Secret that the token lives and dies with.
	secret string
}

// writeAccount makes the hub's account in the member. The marker comes first:
// of two hubs that join one member at once, only one can create it.
func (j *joining) writeAccount(ctx context.Context) (string, error) {
	created, err := j.ensureNamespace(ctx, j.member)
	if err != nil {
		return "", err
	}
	if err := j.writeMarker(ctx, created); err != nil {
		return "", err
	}
	account, role, binding := membership.AccountObject(), membership.RoleObject(), membership.BindingObject()
	if err := j.ensure(ctx, j.member, account, func() {}); err != nil {
		return "", err
	}
	if err := j.ensure(ctx, j.member, role, func() { role.Rules = membership.Rules(j.NodeSummary) }); err != nil {
		return "", err
	}
	err = j.ensure(ctx, j.member, binding, func() {
		binding.RoleRef = rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: membership.Role}
		binding.Subjects = []rbacv1.Subject{{
			Kind: rbacv1.ServiceAccountKind, Namespace: membership.Namespace, Name: membership.Account,
		}}
	})
	return fmt.Sprintf("%s/%s with role %s", membership.Namespace, membership.Account, membership.Role), err
}

func (j *joining) writeMarker(ctx context.Context, createdNamespace bool) error {
	marker := membership.Marker{
		HubID: j.found.hubID, HubURL: j.hub.URL(), Cluster: j.Name, CreatedNamespace: createdNamespace,
	}
	if j.found.marker != nil {
		marker.CreatedNamespace = marker.CreatedNamespace || j.found.marker.CreatedNamespace
	}
	wanted := marker.Object()
	obj := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: wanted.Namespace, Name: wanted.Name}}
	return j.ensure(ctx, j.member, obj, func() { obj.Data = wanted.Data })
}

// ensureNamespace makes the system namespace and returns whether it did. One
// that is going is waited for: it is what an unjoin leaves for a moment.
func (j *joining) ensureNamespace(ctx context.Context, t *target.Target) (created bool, err error) {
	const patience = 30 * time.Second
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: membership.Namespace}}
	there := false
	err = target.Await(ctx, patience, func(ctx context.Context) (bool, error) {
		err := t.Client.Get(ctx, client.ObjectKeyFromObject(namespace), namespace)
		there = err == nil && namespace.DeletionTimestamp == nil
		return there || apierrors.IsNotFound(err), client.IgnoreNotFound(err)
	})
	switch {
	case errors.Is(err, target.ErrTimeout):
		return false, console.WithHint(fmt.Errorf("namespace %s of the %s is still being deleted after %s", membership.Namespace, t, patience),
			"see what holds it: kubectl get namespace %s -o yaml", membership.Namespace)
	case err != nil:
		return false, fmt.Errorf("reading namespace %s: %w", membership.Namespace, err)
	case there:
		return false, nil
	}
	namespace = &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: membership.Namespace}}
	membership.Mark(namespace)
	if err := t.Client.Create(ctx, namespace); err != nil {
		if apierrors.IsAlreadyExists(err) {
			return false, nil
		}
		if isDoubtful(err) {
			j.undo.add(t, namespace)
		}
		return false, fmt.Errorf("creating namespace %s: %w", membership.Namespace, err)
	}
	j.undo.add(t, namespace)
	return true, nil
}

// issue gets a token for the account into j.credential: one that does not
// expire when the member's controller-manager fills Secrets, else one that was
// asked for directly.
func (j *joining) issue(ctx context.Context) (string, error) {
	name, err := j.freeTokenSecret(ctx)
	if err != nil {
		return "", err
	}
	secret := membership.TokenSecret(name)
	err = j.ensure(ctx, j.member, secret, func() {
		secret.Type = corev1.SecretTypeServiceAccountToken
		secret.Annotations = map[string]string{corev1.ServiceAccountNameKey: membership.Account}
	})
	if err != nil {
		return "", err
	}
	err = target.Await(ctx, j.TokenWait, func(ctx context.Context) (bool, error) {
		err := j.member.Client.Get(ctx, client.ObjectKeyFromObject(secret), secret)
		return len(secret.Data[corev1.ServiceAccountTokenKey]) > 0, err
	})
	if err == nil {
		j.credential = credential{token: string(secret.Data[corev1.ServiceAccountTokenKey]), secret: name}
		return "a token that does not expire, in Secret " + membership.Namespace + "/" + name, nil
	}
	if !errors.Is(err, target.ErrTimeout) {
		return "", fmt.Errorf("waiting for the token in Secret %s/%s: %w", membership.Namespace, name, err)
	}

	request := tokenRequest(secret)
	if err := j.member.Client.SubResource("token").Create(ctx, membership.AccountObject(), request); err != nil {
		return "", fmt.Errorf("asking for a token of the account: %w", err)
	}
	j.credential = credential{token: request.Status.Token, secret: name}
	return fmt.Sprintf("a token until %s, since the member filled no Secret within %s; join again before that day",
		request.Status.ExpirationTimestamp.UTC().Format(time.DateOnly), j.TokenWait), nil
}

// freeTokenSecret returns the name that is not in use by the hub, and removes
// what an interrupted call may have left under it.
func (j *joining) freeTokenSecret(ctx context.Context) (string, error) {
	used, err := j.usedTokenSecret(ctx)
	if err != nil {
		return "", err
	}
	name := otherTokenSecret(used)
	leftover := membership.TokenSecret(name)
	err = j.member.Client.Get(ctx, client.ObjectKeyFromObject(leftover), leftover)
	if apierrors.IsNotFound(err) {
		return name, nil
	}
	if err == nil && membership.IsOurs(leftover) {
		err = client.IgnoreNotFound(j.member.Client.Delete(ctx, leftover))
	}
	if err != nil {
		return "", fmt.Errorf("removing the unused Secret %s/%s: %w", membership.Namespace, name, err)
	}
	return name, nil
}

func otherTokenSecret(used string) string {
	if used == membership.TokenSecrets[0] {
		return membership.TokenSecrets[1]
	}
	return membership.TokenSecrets[0]
}

// tryCredential does with the token what the hub will do, so that a credential
// that does not work is found here and not by a Cluster that never gets Ready.
func (j *joining) tryCredential(ctx context.Context) (string, error) {
	const patience = 10 * time.Second
	c, err := authenticateAs(j.credential.token, j.member)
	if err != nil {
		return "", fmt.Errorf("making a client with the new credential: %w", err)
	}
	var rejection error
	err = target.Await(ctx, patience, func(ctx context.Context) (bool, error) {
		err := c.List(ctx, &discoveryv1.EndpointSliceList{}, client.Limit(1))
		if rejection = nil; isRejected(err) {
			rejection, err = err, nil
		}
		return rejection == nil, err
	})
	if errors.Is(err, target.ErrTimeout) && rejection != nil {
		return "", console.WithHint(fmt.Errorf("%w within %s: %w", errNotAccepted, patience, rejection),
			"does the member allow ServiceAccount tokens and RBAC?")
	}
	if err != nil {
		return "", fmt.Errorf("trying the new credential: %w", err)
	}
	return "it lists slices", nil
}
