package membersim

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
)

// negotiate returns how a client wants its answer: protobuf if it takes that.
func negotiate(accept string) runtime.SerializerInfo {
	wanted := runtime.ContentTypeJSON
	if strings.Contains(accept, runtime.ContentTypeProtobuf) {
		wanted = runtime.ContentTypeProtobuf
	}
	info, _ := runtime.SerializerInfoForMediaType(scheme.Codecs.SupportedMediaTypes(), wanted)
	return info
}

// answer writes an object.
func answer(w http.ResponseWriter, req *http.Request, code int, obj runtime.Object, group schema.GroupVersion) {
	info := negotiate(req.Header.Get("Accept"))
	w.Header().Set("Content-Type", info.MediaType)
	w.WriteHeader(code)
	// A client that has gone needs no answer.
	_ = scheme.Codecs.EncoderForVersion(info.Serializer, group).Encode(shallow(obj), w)
}

// shallow returns a copy to encode: encoders write the kind into what they encode,
// and stored objects are shared.
func shallow(obj runtime.Object) runtime.Object {
	switch o := obj.(type) {
	case *corev1.Namespace:
		c := *o
		return &c
	case *corev1.Service:
		c := *o
		return &c
	case *discoveryv1.EndpointSlice:
		c := *o
		return &c
	}
	return obj
}

// refuse writes an error.
func refuse(w http.ResponseWriter, req *http.Request, err error) {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		status = apierrors.NewInternalError(err)
	}
	s := status.Status()
	answer(w, req, int(s.Code), &s, metav1.SchemeGroupVersion)
}

// decode reads the object of a request.
func decode(r resource, body []byte) (object, error) {
	into := r.empty()
	found, _, err := scheme.Codecs.UniversalDeserializer().Decode(body, ptrTo(r.group.WithKind(r.kind)), into)
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	obj, ok := found.(object)
	if !ok {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("a %T is no %s", found, r.kind))
	}
	return obj, nil
}

func ptrTo[T any](v T) *T { return &v }

// listOf returns objects as a list.
func listOf(r resource, found []object, version string) runtime.Object {
	meta := metav1.ListMeta{ResourceVersion: version}
	switch r.name {
	case namespaces.name:
		list := &corev1.NamespaceList{ListMeta: meta}
		fill(&list.Items, found, func(o *corev1.Namespace) corev1.Namespace { return *o })
		return list
	case services.name:
		list := &corev1.ServiceList{ListMeta: meta}
		fill(&list.Items, found, func(o *corev1.Service) corev1.Service { return *o })
		return list
	}
	list := &discoveryv1.EndpointSliceList{ListMeta: meta}
	fill(&list.Items, found, func(o *discoveryv1.EndpointSlice) discoveryv1.EndpointSlice { return *o })
	return list
}

// fill copies objects of one type into the items of a list.
func fill[P any, V any](items *[]V, found []object, value func(P) V) {
	for _, obj := range found {
		if o, ok := obj.(P); ok {
			*items = append(*items, value(o))
		}
	}
}
