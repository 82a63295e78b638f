package certificate

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// configuration is a webhook configuration of either kind.
type configuration struct {
	kind, name, version string
	webhooks            []hook
}

// hook is one webhook of a configuration.
type hook struct {
	name   string
	client admissionregistrationv1.WebhookClientConfig
}

// configurations returns those that there are.
func (k *Keeper) configurations(ctx context.Context) (out []configuration, err error) {
	key := types.NamespacedName{Name: ConfigurationName}
	mutating := &admissionregistrationv1.MutatingWebhookConfiguration{}
	validating := &admissionregistrationv1.ValidatingWebhookConfiguration{}
	for _, obj := range []client.Object{mutating, validating} {
		err := k.reader.Get(ctx, key, obj)
		if client.IgnoreNotFound(err) != nil {
			return nil, fmt.Errorf("reading %T %s: %w", obj, key.Name, err)
		}
	}
	if mutating.Name != "" {
		c := configuration{kind: "MutatingWebhookConfiguration", name: mutating.Name, version: mutating.ResourceVersion}
		for i := range mutating.Webhooks {
			c.webhooks = append(c.webhooks, hook{mutating.Webhooks[i].Name, mutating.Webhooks[i].ClientConfig})
		}
		out = append(out, c)
	}
	if validating.Name != "" {
		c := configuration{kind: "ValidatingWebhookConfiguration", name: validating.Name, version: validating.ResourceVersion}
		for i := range validating.Webhooks {
			c.webhooks = append(c.webhooks, hook{validating.Webhooks[i].Name, validating.Webhooks[i].ClientConfig})
		}
		out = append(out, c)
	}
	return out, nil
}

// inject has every configuration believe the authorities.
func (k *Keeper) inject(ctx context.Context, configs []configuration, a *authority) error {
	bundle, err := a.bundle()
	if err != nil {
		return err
	}
	var errs []error
	for _, c := range configs {
		if !c.believes(bundle) {
			errs = append(errs, k.writer.Apply(ctx, c.withBundle(bundle)))
		}
	}
	return errors.Join(errs...)
}

// believes says that callers of every webhook believe exactly these authorities.
func (c configuration) believes(bundle []byte) bool {
	for _, h := range c.webhooks {
		if !bytes.Equal(h.client.CABundle, bundle) {
			return false
		}
	}
	return true
}

// withBundle is the configuration as far as it is ours to write, under the
// version that was read.
func (c configuration) withBundle(bundle []byte) *unstructured.Unstructured {
	webhooks := make([]any, 0, len(c.webhooks))
	for _, h := range c.webhooks {
		webhooks = append(webhooks, map[string]any{
			"name":         h.name,
			"clientConfig": map[string]any{"caBundle": base64.StdEncoding.EncodeToString(bundle)},
		})
	}
	out := &unstructured.Unstructured{Object: map[string]any{"webhooks": webhooks}}
	out.SetGroupVersionKind(admissionregistrationv1.SchemeGroupVersion.WithKind(c.kind))
	out.SetName(c.name)
	out.SetResourceVersion(c.version)
	return out
}
