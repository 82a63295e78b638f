package fault

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Name is a kind of fault.
type Name string

const (
	// APIDown stops the member's API server.
	APIDown Name = "api-down"
	// APIUnreachable makes a black hole of the path from the hub to the member.
	APIUnreachable Name = "api-unreachable"
	// APISlow adds its value to each round trip from the hub to the member.
	APISlow Name = "api-slow"
)

// MaxDelay bounds what a path can be slowed by; a longer one is a cut.
const MaxDelay = time.Minute

type kind struct {
	name Name
	// value is an example, empty for a fault without one.
	value string
}

// kinds lists the faults in the order in which they are shown.
var kinds = []kind{
	{APIDown, ""},
	{APIUnreachable, ""},
	{APISlow, "200ms"},
}

// Fault is one fault of one member.
type Fault struct {
	Name Name
	// Value is the fault's strength as written, empty where it has none.
	Value string
}

func (f Fault) String() string {
	if f.Value == "" {
		return string(f.Name)
	}
	return string(f.Name) + "=" + f.Value
}

// Usage lists all faults as they are written.
func Usage() []string {
	var list []string
	for _, k := range kinds {
		list = append(list, Fault{Name: k.name, Value: k.value}.String())
	}
	return list
}

// Parse reads a fault as written. A fault that is to be taken away needs no
// value.
func Parse(text string, on bool) (Fault, error) {
	name, value, hasValue := strings.Cut(text, "=")
	i := slices.IndexFunc(kinds, func(k kind) bool { return string(k.name) == name })
	if i < 0 {
		return Fault{}, fmt.Errorf("unknown fault %q; faults are %s", name, strings.Join(Usage(), ", "))
	}
	k := kinds[i]
	f := Fault{Name: k.name, Value: value}
	switch {
	case k.value == "" && hasValue:
		return Fault{}, fmt.Errorf("fault %s takes no value", name)
	case k.value == "" || !on && !hasValue:
		return f, nil
	}
	d, err := time.ParseDuration(value)
	if err != nil || d <= 0 || d > MaxDelay {
		return Fault{}, fmt.Errorf("fault %s needs a duration of at most 1m, as in %s=%s; not %q", name, name, k.value, value)
	}
	return f, nil
}
