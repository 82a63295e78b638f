package main

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/namesake-io/namesake/api/cluster/v1alpha1"
)

// An agent renews a credential that has less than half of its life before it, and
// takes a new one over that a second registration brings, both without a restart.
func TestCredential(t *testing.T) {
	hub, members := startSites(t, "b")
	b := members[0]
	dir := t.TempDir()
	token, kubeconfig := filepath.Join(dir, "token"), filepath.Join(dir, "agent.kubeconfig")
	hub.ctl(t, "token", "create", "b", "--write", token)
	hub.ctl(t, "register", "b", "--hub-kubeconfig", token, "--cluster-kubeconfig", b.kubeconfig,
		"--agent-kubeconfig", kubeconfig, "--credential-ttl", "10m")
	first := b.credential(t)
	runAgent(t, kubeconfig)
	eventually(t, "the credential is renewed", func(context.Context) string {
		if b.credential(t) == first {
			return "it is the first one"
		}
		return ""
	})
	if left := time.Until(b.expiration(t)); left < time.Hour {
		t.Errorf("the renewed credential ends in %s", left)
	}
	hub.beats(t, "b")

	// All tokens of the account end with it. The API server may know them for a while.
	second := b.credential(t)
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-es-b", Name: clusterv1alpha1.AgentName}}
	if err := hub.Delete(t.Context(), account); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the credential is refused", func(ctx context.Context) string {
		err := hub.as(t, second).Get(ctx, client.ObjectKey{Name: "b"}, &clusterv1alpha1.Cluster{})
		if !apierrors.IsUnauthorized(err) {
			return fmt.Sprintf("error %v", err)
		}
		return ""
	})
	hub.ctl(t, "token", "create", "b", "--write", token)
	hub.ctl(t, "register", "b", "--hub-kubeconfig", token, "--cluster-kubeconfig", b.kubeconfig)
	if b.credential(t) == second {
		t.Fatal("the second registration brought no credential")
	}
	hub.beats(t, "b")
}

// expiration is when a member's credential for the hub ends.
func (s *site) expiration(t *testing.T) time.Time {
	t.Helper()
	secret := &corev1.Secret{}
	key := client.ObjectKey{Namespace: clusterv1alpha1.SystemNamespace, Name: clusterv1alpha1.AgentName}
	if err := s.Get(t.Context(), key, secret); err != nil {
		t.Fatal(err)
	}
	out, err := time.Parse(time.RFC3339, string(secret.Data[clusterv1alpha1.SecretExpirationKey]))
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// beats waits until an agent has renewed its lease since now.
func (s *site) beats(t *testing.T, name string) {
	t.Helper()
	since := time.Now()
	eventually(t, "the agent renews its lease", func(ctx context.Context) string {
		lease := &coordinationv1.Lease{}
		if err := s.Get(ctx, client.ObjectKey{Namespace: clusterv1alpha1.SystemNamespace, Name: name}, lease); err != nil {
			return err.Error()
		}
		if lease.Spec.RenewTime == nil || lease.Spec.RenewTime.Before(&metav1.MicroTime{Time: since}) {
			return fmt.Sprintf("last at %s", lease.Spec.RenewTime)
		}
		return ""
	})
}
