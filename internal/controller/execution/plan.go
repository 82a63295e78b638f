package execution

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	workv1alpha1 "github.com/namesake-io/namesake/api/work/v1alpha1"
	"github.com/namesake-io/namesake/internal/member"
)

// verb is what is to be done for one object.
type verb int

const (
	// none: it stands as it should.
	none verb = iota
	create
	update
	// adopt: a foreign object stands there and is used as it is.
	adopt
	// refuse: a foreign object stands there and is not ours to change.
	refuse
	// await: it is being deleted; it is made again when it is gone.
	await
)

// step is what is to be done for one object, and the object as it is written.
type step struct {
	verb    verb
	obj     *unstructured.Unstructured
	message string
}

// plan decides for one object. Neither input is changed.
func plan(o object) step {
	switch {
	case o.have == nil:
		return step{verb: create, obj: o.want}
	case o.have.GetDeletionTimestamp() != nil:
		return step{verb: await, message: describe(o.want) + " is being deleted in the cluster; it is made again when it is gone"}
	case o.want.GroupVersionKind() == member.NamespaceKind:
		// Namespaces are made where they are missing, and never changed.
		return step{verb: none}
	}
	if !ours(o.have, o.want) {
		switch o.want.GetAnnotations()[workv1alpha1.ConflictResolutionAnnotation] {
		case workv1alpha1.ConflictAdopt:
			if lacking := lackingPorts(o.want, o.have); len(lacking) > 0 {
				return step{verb: refuse, message: describe(o.want) + " already stands in the cluster and has no port " +
					strings.Join(lacking, ", ") + ", so callers would reach nobody there: add it, or set spec.conflictResolution to Overwrite"}
			}
			return step{verb: adopt}
		case workv1alpha1.ConflictOverwrite:
		default:
			return step{verb: refuse, message: describe(o.want) + " already stands in the cluster and was not made by Namesake: " +
				"delete or rename it there, or set spec.conflictResolution to Adopt or Overwrite"}
		}
	}
	merged := merge(o.want, o.have)
	if equality.Semantic.DeepEqual(merged.Object, o.have.Object) {
		return step{verb: none}
	}
	return step{verb: update, obj: merged}
}

// ours says whether a standing object was made from a Work of this member. Two
// marks, so that an edit that takes one off does not make the object foreign.
func ours(have, want *unstructured.Unstructured) bool {
	from, marked := have.GetAnnotations()[workv1alpha1.NamespaceAnnotation]
	if marked {
		return from == want.GetAnnotations()[workv1alpha1.NamespaceAnnotation]
	}
	return slices.ContainsFunc(have.GetManagedFields(), func(e metav1.ManagedFieldsEntry) bool {
		return e.Manager == workv1alpha1.ExecutionFieldManager
	})
}

// lackingPorts are the ports of a wanted Service that a standing one does not
// have. Names count: proxies find the endpoints of a port by its name.
func lackingPorts(want, have *unstructured.Unstructured) []string {
	wanted, _, _ := unstructured.NestedSlice(want.Object, "spec", "ports")
	standing, _, _ := unstructured.NestedSlice(have.Object, "spec", "ports")
	name := func(item any) string {
		port, _ := item.(map[string]any)
		if port["name"] == nil {
			return portKey(port)
		}
		return fmt.Sprintf("%s (%s)", port["name"], portKey(port))
	}
	var lacking []string
	for _, port := range wanted {
		if !slices.ContainsFunc(standing, func(other any) bool { return name(other) == name(port) }) {
			lacking = append(lacking, name(port))
		}
	}
	return lacking
}

// merge returns the standing object with the wanted content. What the cluster
// assigns, and what others have labelled and annotated, stays.
func merge(want, have *unstructured.Unstructured) *unstructured.Unstructured {
	out := have.DeepCopy()
	desired := want.DeepCopy()
	if want.GroupVersionKind().Group == "" && want.GetKind() == "Service" {
		retainService(desired.Object, have.Object)
	}
	for key := range out.Object {
		if _, wanted := desired.Object[key]; !wanted && !isSystemField(key) {
			delete(out.Object, key)
		}
	}
	for key, value := range desired.Object {
		if !isSystemField(key) {
			out.Object[key] = value
		}
	}
	out.SetLabels(over(have.GetLabels(), want.GetLabels()))
	out.SetAnnotations(over(have.GetAnnotations(), want.GetAnnotations()))
	return out
}

// isSystemField names the fields of an object that are not its content.
func isSystemField(key string) bool {
	return key == "apiVersion" || key == "kind" || key == "metadata" || key == "status"
}

// over returns the first map with the entries of the second set.
func over(below, above map[string]string) map[string]string {
	out := maps.Clone(below)
	if out == nil {
		out = map[string]string{}
	}
	maps.Copy(out, above)
	return out
}

// describe names an object for a person.
func describe(obj *unstructured.Unstructured) string {
	if obj.GetNamespace() == "" {
		return obj.GetKind() + " " + obj.GetName()
	}
	return fmt.Sprintf("%s %s/%s", obj.GetKind(), obj.GetNamespace(), obj.GetName())
}

// assigned are the fields of a Service's spec that its cluster decides on. Of a
// wish only "headless" counts, where the cluster has not assigned an address.
var assigned = []string{"clusterIP", "clusterIPs", "healthCheckNodePort", "ipFamilies", "ipFamilyPolicy"}

// defaulted are the fields that a server fills in when they are left out.
var defaulted = []string{"type", "sessionAffinity", "internalTrafficPolicy", "externalTrafficPolicy", "allocateLoadBalancerNodePorts", "loadBalancerClass"}

// retainService copies into the wanted Service what the member's own has been
// given by its cluster.
func retainService(want, have map[string]any) {
	wantSpec, _ := want["spec"].(map[string]any)
	haveSpec, _ := have["spec"].(map[string]any)
	if wantSpec == nil || haveSpec == nil {
		return
	}
	for _, field := range assigned {
		if value, found := haveSpec[field]; found {
			wantSpec[field] = value
		} else if field != "clusterIP" || wantSpec[field] != corev1.ClusterIPNone {
			delete(wantSpec, field)
		}
	}
	for _, field := range defaulted {
		if _, wanted := wantSpec[field]; wanted {
			continue
		}
		if value, found := haveSpec[field]; found {
			wantSpec[field] = value
		}
	}
	if _, wanted := wantSpec["sessionAffinityConfig"]; !wanted && wantSpec["sessionAffinity"] == string(corev1.ServiceAffinityClientIP) {
		if value, found := haveSpec["sessionAffinityConfig"]; found {
			wantSpec["sessionAffinityConfig"] = value
		}
	}
	retainPorts(wantSpec, haveSpec)
}

// retainPorts does so for each port.
func retainPorts(wantSpec, haveSpec map[string]any) {
	wantPorts, _ := wantSpec["ports"].([]any)
	havePorts, _ := haveSpec["ports"].([]any)
	for _, item := range wantPorts {
		port, _ := item.(map[string]any)
		for _, other := range havePorts {
			standing, _ := other.(map[string]any)
			if port == nil || standing == nil || portKey(port) != portKey(standing) {
				continue
			}
			for _, field := range []string{"nodePort", "targetPort", "protocol"} {
				if _, wanted := port[field]; wanted && field != "nodePort" {
					continue
				}
				if value, found := standing[field]; found {
					port[field] = value
				}
			}
		}
	}
}

// portKey identifies a port of a Service: TCP 53 and UDP 53 are two.
func portKey(port map[string]any) string {
	protocol, _ := port["protocol"].(string)
	if protocol == "" {
		protocol = "TCP"
	}
	return fmt.Sprint(protocol, "/", port["port"])
}
