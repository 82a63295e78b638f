package v1alpha2

import "strings"

const (
	// Finalizer of a binding: goes when all its Works are gone.
	Finalizer = "karmada.io/binding-controller"
	// ManagedByLabel says, on a binding, which kind made it.
	ManagedByLabel = "binding.karmada.io/managed-by"
)

// BindingName returns the name of the binding of a resource.
func BindingName(kind, name string) string {
	return strings.ToLower(strings.ReplaceAll(name, ":", ".") + "-" + kind)
}
