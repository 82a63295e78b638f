package join

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/namesake-io/namesake/api/cluster/v1alpha1"
	"github.com/namesake-io/namesake/internal/cli/console"
	"github.com/namesake-io/namesake/internal/cli/membership"
	"github.com/namesake-io/namesake/internal/cli/target"
)

// tokenSecretAnnotation, on the hub's Secret, names the member's Secret that
// its token lives and dies with.
const tokenSecretAnnotation = "cluster.namesake.io/token-secret"

// usedTokenSecret returns which of the member's token Secrets the hub uses, or
// nothing.
func (j *joining) usedTokenSecret(ctx context.Context) (string, error) {
	secret := j.hubSecret()
	err := j.hub.Client.Get(ctx, client.ObjectKeyFromObject(secret), secret)
	if client.IgnoreNotFound(err) != nil {
		return "", fmt.Errorf("reading Secret %s/%s of the hub: %w", membership.Namespace, j.Name, err)
	}
	return secret.Annotations[tokenSecretAnnotation], nil
}

func (j *joining) hubSecret() *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: membership.Namespace, Name: j.Name}}
}

// register writes the hub's side. What the hub reads comes before what makes it
// read: for a new member the Secret before the Cluster; for a renewal the
// Cluster before the Secret, whose change is then the only switch-over.
func (j *joining) register(ctx context.Context) (string, error) {
	if _, err := j.ensureNamespace(ctx, j.hub); err != nil {
		return "", err
	}
	if existing := j.found.named(j.Name); existing != nil {
		changed, err := j.patchCluster(ctx, existing)
		if err != nil {
			return "", err
		}
		return "renewed the credential" + changed, j.writeHubSecret(ctx)
	}
	if err := j.writeHubSecret(ctx); err != nil {
		return "", err
	}
	cluster := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: j.Name}}
	j.fill(&cluster.Spec)
	if err := j.createCluster(ctx, cluster); err != nil {
		return "", err
	}
	return fmt.Sprintf("Cluster %s, Secret %s/%s", j.Name, membership.Namespace, j.Name), nil
}

// createCluster creates it, and looks for it when the answer got lost: from its
// existence on there is no way back.
func (j *joining) createCluster(ctx context.Context, cluster *clusterv1alpha1.Cluster) error {
	err := j.hub.Client.Create(ctx, cluster)
	if err == nil {
		return nil
	}
	if apierrors.IsAlreadyExists(err) {
		return console.WithHint(fmt.Errorf("somebody else joined a cluster as %q just now: %w", j.Name, err), "run the command again")
	}
	if isDoubtful(err) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoTimeout)
		defer cancel()
		there := &clusterv1alpha1.Cluster{}
		if getErr := j.hub.Client.Get(ctx, client.ObjectKey{Name: j.Name}, there); getErr == nil && there.Spec.ID == j.found.memberID {
			return nil
		}
	}
	return fmt.Errorf("creating Cluster %s: %w", j.Name, err)
}

func (j *joining) writeHubSecret(ctx context.Context) error {
	secret := j.hubSecret()
	return j.ensure(ctx, j.hub, secret, func() {
		secret.Type = corev1.SecretTypeOpaque
		if secret.Annotations == nil {
			secret.Annotations = map[string]string{}
		}
		secret.Annotations[tokenSecretAnnotation] = j.credential.secret
		secret.Data = map[string][]byte{clusterv1alpha1.SecretTokenKey: []byte(j.credential.token)}
		if ca := j.member.Config.CAData; len(ca) > 0 {
			secret.Data[clusterv1alpha1.SecretCABundleKey] = ca
		}
	})
}

// patchCluster brings an existing Cluster up to date. It sends what differs
// only: a Cluster has fields that are not ours.
func (j *joining) patchCluster(ctx context.Context, existing *clusterv1alpha1.Cluster) (string, error) {
	cluster := existing.DeepCopy()
	j.fill(&cluster.Spec)
	patch := client.MergeFrom(existing)
	data, err := patch.Data(cluster)
	if err != nil {
		return "", fmt.Errorf("comparing Cluster %s: %w", j.Name, err)
	}
	if string(data) == "{}" {
		return "", nil
	}
	if err := j.hub.Client.Patch(ctx, cluster, patch); err != nil {
		return "", fmt.Errorf("patching Cluster %s: %w", j.Name, err)
	}
	return " and brought the Cluster up to date", nil
}

// fill sets what a join decides. Descriptions stay unless they are given.
func (j *joining) fill(spec *clusterv1alpha1.ClusterSpec) {
	spec.ID = j.found.memberID
	spec.SyncMode = clusterv1alpha1.Push
	spec.APIEndpoint = j.endpoint()
	spec.SecretRef = &clusterv1alpha1.LocalSecretReference{Namespace: membership.Namespace, Name: j.Name}
	spec.InsecureSkipTLSVerification = j.member.Cluster.InsecureSkipTLSVerify
	spec.ProxyURL = j.member.Cluster.ProxyURL
	if j.Provider != "" {
		spec.Provider = j.Provider
	}
	if j.Region != "" {
		spec.Region = j.Region
	}
	if len(j.Zones) > 0 {
		spec.Zones = j.Zones
	}
}

// retireOldToken revokes the token that the hub used until now. The join has
// succeeded whatever becomes of it.
func (j *joining) retireOldToken(ctx context.Context) {
	old := membership.TokenSecret(otherTokenSecret(j.credential.secret))
	err := j.member.Client.Get(ctx, client.ObjectKeyFromObject(old), old)
	if err == nil && membership.IsOurs(old) {
		err = j.member.Client.Delete(ctx, old)
	}
	if client.IgnoreNotFound(err) != nil {
		j.steps.Note("could not revoke the token before this one, Secret %s/%s in the member: %v", old.Namespace, old.Name, err)
	}
}

// waitReady waits for the hub's word on the member.
func (j *joining) waitReady(ctx context.Context) (string, error) {
	var ready *metav1.Condition
	cluster := &clusterv1alpha1.Cluster{}
	err := target.Await(ctx, j.WaitTimeout, func(ctx context.Context) (bool, error) {
		err := j.hub.Client.Get(ctx, client.ObjectKey{Name: j.Name}, cluster)
		ready = meta.FindStatusCondition(cluster.Status.Conditions, clusterv1alpha1.ConditionReady)
		return isTrue(ready, cluster.Generation), err
	})
	if errors.Is(err, target.ErrTimeout) {
		return "", j.notReady(ready)
	}
	if err != nil {
		return "", fmt.Errorf("waiting until %s is Ready: %w", j.Name, err)
	}
	return cluster.Status.KubernetesVersion, nil
}

func isTrue(c *metav1.Condition, generation int64) bool {
	// Zero: whoever wrote the condition does not say what it saw.
	return c != nil && c.Status == metav1.ConditionTrue && (c.ObservedGeneration == 0 || c.ObservedGeneration >= generation)
}

// notReady says what the hub says, and what to do with it.
func (j *joining) notReady(ready *metav1.Condition) error {
	back := fmt.Sprintf("to take the join back: %s unjoin %s --cluster-kubeconfig %s", j.program, j.Name, j.Kubeconfig)
	waited := j.WaitTimeout.Round(time.Second / 10)
	if ready == nil {
		return console.WithHint(
			fmt.Errorf("%s has joined, but nothing has reported on it within %s", j.Name, waited),
			"is the controller-manager running against the hub? %s becomes Ready once it does; %s", j.Name, back)
	}
	advice := "it becomes Ready once that is mended"
	switch ready.Reason {
	case clusterv1alpha1.ReasonClusterNotReachable, clusterv1alpha1.ReasonConnecting:
		advice = fmt.Sprintf("can the hub reach %s? If it knows the member under another address, join again with --api-endpoint URL", j.endpoint())
	case clusterv1alpha1.ReasonCredentialRejected, clusterv1alpha1.ReasonCredentialInvalid:
		advice = "to renew the credential, join again"
	}
	return console.WithHint(
		fmt.Errorf("%s has joined, but is not Ready after %s: %s (%s): %s", j.Name, waited, ready.Status, ready.Reason, ready.Message),
		"%s; %s", advice, back)
}
