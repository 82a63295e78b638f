package join

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/namesake-io/namesake/internal/cli/membership"
	"github.com/namesake-io/namesake/internal/cli/target"
)

// undoTimeout bounds the way back, which must also end when an API server has
// gone meanwhile.
const undoTimeout = 15 * time.Second

// undo remembers what this call created, so that a failure leaves nothing of it.
type undo struct {
	created []creation
}

type creation struct {
	in *target.Target
	// obj has a UID when the API server confirmed its creation.
	obj client.Object
}

func (u *undo) add(in *target.Target, obj client.Object) {
	u.created = append(u.created, creation{in: in, obj: obj})
}

// run takes back what was created, the last first. It works on when ctx is
// cancelled: an interrupt is the usual reason to be here.
func (u *undo) run(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoTimeout)
	defer cancel()
	var errs []error
	for i := len(u.created) - 1; i >= 0; i-- {
		if err := u.created[i].takeBack(ctx); err != nil {
			errs = append(errs, err)
		}
	}
	u.created = nil
	return errors.Join(errs...)
}

// takeBack deletes the very object that was created. When the answer to its
// creation was lost, that is the one of ours that stands there now.
func (c creation) takeBack(ctx context.Context) error {
	uid := c.obj.GetUID()
	if uid == "" {
		err := c.in.Client.Get(ctx, client.ObjectKeyFromObject(c.obj), c.obj)
		if apierrors.IsNotFound(err) || err == nil && !membership.IsOurs(c.obj) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("looking for %s in the %s: %w", membership.Describe(c.obj), c.in, err)
		}
		uid = c.obj.GetUID()
	}
	err := c.in.Client.Delete(ctx, c.obj, client.Preconditions{UID: &uid})
	if client.IgnoreNotFound(err) != nil && !apierrors.IsConflict(err) {
		return fmt.Errorf("removing %s from the %s: %w", membership.Describe(c.obj), c.in, err)
	}
	return nil
}
