package apply

import (
	"fmt"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// writes counts every write that is sent.
var writes = prometheus.NewCounterVec(prometheus.CounterOpts{
	Name: "namesake_writes_total",
	Help: "Writes sent to API servers, by the controller that sent them, the kind, the verb and the result.",
}, []string{"controller", "kind", "verb", "result"})

// Collectors returns the package's metrics, to be registered once.
func Collectors() []prometheus.Collector { return []prometheus.Collector{writes} }

// count adds one write.
func count(owner, verb string, obj client.Object, err error) {
	kind := obj.GetObjectKind().GroupVersionKind().Kind
	if kind == "" {
		kind = typeName(obj)
	}
	result := "ok"
	switch {
	case err == nil:
	case apierrors.IsConflict(err), apierrors.IsAlreadyExists(err):
		result = "conflict"
	default:
		result = "error"
	}
	writes.WithLabelValues(owner, kind, verb, result).Inc()
}

// typeName is the name of a Go type without its package.
func typeName(obj client.Object) string {
	_, name, _ := strings.Cut(fmt.Sprintf("%T", obj), ".")
	return name
}
