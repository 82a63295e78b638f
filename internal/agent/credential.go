package agent

import (
	"context"
	"errors"
	"fmt"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/namesake-io/namesake/api/cluster/v1alpha1"
	"github.com/namesake-io/namesake/internal/apply"
	"github.com/namesake-io/namesake/internal/member"
)

// renewRetry is how soon a renewal is tried again that failed. Half of a
// credential's life is left for it.
const renewRetry = time.Minute

// credential is what leads to the hub.
type credential struct {
	cluster string
	server  string
	ca      []byte
	token   string
	// expires is when the token ends. Zero: not known.
	expires time.Time
}

// readCredential reads it from the agent's own cluster.
func readCredential(ctx context.Context, own client.Reader, key types.NamespacedName) (*credential, error) {
	secret := &corev1.Secret{}
	if err := own.Get(ctx, key, secret); err != nil {
		return nil, fmt.Errorf("reading the credential for the hub, Secret %s: %w", key, err)
	}
	out := &credential{
		cluster: string(secret.Data[clusterv1alpha1.SecretClusterKey]),
		server:  string(secret.Data[clusterv1alpha1.SecretServerKey]),
		ca:      secret.Data[clusterv1alpha1.SecretCABundleKey],
		token:   string(secret.Data[clusterv1alpha1.SecretTokenKey]),
	}
	if out.cluster == "" || out.server == "" || out.token == "" {
		return nil, fmt.Errorf("the Secret %s lacks %s, %s or %s: run 'namesakectl register' to make it anew", key,
			clusterv1alpha1.SecretClusterKey, clusterv1alpha1.SecretServerKey, clusterv1alpha1.SecretTokenKey)
	}
	// One that cannot be read is one that is not known.
	out.expires, _ = time.Parse(time.RFC3339, string(secret.Data[clusterv1alpha1.SecretExpirationKey]))
	return out, nil
}

// renewer replaces the agent's credential long before it ends: the new one is
// stored before it is used, and the old one stays valid. It implements the
// manager's Runnable.
type renewer struct {
	key     types.NamespacedName
	account types.NamespacedName
	ttl     time.Duration
	expires time.Time
	own     client.Client
	hub     apply.Writer
	path    *member.Path
}

// Start implements manager.Runnable.
func (r *renewer) Start(ctx context.Context) error {
	// The credential may be of any age.
	due := r.expires.Add(-r.ttl / 2)
	for {
		timer := time.NewTimer(time.Until(due))
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil
		case <-timer.C:
		}
		now := time.Now()
		switch err := r.renew(ctx); {
		case err == nil:
			due = now.Add(r.expires.Sub(now) / 2)
			klog.FromContext(ctx).Info("Renewed the credential for the hub", "expires", r.expires, "next", due)
		case ctx.Err() == nil:
			klog.FromContext(ctx).Error(err, "Cannot renew the credential for the hub, trying again", "expires", r.expires)
			due = now.Add(renewRetry)
		}
	}
}

// renew gets a new token, stores it and goes on with it.
func (r *renewer) renew(ctx context.Context) error {
	seconds := int64(r.ttl.Seconds())
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &seconds}}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: r.account.Namespace, Name: r.account.Name}}
	if err := r.hub.Token(ctx, account, request); err != nil {
		return err
	}
	if request.Status.Token == "" {
		return errors.New("the hub gave an empty token")
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: r.key.Namespace, Name: r.key.Name}}
	writer := apply.NewWriter(r.own, "namesake-agent")
	if err := writer.Patch(ctx, secret, map[string]any{"data": map[string]any{
		clusterv1alpha1.SecretTokenKey:      []byte(request.Status.Token),
		clusterv1alpha1.SecretExpirationKey: []byte(request.Status.ExpirationTimestamp.UTC().Format(time.RFC3339)),
	}}); err != nil {
		return err
	}
	r.path.SetToken(request.Status.Token)
	r.expires = request.Status.ExpirationTimestamp.Time
	return nil
}
