package e2e

import (
	"context"
	"errors"
	"fmt"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// leaseKey is where the hub's managers agree who works.
var leaseKey = client.ObjectKey{Namespace: "karmada-cluster", Name: "namesake-controller-manager"}

// holder returns who holds the lease, "" if nobody does.
func (f *fleet) holder(ctx context.Context) (string, error) {
	lease := &coordinationv1.Lease{}
	if err := f.hub.Get(ctx, leaseKey, lease); err != nil {
		return "", err
	}
	return ptr.Deref(lease.Spec.HolderIdentity, ""), nil
}

// waitNewLeader waits until another manager than before works.
func (f *fleet) waitNewLeader(t *testing.T, before string) {
	t.Helper()
	within(t, patience, "a new leader", func(ctx context.Context) error {
		who, err := f.holder(ctx)
		switch {
		case err != nil:
			return err
		case who == "":
			return errors.New("nobody holds the lease")
		case who == before:
			return fmt.Errorf("%s still holds the lease", who)
		}
		return nil
	})
}
