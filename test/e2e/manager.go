package e2e

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

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

// waitLeader waits until a manager works that has said so after a point in time.
// Who it is does not tell: one that is started again may bear the same name.
func (f *fleet) waitLeader(t *testing.T, after time.Time) {
	t.Helper()
	within(t, patience, "a leader", func(ctx context.Context) error {
		lease := &coordinationv1.Lease{}
		if err := f.hub.Get(ctx, leaseKey, lease); err != nil {
			return err
		}
		switch {
		case ptr.Deref(lease.Spec.HolderIdentity, "") == "":
			return errors.New("nobody holds the lease")
		case lease.Spec.RenewTime == nil || !lease.Spec.RenewTime.After(after):
			return fmt.Errorf("%s has not renewed it since %s", *lease.Spec.HolderIdentity, lease.Spec.RenewTime)
		}
		return nil
	})
}
