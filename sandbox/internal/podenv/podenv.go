// Package podenv works out the environment and the arguments of a container as
// a kubelet does. It is pure: what it needs to know of other objects is asked
// through Source.
package podenv

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Source is what an environment is made of.
type Source struct {
	Pod     *corev1.Pod
	PodIPs  []string
	HostIPs []string
	// ConfigMap and Secret return the data of an object in the pod's namespace,
	// and false when there is none.
	ConfigMap func(name string) (map[string]string, bool, error)
	Secret    func(name string) (map[string]string, bool, error)
}

// Variables are NAME=value, in the order in which they were defined.
type Variables struct {
	names  []string
	values map[string]string
}

func (v *Variables) set(name, value string) {
	if v.values == nil {
		v.values = map[string]string{}
	}
	if _, known := v.values[name]; !known {
		v.names = append(v.names, name)
	}
	v.values[name] = value
}

func (v *Variables) lookup(name string) (string, bool) {
	value, ok := v.values[name]
	return value, ok
}

// Environ returns the variables as a process takes them.
func (v *Variables) Environ() []string {
	var list []string
	for _, name := range v.names {
		list = append(list, name+"="+v.values[name])
	}
	return list
}

// Expand replaces $(NAME) in each text. $$ stands for one $, and the name of
// nothing stays as it is.
func (v *Variables) Expand(texts []string) []string {
	var expanded []string
	for _, text := range texts {
		expanded = append(expanded, expand(text, v.lookup))
	}
	return expanded
}

// Of returns the variables of a container: those of envFrom, then those of env,
// which may refer to earlier ones.
func Of(c *corev1.Container, s Source) (*Variables, error) {
	v := &Variables{}
	for _, from := range c.EnvFrom {
		data, err := s.whole(from)
		if err != nil {
			return nil, err
		}
		for _, name := range slices.Sorted(maps.Keys(data)) {
			v.set(from.Prefix+name, data[name])
		}
	}
	for _, e := range c.Env {
		if e.ValueFrom == nil {
			v.set(e.Name, expand(e.Value, v.lookup))
			continue
		}
		value, ok, err := s.value(e.ValueFrom)
		if err != nil {
			return nil, fmt.Errorf("finding the value of %s: %w", e.Name, err)
		}
		if ok {
			v.set(e.Name, value)
		}
	}
	return v, nil
}

// MissingError says which object or key a container waits for.
type MissingError struct {
	What string
}

func (e *MissingError) Error() string { return e.What + " not found" }

func (s Source) whole(from corev1.EnvFromSource) (map[string]string, error) {
	var (
		data     map[string]string
		found    bool
		err      error
		what     string
		optional *bool
	)
	switch {
	case from.ConfigMapRef != nil:
		what, optional = "configmap "+from.ConfigMapRef.Name, from.ConfigMapRef.Optional
		data, found, err = s.ConfigMap(from.ConfigMapRef.Name)
	case from.SecretRef != nil:
		what, optional = "secret "+from.SecretRef.Name, from.SecretRef.Optional
		data, found, err = s.Secret(from.SecretRef.Name)
	}
	if err == nil && !found && (optional == nil || !*optional) {
		err = &MissingError{What: what}
	}
	return data, err
}

// value returns the value of a variable, and false when it is not to be set.
func (s Source) value(from *corev1.EnvVarSource) (string, bool, error) {
	switch {
	case from.FieldRef != nil:
		value, err := s.field(from.FieldRef.FieldPath)
		return value, err == nil, err
	case from.ConfigMapKeyRef != nil:
		r := from.ConfigMapKeyRef
		data, _, err := s.ConfigMap(r.Name)
		return pick(data, err, reference{"configmap " + r.Name, r.Key, r.Optional})
	case from.SecretKeyRef != nil:
		r := from.SecretKeyRef
		data, _, err := s.Secret(r.Name)
		return pick(data, err, reference{"secret " + r.Name, r.Key, r.Optional})
	case from.ResourceFieldRef != nil:
		return "0", true, nil // nothing is limited here
	default:
		return "", false, fmt.Errorf("unknown source %v", from)
	}
}

type reference struct {
	what, key string
	optional  *bool
}

func pick(data map[string]string, err error, r reference) (string, bool, error) {
	if err != nil {
		return "", false, err
	}
	value, ok := data[r.key]
	if !ok && (r.optional == nil || !*r.optional) {
		return "", false, &MissingError{What: fmt.Sprintf("key %s of %s", r.key, r.what)}
	}
	return value, ok, nil
}

// field reads one field of the downward API.
func (s Source) field(path string) (string, error) {
	if key, ok := subscript(path, "metadata.labels"); ok {
		return s.Pod.Labels[key], nil
	}
	if key, ok := subscript(path, "metadata.annotations"); ok {
		return s.Pod.Annotations[key], nil
	}
	switch path {
	case "metadata.name":
		return s.Pod.Name, nil
	case "metadata.namespace":
		return s.Pod.Namespace, nil
	case "metadata.uid":
		return string(s.Pod.UID), nil
	case "spec.nodeName":
		return s.Pod.Spec.NodeName, nil
	case "spec.serviceAccountName":
		return s.Pod.Spec.ServiceAccountName, nil
	case "status.podIP":
		return first(s.PodIPs), nil
	case "status.podIPs":
		return strings.Join(s.PodIPs, ","), nil
	case "status.hostIP":
		return first(s.HostIPs), nil
	case "status.hostIPs":
		return strings.Join(s.HostIPs, ","), nil
	default:
		return "", fmt.Errorf("field %q can't be asked for", path)
	}
}

func first(list []string) string {
	if len(list) == 0 {
		return ""
	}
	return list[0]
}

// subscript reads the key of field['key'].
func subscript(path, field string) (string, bool) {
	rest, ok := strings.CutPrefix(path, field+"['")
	if !ok {
		return "", false
	}
	return strings.CutSuffix(rest, "']")
}

func expand(text string, lookup func(string) (string, bool)) string {
	var b strings.Builder
	for {
		before, after, found := strings.Cut(text, "$")
		b.WriteString(before)
		if !found {
			return b.String()
		}
		switch {
		case strings.HasPrefix(after, "$"):
			b.WriteByte('$')
			text = after[1:]
		case strings.HasPrefix(after, "("):
			name, rest, closed := strings.Cut(after[1:], ")")
			value, known := lookup(name)
			switch {
			case closed && known:
				b.WriteString(value)
				text = rest
			case closed:
				b.WriteString("$(" + name + ")")
				text = rest
			default:
				b.WriteByte('$')
				text = after
			}
		default:
			b.WriteByte('$')
			text = after
		}
	}
}
