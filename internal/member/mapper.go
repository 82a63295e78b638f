package member

import (
	"net/http"
	"sync"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// newMapper returns a mapper that knows by itself what every member is asked for,
// and asks the member about other kinds. Of a member that does not answer, nobody
// has to wait for what everybody knows; and what a member serves, some hundred
// kinds, is neither asked for nor kept for a thousand members.
func newMapper(config *rest.Config, client *http.Client) (meta.RESTMapper, error) {
	asking, err := apiutil.NewDynamicRESTMapper(config, client)
	if err != nil {
		return nil, err
	}
	return meta.FirstHitRESTMapper{MultiRESTMapper: meta.MultiRESTMapper{known(), asking}}, nil
}

// known maps those kinds, once for all members.
var known = sync.OnceValue(func() meta.RESTMapper {
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(NamespaceKind, meta.RESTScopeRoot)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("Service"), meta.RESTScopeNamespace)
	mapper.Add(discoveryv1.SchemeGroupVersion.WithKind("EndpointSlice"), meta.RESTScopeNamespace)
	return mapper
})
