package demo

import "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

// condition returns status and reason of a condition, empty if there is none.
func condition(object map[string]any, name string) (status, reason string) {
	list, _, _ := unstructured.NestedSlice(object, "status", "conditions")
	for _, entry := range list {
		if c, ok := entry.(map[string]any); ok && c["type"] == name {
			status, _, _ = unstructured.NestedString(c, "status")
			reason, _, _ = unstructured.NestedString(c, "reason")
		}
	}
	return status, reason
}

// workKind returns the kind of the first object that a Work carries.
func workKind(work map[string]any) string {
	list, _, _ := unstructured.NestedSlice(work, "spec", "workload", "manifests")
	if len(list) == 0 {
		return ""
	}
	manifest, _ := list[0].(map[string]any)
	kind, _, _ := unstructured.NestedString(manifest, "kind")
	return kind
}
