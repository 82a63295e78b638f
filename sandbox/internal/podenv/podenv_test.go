package podenv

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestExpand(t *testing.T) {
	known := map[string]string{"A": "1", "B": "$(A)", "EMPTY": ""}
	lookup := func(name string) (string, bool) { v, ok := known[name]; return v, ok }
	for text, want := range map[string]string{
		"":             "",
		"plain":        "plain",
		"$(A)":         "1",
		"x$(A)y$(A)z":  "x1y1z",
		"$(EMPTY)":     "",
		"$(B)":         "$(A)", // values are not read again
		"$(NOBODY)":    "$(NOBODY)",
		"$$(A)":        "$(A)",
		"$$$(A)":       "$1",
		"$A ${A} $":    "$A ${A} $",
		"$(A":          "$(A",
		"$()":          "$()",
		"a$$b":         "a$b",
		"$(NO$(A))":    "$(NO$(A))",
		"100% $(A)/$x": "100% 1/$x",
	} {
		if got := expand(text, lookup); got != want {
			t.Errorf("expand(%q) = %q, want %q", text, got, want)
		}
	}
}

func field(path string) *corev1.EnvVarSource {
	return &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: path}}
}

func configKey(name, key string, optional bool) *corev1.EnvVarSource {
	return &corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{
		LocalObjectReference: corev1.LocalObjectReference{Name: name}, Key: key, Optional: &optional,
	}}
}

func testSource() Source {
	objects := func(name string) (map[string]string, bool, error) {
		if name == "there" {
			return map[string]string{"k": "v", "j": "w"}, true, nil
		}
		return nil, false, nil
	}
	return Source{
		Pod: &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{
				Name: "web-0", Namespace: "shop", UID: "u",
				Labels:      map[string]string{"app.kubernetes.io/name": "web"},
				Annotations: map[string]string{"note": "hi"},
			},
			Spec: corev1.PodSpec{NodeName: "node", ServiceAccountName: "default"},
		},
		PodIPs: []string{"198.18.0.9", "fd00::9"}, HostIPs: []string{"198.18.0.1", "fd00::1"},
		ConfigMap: objects, Secret: objects,
	}
}

func TestOf(t *testing.T) {
	env := []corev1.EnvVar{
		{Name: "NAME", ValueFrom: field("metadata.name")},
		{Name: "NAMESPACE", ValueFrom: field("metadata.namespace")},
		{Name: "APP", ValueFrom: field("metadata.labels['app.kubernetes.io/name']")},
		{Name: "NOTE", ValueFrom: field("metadata.annotations['note']")},
		{Name: "NO_LABEL", ValueFrom: field("metadata.labels['x']")},
		{Name: "IP", ValueFrom: field("status.podIP")},
		{Name: "IPS", ValueFrom: field("status.podIPs")},
		{Name: "NODE", ValueFrom: field("spec.nodeName")},
		{Name: "HOST", ValueFrom: field("status.hostIP")},
		{Name: "URL", Value: "http://$(IP)/$(NAME)?$(LATER)"},
		{Name: "LATER", Value: "x"},
		{Name: "K", ValueFrom: configKey("there", "k", false)},
		{Name: "OPTIONAL", ValueFrom: configKey("there", "none", true)},
		{Name: "p_j", Value: "mine"},
	}
	c := &corev1.Container{
		EnvFrom: []corev1.EnvFromSource{{Prefix: "p_", ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "there"}}}},
		Env:     env,
	}
	v, err := Of(c, testSource())
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"p_j=mine", "p_k=v",
		"NAME=web-0", "NAMESPACE=shop", "APP=web", "NOTE=hi", "NO_LABEL=", "IP=198.18.0.9", "IPS=198.18.0.9,fd00::9",
		"NODE=node", "HOST=198.18.0.1", "URL=http://198.18.0.9/web-0?$(LATER)", "LATER=x", "K=v",
	}
	if diff := cmp.Diff(want, v.Environ()); diff != "" {
		t.Errorf("environment (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"--at=198.18.0.9", "$(x)"}, v.Expand([]string{"--at=$(IP)", "$$(x)"})); diff != "" {
		t.Errorf("args (-want +got):\n%s", diff)
	}
}

func TestMissing(t *testing.T) {
	for what, c := range map[string]*corev1.Container{
		"key":    {Env: []corev1.EnvVar{{Name: "X", ValueFrom: configKey("there", "none", false)}}},
		"object": {Env: []corev1.EnvVar{{Name: "X", ValueFrom: configKey("gone", "k", false)}}},
		"whole object": {EnvFrom: []corev1.EnvFromSource{{
			SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "gone"}},
		}}},
	} {
		var missing *MissingError
		if _, err := Of(c, testSource()); !errors.As(err, &missing) {
			t.Errorf("%s: error = %v, want a MissingError", what, err)
		}
	}
	if _, err := Of(&corev1.Container{Env: []corev1.EnvVar{{Name: "X", ValueFrom: field("spec.x")}}}, testSource()); err == nil {
		t.Error("an unknown field has a value")
	}
}
