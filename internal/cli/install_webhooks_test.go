package cli_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// webhookConfiguration is an empty one, to be read.
func webhookConfiguration(kind string) *unstructured.Unstructured {
	obj := &unstructured.Unstructured{}
	obj.SetGroupVersionKind(schema.GroupVersionKind{Group: "admissionregistration.k8s.io", Version: "v1", Kind: kind})
	obj.SetName("namesake")
	return obj
}

// clientConfigs are those of a configuration's webhooks, by name.
func clientConfigs(t *testing.T, kind string) map[string]any {
	t.Helper()
	obj := webhookConfiguration(kind)
	hub.get(t, obj)
	out := map[string]any{}
	for _, webhook := range webhooksOf(t, obj) {
		out[fmt.Sprint(webhook["name"])] = webhook["clientConfig"]
	}
	return out
}

// webhooksOf are those of a configuration, to be changed.
func webhooksOf(t *testing.T, obj *unstructured.Unstructured) (out []map[string]any) {
	t.Helper()
	list, _ := obj.Object["webhooks"].([]any)
	for _, w := range list {
		webhook, ok := w.(map[string]any)
		if !ok {
			t.Fatalf("%v is no webhook", w)
		}
		out = append(out, webhook)
	}
	return out
}

func TestInstallWebhooks(t *testing.T) {
	needServers(t)
	const mutating, validating = "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"
	t.Cleanup(func() {
		for _, kind := range []string{mutating, validating} {
			if err := client.IgnoreNotFound(hub.client.Delete(context.Background(), webhookConfiguration(kind))); err != nil {
				t.Error(err)
			}
		}
	})
	lines := func(verb string) []string {
		return []string{"✓ MutatingWebhookConfiguration namesake: " + verb, "✓ ValidatingWebhookConfiguration namesake: " + verb}
	}
	install := func(verb string, args ...string) {
		t.Helper()
		r := succeed(t, append([]string{"install"}, args...)...)
		for _, want := range lines(verb) {
			if !strings.Contains(r.out, want) {
				t.Errorf("install %v: want %q in:\n%s", args, want, r.out)
			}
		}
	}

	if r := succeed(t, "install"); strings.Contains(r.out, "Webhook") {
		t.Errorf("registered without being asked: %s", r)
	}
	install("created (dry run)", "--webhook-url", "https://127.0.0.1:1", "--dry-run")
	install("created", "--webhook-url", "https://127.0.0.1:1")
	install("unchanged", "--webhook-url", "https://127.0.0.1:1/")

	// What the controller-manager filled in stays, at another address too.
	obj := webhookConfiguration(mutating)
	hub.get(t, obj)
	bundle := "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCi0tLS0tRU5EIENFUlRJRklDQVRFLS0tLS0K"
	if err := unstructured.SetNestedField(webhooksOf(t, obj)[0], bundle, "clientConfig", "caBundle"); err != nil {
		t.Fatal(err)
	}
	if err := hub.client.Update(t.Context(), obj); err != nil {
		t.Fatal(err)
	}
	install("updated", "--webhook-url", "https://hub.example.com:8443/admission")
	want := map[string]any{"default.multiclusterservice.namesake.io": map[string]any{
		"url": "https://hub.example.com:8443/admission/mutate/multiclusterservice", "caBundle": bundle,
	}}
	if diff := cmp.Diff(want, clientConfigs(t, mutating)); diff != "" {
		t.Errorf("mutating (-want +got):\n%s", diff)
	}
	install("updated", "--webhook-service", "shop/hook:8443")
	at := func(path string) map[string]any {
		return map[string]any{"service": map[string]any{"namespace": "shop", "name": "hook", "port": int64(8443), "path": path}}
	}
	want = map[string]any{
		"validate.multiclusterservice.namesake.io": at("/validate/multiclusterservice"),
		"validate.cluster.namesake.io":             at("/validate/cluster"),
	}
	if diff := cmp.Diff(want, clientConfigs(t, validating)); diff != "" {
		t.Errorf("validating (-want +got):\n%s", diff)
	}
}

func TestInstallWebhooksRefuses(t *testing.T) {
	needServers(t)
	for want, args := range map[string][]string{
		`--webhook-url "http://127.0.0.1:9443" is no https URL, for example https://127.0.0.1:9443`:          {"--webhook-url", "http://127.0.0.1:9443"},
		`--webhook-url "127.0.0.1:9443" is no https URL`:                                                     {"--webhook-url", "127.0.0.1:9443"},
		`--webhook-url "https://:9443" is no https URL`:                                                      {"--webhook-url", "https://:9443"},
		`--webhook-url "https://h?x=y" is no https URL`:                                                      {"--webhook-url", "https://h?x=y"},
		`--webhook-service "hook" is no NAMESPACE/NAME[:PORT], for example namesake-system/namesake-webhook`: {"--webhook-service", "hook"},
		`--webhook-service "a/b:0" is no NAMESPACE/NAME[:PORT]`:                                              {"--webhook-service", "a/b:0"},
		`--webhook-service "a/B" is no NAMESPACE/NAME[:PORT]`:                                                {"--webhook-service", "a/B"},
		`--webhook-url and --webhook-service exclude each other: the controller-manager is in one place`:     {"--webhook-url", "https://h", "--webhook-service", "a/b"},
	} {
		if r := run(t, append([]string{"install"}, args...)...); r.code != 2 || !strings.Contains(r.err, want) {
			t.Errorf("install %v: want exit code 2 and %q: %s", args, want, r)
		}
	}
}
