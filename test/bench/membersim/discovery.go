package membersim

import (
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"
)

// resource is a kind that is served.
type resource struct {
	group      schema.GroupVersion
	name, kind string
	namespaced bool
	empty      func() object
}

func (r resource) groupResource() schema.GroupResource {
	return schema.GroupResource{Group: r.group.Group, Resource: r.name}
}

var (
	namespaces = resource{
		group: corev1.SchemeGroupVersion, name: "namespaces", kind: "Namespace", empty: func() object { return &corev1.Namespace{} },
	}
	services = resource{
		group: corev1.SchemeGroupVersion, name: "services", kind: "Service", namespaced: true, empty: func() object { return &corev1.Service{} },
	}
	endpointSlices = resource{
		group: discoveryv1.SchemeGroupVersion, name: "endpointslices", kind: "EndpointSlice", namespaced: true,
		empty: func() object { return &discoveryv1.EndpointSlice{} },
	}
	resources = []resource{namespaces, services, endpointSlices}
)

// verbs of every resource.
var verbs = metav1.Verbs{"create", "delete", "get", "list", "update", "watch"}

// described returns what a path of discovery says, nil for another path.
func described(path string) any {
	groups := map[string]schema.GroupVersion{"/api/v1": corev1.SchemeGroupVersion, "/apis/discovery.k8s.io/v1": discoveryv1.SchemeGroupVersion}
	switch path {
	case "/version":
		return &version.Info{Major: "1", Minor: "37", GitVersion: "v1.37.0-simulated"}
	case "/api":
		return &metav1.APIVersions{TypeMeta: metav1.TypeMeta{Kind: "APIVersions"}, Versions: []string{"v1"}}
	case "/apis":
		v := metav1.GroupVersionForDiscovery{GroupVersion: discoveryv1.SchemeGroupVersion.String(), Version: "v1"}
		return &metav1.APIGroupList{
			TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"},
			Groups:   []metav1.APIGroup{{Name: discoveryv1.GroupName, Versions: []metav1.GroupVersionForDiscovery{v}, PreferredVersion: v}},
		}
	}
	group, found := groups[path]
	if !found {
		return nil
	}
	list := &metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: group.String()}
	for _, r := range resources {
		if r.group == group {
			list.APIResources = append(list.APIResources, metav1.APIResource{Name: r.name, Kind: r.kind, Namespaced: r.namespaced, Verbs: verbs})
		}
	}
	return list
}
