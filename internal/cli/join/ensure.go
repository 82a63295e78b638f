package join

import (
	"context"
	"errors"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/namesake-io/namesake/internal/cli/membership"
	"github.com/namesake-io/namesake/internal/cli/target"
)

// ensure makes obj stand in t as set leaves it. What it creates is undone on failure.
func (j *joining) ensure(ctx context.Context, t *target.Target, obj client.Object, set func()) error {
	ensured, err := membership.Ensure(ctx, t, obj, set)
	if ensured.Created || err != nil && ensured.Missing && !apierrors.IsAlreadyExists(err) && isDoubtful(err) {
		j.undo.add(t, obj)
	}
	return err
}

// isDoubtful is whether a write that failed may have been done all the same: no
// answer came, or the API server failed after it.
func isDoubtful(err error) bool {
	var status apierrors.APIStatus
	return !errors.As(err, &status) || status.Status().Code >= http.StatusInternalServerError
}
