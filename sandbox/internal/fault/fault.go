package fault

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
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

	// The rest are faults of a data plane.

	// EastWestDown takes the member's link to the other members down.
	EastWestDown Name = "east-west-down"
	// PodsUnreachable drops what goes to the member's pods and comes from them.
	PodsUnreachable Name = "pods-unreachable"
	// PacketLoss drops a part of the packets on the member's link to the others.
	PacketLoss Name = "packet-loss"
	// Latency adds its value to each round trip over that link.
	Latency Name = "latency"
)

// MaxDelay bounds what a path can be slowed by; a longer one is a cut.
const MaxDelay = time.Minute

type kind struct {
	name Name
	// value is an example, empty for a fault without one.
	value string
	// check tells what is wrong with a value.
	check func(string) error
	// network faults need a data plane.
	network bool
}

// kinds lists the faults in the order in which they are shown.
var kinds = []kind{
	{name: APIDown},
	{name: APIUnreachable},
	{name: APISlow, value: "200ms", check: checkDelay},
	{name: EastWestDown, network: true},
	{name: PodsUnreachable, network: true},
	{name: PacketLoss, value: "20%", check: checkPercent, network: true},
	{name: Latency, value: "50ms", check: checkDelay, network: true},
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
	if err := k.check(value); err != nil {
		return Fault{}, fmt.Errorf("fault %s needs %w, as in %s=%s; not %q", name, err, name, k.value, value)
	}
	return f, nil
}

func checkDelay(value string) error {
	if d, err := time.ParseDuration(value); err != nil || d <= 0 || d > MaxDelay {
		return errors.New("a duration of at most 1m")
	}
	return nil
}

func checkPercent(value string) error {
	if _, err := Share(value); err != nil {
		return errors.New("a percentage between 0% and 100%")
	}
	return nil
}

// Share reads a percentage, 20% as 0.2.
func Share(value string) (float64, error) {
	number, isPercent := strings.CutSuffix(value, "%")
	percent, err := strconv.ParseFloat(number, 64)
	if err != nil || !isPercent || !(percent > 0 && percent <= 100) {
		return 0, fmt.Errorf("%q is not a percentage", value)
	}
	return percent / 100, nil
}

// OfNetwork tells whether the fault needs a data plane.
func (f Fault) OfNetwork() bool {
	return slices.ContainsFunc(kinds, func(k kind) bool { return k.name == f.Name && k.network })
}
