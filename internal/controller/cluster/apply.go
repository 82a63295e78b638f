package cluster

import (
	"context"
	"errors"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	clusterv1alpha1 "github.com/namesake-io/namesake/api/cluster/v1alpha1"
	workv1alpha1 "github.com/namesake-io/namesake/api/work/v1alpha1"
	"github.com/namesake-io/namesake/internal/member"
	"github.com/namesake-io/namesake/internal/snapshot"
)

const (
	// leaveInterval is how often it is looked whether a leaving member is clean.
	leaveInterval = 100 * time.Millisecond
	// leaveSilent is how often a leaving member that does not answer is looked at.
	leaveSilent = 2 * time.Second
)

// prepare adds the finalizer and makes the execution namespace.
func (c *Controller) prepare(ctx context.Context, st *state) error {
	if err := c.writer.AddFinalizer(ctx, st.cluster, clusterv1alpha1.Finalizer); err != nil {
		return err
	}
	if st.namespace != nil && st.namespace.DeletionTimestamp == nil {
		return nil
	}
	if st.namespace != nil {
		return fmt.Errorf("execution namespace %s of an earlier cluster is still being deleted", st.namespace.Name)
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name:   clusterv1alpha1.ExecutionNamespace(st.cluster.Name),
		Labels: map[string]string{workv1alpha1.ManagedLabel: workv1alpha1.ManagedValue},
	}}
	if err := c.writer.Create(ctx, namespace); !apierrors.IsAlreadyExists(err) {
		return err
	}
	return nil
}

// connect makes the member be connected as its Cluster and Secret say.
func (c *Controller) connect(ctx context.Context, cluster *clusterv1alpha1.Cluster, secret *corev1.Secret, secretErr error) error {
	if cluster.Spec.SyncMode != clusterv1alpha1.Push {
		return nil
	}
	if secretErr != nil {
		return secretErr
	}
	if cluster.Spec.APIEndpoint == "" {
		return errors.New("spec.apiEndpoint is empty: it must be the URL of the member's API server")
	}
	spec := cluster.Spec.DeepCopy()
	return c.members.Ensure(ctx, member.Config{
		ID:       member.ID{Name: nameOf(cluster.Name), UID: cluster.UID},
		Endpoint: spec.APIEndpoint,
		CABundle: secret.Data[clusterv1alpha1.SecretCABundleKey],
		Token:    string(secret.Data[clusterv1alpha1.SecretTokenKey]),
		Reload: func(ctx context.Context) (string, error) {
			fresh := &corev1.Secret{}
			if err := c.secrets.Get(ctx, objectKey(spec.SecretRef), fresh); err != nil {
				return "", fmt.Errorf("reading the token of cluster %s anew: %w", cluster.Name, err)
			}
			return string(fresh.Data[clusterv1alpha1.SecretTokenKey]), nil
		},
		InsecureSkipTLSVerification: spec.InsecureSkipTLSVerification,
		ProxyURL:                    spec.ProxyURL,
		ProxyHeader:                 spec.ProxyHeader,
	})
}

// apply writes what has changed, and tells it.
func (c *Controller) apply(ctx context.Context, st *state, p changes) error {
	written := st.cluster.DeepCopy()
	if !sameTaints(st.cluster.Spec.Taints, p.Taints) {
		if err := c.writer.Patch(ctx, written, map[string]any{"spec": map[string]any{"taints": p.Taints}}); err != nil {
			return err
		}
		c.wrote.Wrote(written)
	}
	return c.report(ctx, st, written, p)
}

// report writes what has changed of the status. written is the Cluster as it was
// last written.
func (c *Controller) report(ctx context.Context, st *state, written *clusterv1alpha1.Cluster, p changes) error {
	status := map[string]any{}
	if !equality.Semantic.DeepEqual(st.cluster.Status.Conditions, p.Conditions) {
		status["conditions"] = p.Conditions
	}
	if p.Served != nil {
		if st.cluster.Status.KubernetesVersion != p.Served.version {
			status["kubernetesVersion"] = p.Served.version
		}
		if !equality.Semantic.DeepEqual(st.cluster.Status.APIEnablements, p.Served.groups) {
			status["apiEnablements"] = p.Served.groups
		}
		if p.Served.nodes != nil && !equality.Semantic.DeepEqual(st.cluster.Status.NodeSummary, p.Served.nodes) {
			status["nodeSummary"] = map[string]any{"totalNum": p.Served.nodes.TotalNum, "readyNum": p.Served.nodes.ReadyNum}
		}
	}
	if len(status) == 0 {
		return nil
	}
	if err := c.writer.StatusPatch(ctx, written, status); err != nil {
		return err
	}
	c.wrote.Wrote(written)
	if c.recorder != nil { // an agent may not write events there
		tell(c.recorder, st.cluster, p.Conditions)
	}
	return nil
}

// sameTaints compares taints by what they do, not by when they came.
func sameTaints(a, b []corev1.Taint) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if !a[i].MatchTaint(&b[i]) || a[i].Value != b[i].Value {
			return false
		}
	}
	return true
}

// leave lets a member go, in an order that leaves nothing of ours behind: first
// what Works put there and what was dispatched, then the execution namespace, the
// connection and the finalizer. The other controllers take part: to them, a
// leaving cluster is none.
func (c *Controller) leave(ctx context.Context, st *state) (time.Duration, error) {
	push := st.cluster.Spec.SyncMode == clusterv1alpha1.Push
	force := st.cluster.Annotations[clusterv1alpha1.ForceUnjoinAnnotation] == "true"
	connectErr := c.connect(ctx, st.cluster, st.secret, st.secretErr)
	m, connected := c.members.Get(nameOf(st.cluster.Name))
	answers := connected && m.Reachable() && connectErr == nil
	if !push {
		answers = agentAnswers(st)
	}

	abandon := force && !answers
	if abandon {
		c.giveUp(ctx, st, m)
	}
	if err := c.removeWorks(ctx, st, abandon); err != nil {
		return 0, err
	}
	switch {
	case len(st.works) > 0 && (answers || force):
		return leaveInterval, nil
	case push && answers && holdsSlices(m, st.cluster):
		return leaveInterval, nil
	case !answers && !force && (push || len(st.works) > 0):
		return leaveSilent, c.tellStuck(ctx, st, connectErr)
	}
	if err := c.removeRest(ctx, st, push); err != nil {
		return 0, err
	}
	c.forget(st.cluster.Name)
	if !abandon {
		tellLeft(c.recorder, st.cluster)
	}
	return 0, c.writer.RemoveFinalizer(ctx, st.cluster, clusterv1alpha1.Finalizer)
}

// removeRest removes what the hub has of a member that holds nothing of ours.
func (c *Controller) removeRest(ctx context.Context, st *state, push bool) error {
	if st.namespace != nil && st.namespace.DeletionTimestamp == nil {
		if err := c.writer.Delete(ctx, st.namespace); err != nil {
			return err
		}
	}
	if push {
		return nil
	}
	return c.writer.Delete(ctx, &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{
		Namespace: clusterv1alpha1.SystemNamespace, Name: st.cluster.Name,
	}})
}

// agentAnswers says whether the agent of a leaving member takes part. Its Works
// go when it has taken out what they put there.
func agentAnswers(st *state) bool {
	ready := meta.FindStatusCondition(st.cluster.Status.Conditions, clusterv1alpha1.ConditionReady)
	return ready != nil && ready.Reason != clusterv1alpha1.ReasonConnecting && snapshot.FromCluster(st.cluster).UnreachableSince.IsZero()
}

// giveUp tells what stays in a member that does not answer, m, which is nil when
// there is no connection. Of several looks at it the first counts, when all that
// stays is still known.
func (c *Controller) giveUp(ctx context.Context, st *state, m *member.Member) {
	c.mu.Lock()
	told := c.abandoned[st.cluster.Name] == st.cluster.UID
	c.abandoned[st.cluster.Name] = st.cluster.UID
	c.mu.Unlock()
	if told {
		return
	}
	// What an agent was given is in its Works.
	seen, dispatched := st.cluster.Spec.SyncMode != clusterv1alpha1.Push, 0
	if m != nil {
		seen, dispatched = m.Slices().Synced(), m.Slices().Counts().Dispatched
	}
	left := whatIsLeft(st.works, seen, dispatched)
	klog.FromContext(ctx).Info("A member that does not answer is given up", "cluster", st.cluster.Name, "left", left.String())
	tellLeftBehind(c.recorder, st.cluster, left)
}

// holdsSlices says whether a member may hold dispatched slices. One that serves
// none never shows a full view of them.
func holdsSlices(m *member.Member, cluster *clusterv1alpha1.Cluster) bool {
	if snapshot.FromCluster(cluster).LacksSlices {
		return false
	}
	return !m.Slices().Synced() || len(m.Slices().DispatchedServices()) > 0
}

// removeWorks deletes the Works of a leaving member. Abandoned: without waiting
// for anybody to take their objects out of the member.
func (c *Controller) removeWorks(ctx context.Context, st *state, abandon bool) error {
	standing := false
	for _, work := range st.works {
		standing = standing || work.DeletionTimestamp == nil
	}
	if standing {
		if err := c.writer.DeleteAll(ctx, &workv1alpha1.Work{}, clusterv1alpha1.ExecutionNamespace(st.cluster.Name)); err != nil {
			return err
		}
	}
	if !abandon {
		return nil
	}
	var errs []error
	for _, work := range st.works {
		// Whatever changed since does not matter: the member is given up.
		bare := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: work.Namespace, Name: work.Name}}
		err := c.writer.Patch(ctx, bare, map[string]any{"metadata": map[string]any{"finalizers": nil}})
		if !apierrors.IsNotFound(err) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// tellStuck says in the condition why a member that leaves does not go.
func (c *Controller) tellStuck(ctx context.Context, st *state, connectErr error) error {
	p := plan(st, connectErr, c.opts)
	return c.apply(ctx, st, p)
}
