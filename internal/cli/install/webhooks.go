package install

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"strconv"
	"strings"

	"github.com/spf13/pflag"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/namesake-io/namesake/charts"
	"github.com/namesake-io/namesake/internal/cli/console"
	"github.com/namesake-io/namesake/internal/cli/target"
)

// defaultServicePort is that of the Service in front of the webhooks.
const defaultServicePort = 443

// webhookOptions say where the hub's API server finds the webhooks. All empty:
// they are not registered, and what is registered stays.
type webhookOptions struct {
	url, service string
}

func (o *webhookOptions) addFlags(fs *pflag.FlagSet) {
	fs.StringVar(&o.url, "webhook-url", "",
		"register the admission webhooks of a controller-manager outside of the hub, as `URL` that the hub's API server can reach, for example https://127.0.0.1:9443")
	fs.StringVar(&o.service, "webhook-service", "",
		"register the admission webhooks of a controller-manager that runs on the hub, behind the Service `NAMESPACE/NAME[:PORT]`")
}

// configurations returns the webhook configurations with the address filled in.
func (o *webhookOptions) configurations() ([]*unstructured.Unstructured, error) {
	if o.url == "" && o.service == "" {
		return nil, nil
	}
	locate, err := o.locate()
	if err != nil {
		return nil, err
	}
	var out []*unstructured.Unstructured
	decoder := utilyaml.NewYAMLOrJSONDecoder(strings.NewReader(string(charts.Webhooks)), len(charts.Webhooks))
	for {
		obj := &unstructured.Unstructured{}
		if err := decoder.Decode(&obj.Object); errors.Is(err, io.EOF) {
			return out, nil
		} else if err != nil {
			return nil, fmt.Errorf("reading the webhook configurations that are compiled in: %w", err)
		}
		if err := eachWebhook(obj, func(webhook map[string]any) error {
			path, _, err := unstructured.NestedString(webhook, "clientConfig", "service", "path")
			webhook["clientConfig"] = locate(path)
			return err
		}); err != nil {
			return nil, fmt.Errorf("reading the webhook configurations that are compiled in: %w", err)
		}
		out = append(out, obj)
	}
}

// locate returns how to write down where a path of the webhooks is served.
func (o *webhookOptions) locate() (func(path string) map[string]any, error) {
	if o.url != "" && o.service != "" {
		return nil, console.Usage("--webhook-url and --webhook-service exclude each other: the controller-manager is in one place")
	}
	if o.url != "" {
		u, err := url.Parse(o.url)
		if err != nil || u.Scheme != "https" || u.Hostname() == "" || u.RawQuery != "" || u.Fragment != "" || u.User != nil {
			return nil, console.Usage("--webhook-url %q is no https URL, for example https://127.0.0.1:9443", o.url)
		}
		return func(path string) map[string]any { return map[string]any{"url": u.JoinPath(path).String()} }, nil
	}
	namespace, name, found := strings.Cut(o.service, "/")
	port := defaultServicePort
	if host, number, err := net.SplitHostPort(name); err == nil {
		name = host
		if port, err = strconv.Atoi(number); err != nil {
			port = 0
		}
	}
	if !found || len(validation.IsDNS1123Label(namespace)) > 0 || len(validation.IsDNS1035Label(name)) > 0 || len(validation.IsValidPortNum(port)) > 0 {
		return nil, console.Usage("--webhook-service %q is no NAMESPACE/NAME[:PORT], for example namesake-system/namesake-webhook", o.service)
	}
	return func(path string) map[string]any {
		return map[string]any{"service": map[string]any{"namespace": namespace, "name": name, "port": int64(port), "path": path}}
	}, nil
}

// eachWebhook calls a function for every webhook of a configuration, which it may
// change.
func eachWebhook(obj *unstructured.Unstructured, call func(webhook map[string]any) error) error {
	webhooks, _ := obj.Object["webhooks"].([]any)
	for _, w := range webhooks {
		if webhook, ok := w.(map[string]any); ok {
			if err := call(webhook); err != nil {
				return err
			}
		}
	}
	return nil
}

// ensureWebhooks writes a webhook configuration, once more when the
// controller-manager was faster.
func (i *installing) ensureWebhooks(ctx context.Context, want *unstructured.Unstructured) (verb string, err error) {
	err = retry.RetryOnConflict(retry.DefaultRetry, func() error {
		verb, err = i.writeWebhooks(ctx, want)
		return err
	})
	return verb, err
}

// writeWebhooks creates a webhook configuration, or makes the standing one like
// it. What the controller-manager has filled in stays: until it did so again, the
// API server would not believe it.
func (i *installing) writeWebhooks(ctx context.Context, want *unstructured.Unstructured) (string, error) {
	have := want.DeepCopy()
	err := i.hub.Client.Get(ctx, client.ObjectKeyFromObject(want), have)
	if apierrors.IsNotFound(err) {
		options := []client.CreateOption{client.FieldOwner(target.FieldManager)}
		if i.dryRun {
			options = append(options, client.DryRunAll)
		}
		if err := i.hub.Client.Create(ctx, want.DeepCopy(), options...); err != nil {
			return "", fmt.Errorf("creating %s %s: %w", want.GetKind(), want.GetName(), err)
		}
		return i.verb(true, false), nil
	}
	if err != nil {
		return "", fmt.Errorf("reading %s %s: %w", want.GetKind(), want.GetName(), err)
	}

	written := have.DeepCopy()
	written.Object["webhooks"] = want.DeepCopy().Object["webhooks"]
	keepBundles(written, have)
	options := []client.UpdateOption{client.FieldOwner(target.FieldManager)}
	if i.dryRun {
		options = append(options, client.DryRunAll)
	}
	if err := i.hub.Client.Update(ctx, written, options...); err != nil {
		return "", fmt.Errorf("updating %s %s: %w", want.GetKind(), want.GetName(), err)
	}
	return i.verb(false, !same(have, written)), nil
}

// keepBundles copies each webhook's caBundle.
func keepBundles(to, from *unstructured.Unstructured) {
	bundles := map[any]any{}
	config := func(webhook map[string]any) map[string]any {
		c, _ := webhook["clientConfig"].(map[string]any)
		return c
	}
	_ = eachWebhook(from, func(webhook map[string]any) error {
		if bundle, found := config(webhook)["caBundle"]; found {
			bundles[webhook["name"]] = bundle
		}
		return nil
	})
	_ = eachWebhook(to, func(webhook map[string]any) error {
		if bundle, found := bundles[webhook["name"]]; found {
			config(webhook)["caBundle"] = bundle
		}
		return nil
	})
}
