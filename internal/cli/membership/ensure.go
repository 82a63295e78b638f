package membership

import (
	"context"
	"fmt"
	"reflect"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/namesake-io/namesake/internal/cli/console"
	"github.com/namesake-io/namesake/internal/cli/target"
)

// Ensured says what Ensure met.
type Ensured struct {
	// Created: the object was not there, and is now.
	Created bool
	// Missing: it was not there, whatever became of it.
	Missing bool
}

// Ensure makes obj stand in t as set leaves it, labelled as ours, and writes
// nothing when it does already. An object of that name that is not ours is left.
func Ensure(ctx context.Context, t *target.Target, obj client.Object, set func()) (Ensured, error) {
	foreign, missing := false, false
	result, err := controllerutil.CreateOrPatch(ctx, t.Client, obj, func() error {
		missing = obj.GetResourceVersion() == ""
		foreign = !missing && !IsOurs(obj)
		if foreign {
			return fmt.Errorf("%s stands in the %s and was not made by Namesake (it lacks the label karmada.io/system=true)",
				Describe(obj), t)
		}
		Mark(obj)
		set()
		return nil
	})
	out := Ensured{Created: err == nil && result == controllerutil.OperationResultCreated, Missing: missing}
	switch {
	case foreign:
		return out, console.WithHint(err, "remove or rename it, or give it that label if it is ours after all")
	case apierrors.IsAlreadyExists(err):
		return out, console.WithHint(fmt.Errorf("somebody else made %s in the %s just now: %w", Describe(obj), t, err),
			"run the command again")
	case err != nil:
		return out, fmt.Errorf("writing %s in the %s: %w", Describe(obj), t, err)
	}
	return out, nil
}

// Describe names an object as people do: ServiceAccount karmada-cluster/namesake.
func Describe(obj client.Object) string {
	kind := reflect.TypeOf(obj).Elem().Name()
	if obj.GetNamespace() == "" {
		return kind + " " + obj.GetName()
	}
	return kind + " " + obj.GetNamespace() + "/" + obj.GetName()
}
