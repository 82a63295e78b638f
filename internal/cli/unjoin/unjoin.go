package unjoin

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/namesake-io/namesake/api/cluster/v1alpha1"
	"github.com/namesake-io/namesake/internal/cli/console"
	"github.com/namesake-io/namesake/internal/cli/membership"
	"github.com/namesake-io/namesake/internal/cli/target"
)

// unjoining is one run of the command.
type unjoining struct {
	Options

	program string
	hub     *target.Target
	// member is nil without its kubeconfig, or when it can't be reached and
	// force is on.
	member *target.Target
	marker *membership.Marker
	steps  *console.Steps

	// cluster is nil when only its Secret is left.
	cluster *clusterv1alpha1.Cluster
	// pull: an agent stands in for the hub in it.
	pull bool
	// secret of the hub; nil when there is none of ours.
	secret *corev1.Secret
}

// Run lets a member go and tells what it does.
func Run(ctx context.Context, f *target.Factory, o Options) error {
	u := &unjoining{Options: o, program: f.Program}
	var err error
	if u.hub, err = f.Hub(); err != nil {
		return err
	}
	if err := u.find(ctx); err != nil {
		return u.hub.Explain(f.Program, err)
	}
	u.steps = console.NewSteps(f.Out, "Unjoining %s from the hub %s", o.Name, u.hub.URL())
	if o.Kubeconfig != "" {
		if err := u.meetMember(ctx, f); err != nil {
			return err
		}
	}
	leftBehind := ""
	if u.cluster != nil {
		uid := u.cluster.UID
		if err := u.step("deletion of Cluster "+o.Name, u.hub, func() (string, error) { return u.requestDeletion(ctx) }); err != nil {
			return err
		}
		if err := u.step("the hub has let go", u.hub, func() (string, error) { return "", u.waitGone(ctx) }); err != nil {
			return err
		}
		if u.Force {
			if leftBehind = u.leftBehind(ctx, uid); leftBehind != "" {
				u.steps.Note("%s", leftBehind)
			}
		}
	}
	if u.pull {
		if err := u.step("accounts of the agent on the hub", u.hub, func() (string, error) { return u.revoke(ctx) }); err != nil {
			return err
		}
	}
	if u.secret != nil {
		if err := u.step("credential on the hub", u.hub, func() (string, error) { return u.removeSecret(ctx) }); err != nil {
			return err
		}
	}
	if u.member != nil {
		if err := u.step("account in the member", u.member, func() (string, error) { return u.leaveMember(ctx) }); err != nil {
			return err
		}
	}
	u.steps.End("%s has left", o.Name)
	if leftBehind != "" {
		fmt.Fprintf(f.Out, "To remove what was put there, run there:\n  %s\n", strings.Join(commands(), "\n  "))
	}
	if u.member == nil {
		fmt.Fprintf(f.Out, "An account of ours still stands in it, without use. To remove it, run there:\n  %s\n",
			strings.Join(membership.Commands(), "\n  "))
	}
	return nil
}

func (u *unjoining) step(what string, t *target.Target, do func() (string, error)) error {
	return u.steps.Do(what, func() (string, error) {
		result, err := do()
		return result, t.Explain(u.program, err)
	})
}

// find reads the Cluster and its Secret. A Secret alone is what an interrupted
// unjoin leaves.
func (u *unjoining) find(ctx context.Context) error {
	cluster := &clusterv1alpha1.Cluster{}
	err := u.hub.Client.Get(ctx, client.ObjectKey{Name: u.Name}, cluster)
	switch {
	case err == nil:
		u.cluster, u.pull = cluster, cluster.Spec.SyncMode == clusterv1alpha1.Pull
	case !apierrors.IsNotFound(err):
		return fmt.Errorf("reading Cluster %s: %w", u.Name, err)
	}
	secret := &corev1.Secret{}
	err = u.hub.Client.Get(ctx, client.ObjectKey{Namespace: membership.Namespace, Name: u.Name}, secret)
	switch {
	case err == nil && membership.IsOurs(secret):
		u.secret = secret
	case client.IgnoreNotFound(err) != nil:
		return fmt.Errorf("reading Secret %s/%s: %w", membership.Namespace, u.Name, err)
	}
	if u.cluster != nil || u.secret != nil {
		return nil
	}
	return u.unknown(ctx)
}

// unknown says which names there are.
func (u *unjoining) unknown(ctx context.Context) error {
	var list clusterv1alpha1.ClusterList
	if err := u.hub.Client.List(ctx, &list); err != nil {
		return fmt.Errorf("listing Clusters: %w", err)
	}
	err := fmt.Errorf("no cluster %q has joined the %s", u.Name, u.hub)
	if len(list.Items) == 0 {
		return console.WithHint(err, "none has; is it the right hub?")
	}
	names := make([]string, 0, len(list.Items))
	for i := range list.Items {
		names = append(names, list.Items[i].Name)
	}
	return console.WithHint(err, "joined are: %s", console.List(names))
}

// meetMember makes sure, before anything is deleted, that the kubeconfig names
// this member and not another cluster.
func (u *unjoining) meetMember(ctx context.Context, f *target.Factory) error {
	member, err := target.Member(u.Kubeconfig, u.Context, f.ErrOut)
	if err != nil {
		return err
	}
	id, err := member.ID(ctx)
	if err == nil {
		u.marker, err = membership.ReadMarker(ctx, member.Client)
	}
	if err != nil {
		err = member.Explain(u.program, err)
		if u.Force {
			u.steps.Note("its account stays there: %v", err)
			return nil
		}
		return console.WithHint(err, "without --cluster-kubeconfig the hub's account stays in the member; with --force too, if need be")
	}
	if u.cluster != nil && u.cluster.Spec.ID != "" && u.cluster.Spec.ID != id {
		return console.WithHint(
			fmt.Errorf("kubeconfig %s is that of another cluster (id %s) than %s (id %s)", u.Kubeconfig, id, u.Name, u.cluster.Spec.ID),
			"name the kubeconfig of %s, whose API server is %s", u.Name, u.cluster.Spec.APIEndpoint)
	}
	hubID, err := u.hub.ID(ctx)
	if err != nil {
		return u.hub.Explain(u.program, err)
	}
	if u.marker != nil && (u.marker.HubID != hubID || u.marker.Cluster != u.Name) {
		u.steps.Note("the account in the member stays: it belongs to the hub %s, where the member is called %s", u.marker.HubURL, u.marker.Cluster)
		return nil
	}
	if u.cluster == nil && u.marker == nil {
		u.steps.Note("the member has no marker of this hub")
	}
	u.member = member
	return nil
}

// requestDeletion deletes the Cluster, which stays until the controller has
// taken its finalizer off.
func (u *unjoining) requestDeletion(ctx context.Context) (string, error) {
	result := "asked for"
	if u.Force {
		patch := client.MergeFrom(u.cluster.DeepCopy())
		metav1.SetMetaDataAnnotation(&u.cluster.ObjectMeta, clusterv1alpha1.ForceUnjoinAnnotation, "true")
		if err := client.IgnoreNotFound(u.hub.Client.Patch(ctx, u.cluster, patch)); err != nil {
			return "", fmt.Errorf("forcing the unjoin of Cluster %s: %w", u.Name, err)
		}
		result = "asked for, by force"
	}
	uid := u.cluster.UID
	err := u.hub.Client.Delete(ctx, u.cluster, client.Preconditions{UID: &uid})
	if client.IgnoreNotFound(err) != nil {
		return "", fmt.Errorf("deleting Cluster %s: %w", u.Name, err)
	}
	return result, nil
}

func (u *unjoining) revoke(ctx context.Context) (string, error) {
	found, err := membership.RevokeGrants(ctx, u.hub, u.Name)
	if err != nil || found {
		return "removed", err
	}
	return "gone already", nil
}

func (u *unjoining) removeSecret(ctx context.Context) (string, error) {
	uid := u.secret.UID
	err := u.hub.Client.Delete(ctx, u.secret, client.Preconditions{UID: &uid})
	switch {
	case apierrors.IsConflict(err):
		return "left: somebody joined this name again meanwhile", nil
	case client.IgnoreNotFound(err) != nil:
		return "", fmt.Errorf("removing Secret %s/%s: %w", membership.Namespace, u.Name, err)
	}
	return "removed", nil
}

func (u *unjoining) leaveMember(ctx context.Context) (string, error) {
	namespace, err := membership.Remove(ctx, u.member, u.marker)
	if err != nil {
		return "", err
	}
	return "removed; " + namespace, nil
}

// waitGone waits until the Cluster is gone and says now and then what is left.
func (u *unjoining) waitGone(ctx context.Context) error {
	const tellEvery = 2 * time.Second
	uid := u.cluster.UID
	told, lastTold := "", time.Now()
	err := target.Await(ctx, u.WaitTimeout, func(ctx context.Context) (bool, error) {
		err := u.hub.Client.Get(ctx, client.ObjectKey{Name: u.Name}, u.cluster)
		if apierrors.IsNotFound(err) {
			return true, nil
		}
		if err == nil && time.Since(lastTold) >= tellEvery {
			lastTold = time.Now()
			if left := u.left(ctx); left != told {
				told = left
				u.steps.Note("still there: %s", left)
			}
		}
		return u.cluster.UID != uid, err // another UID: somebody joined the name again
	})
	switch {
	case errors.Is(err, target.ErrTimeout):
		return u.stillThere(ctx)
	case ctx.Err() != nil:
		return fmt.Errorf("waiting until %s is gone (the hub goes on with it): %w", u.Name, err)
	case err != nil:
		return fmt.Errorf("waiting until %s is gone: %w", u.Name, err)
	}
	return nil
}

func (u *unjoining) stillThere(ctx context.Context) error {
	err := fmt.Errorf("%s is still there after %s: %s", u.Name, u.WaitTimeout, u.left(ctx))
	if u.Force {
		return console.WithHint(err, "is the controller-manager running against the hub? It lets go; run this again to wait on")
	}
	return console.WithHint(err, "is the controller-manager running against the hub? If the member is gone for good, add --force; "+
		"else run this again to wait on")
}

// left says what the Cluster still waits for.
func (u *unjoining) left(ctx context.Context) string {
	works := &metav1.PartialObjectMetadataList{}
	works.SetGroupVersionKind(workListKind)
	namespace := clusterv1alpha1.ExecutionNamespace(u.Name)
	count := "unknown"
	if err := u.hub.Client.List(ctx, works, client.InNamespace(namespace)); err == nil {
		count = strconv.Itoa(len(works.Items))
	} else if errors.Is(err, context.DeadlineExceeded) {
		count = "an unknown number of"
	}
	return fmt.Sprintf("%s Works in %s, %s, finalizers %s",
		count, namespace, readiness(u.cluster), strings.Join(u.cluster.Finalizers, ", "))
}
