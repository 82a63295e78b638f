package join

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"reflect"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/namesake-io/namesake/internal/cli/console"
	"github.com/namesake-io/namesake/internal/cli/membership"
	"github.com/namesake-io/namesake/internal/cli/target"
)

// ensure makes obj stand in t as set leaves it, labelled as ours, and writes
// nothing when it does already. What it creates is undone on failure.
func (j *joining) ensure(ctx context.Context, t *target.Target, obj client.Object, set func()) error {
	foreign, missing := false, false
	result, err := controllerutil.CreateOrPatch(ctx, t.Client, obj, func() error {
		missing = obj.GetResourceVersion() == ""
		foreign = !missing && !membership.IsOurs(obj)
		if foreign {
			return fmt.Errorf("%s stands in the %s and was not made by Namesake (it lacks the label karmada.io/system=true)",
				describe(obj), t)
		}
		membership.Mark(obj)
		set()
		return nil
	})
	switch {
	case foreign:
		return console.WithHint(err, "remove or rename it, or give it that label if it is ours after all")
	case apierrors.IsAlreadyExists(err):
		return console.WithHint(fmt.Errorf("somebody else made %s in the %s just now: %w", describe(obj), t, err),
			"run the command again")
	case err != nil:
		if missing && isDoubtful(err) {
			j.undo.add(t, obj)
		}
		return fmt.Errorf("writing %s in the %s: %w", describe(obj), t, err)
	}
	if result == controllerutil.OperationResultCreated {
		j.undo.add(t, obj)
	}
	return nil
}

// isDoubtful is whether a write that failed may have been done all the same: no
// answer came, or the API server failed after it.
func isDoubtful(err error) bool {
	var status apierrors.APIStatus
	return !errors.As(err, &status) || status.Status().Code >= http.StatusInternalServerError
}

// describe names an object as people do: ServiceAccount karmada-cluster/namesake.
func describe(obj client.Object) string {
	kind := reflect.TypeOf(obj).Elem().Name()
	if obj.GetNamespace() == "" {
		return kind + " " + obj.GetName()
	}
	return kind + " " + obj.GetNamespace() + "/" + obj.GetName()
}
