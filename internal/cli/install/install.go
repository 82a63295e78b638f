package install

import (
	"context"
	"fmt"
	"io/fs"
	"maps"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/namesake-io/namesake/charts"
	"github.com/namesake-io/namesake/internal/cli/console"
	"github.com/namesake-io/namesake/internal/cli/membership"
	"github.com/namesake-io/namesake/internal/cli/target"
)

const (
	pollInterval = 50 * time.Millisecond
	// serveTimeout bounds the time from a CRD's creation until its kind is served.
	serveTimeout = 30 * time.Second
)

var crdKind = schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}

// NewCommand returns `install`.
func NewCommand(f *target.Factory) *cobra.Command {
	dryRun, webhooks := false, webhookOptions{}
	cmd := &cobra.Command{
		Use:   "install",
		Short: "Put Namesake's kinds on the hub",
		Long: `Put Namesake's kinds on the hub: create or update its CRDs and the namespace
karmada-cluster, and wait until the API server serves them. It may be run any
number of times.

With --webhook-url or --webhook-service it also registers the admission webhooks
that the controller-manager serves; their certificate is the controller-manager's
to make. Everything works without them too: bad objects are then told by a
condition.`,
		Args: console.ExactArgs(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return run(cmd.Context(), f, &webhooks, dryRun)
		},
	}
	webhooks.addFlags(cmd.Flags())
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "let the hub check everything, and change nothing")
	return cmd
}

// installing is one run of the command.
type installing struct {
	program string
	hub     *target.Target
	steps   *console.Steps
	dryRun  bool
}

// run installs and tells what it does.
func run(ctx context.Context, f *target.Factory, webhooks *webhookOptions, dryRun bool) error {
	configurations, err := webhooks.configurations()
	if err != nil {
		return err
	}
	hub, err := f.Hub()
	if err != nil {
		return err
	}
	crds, err := manifests()
	if err != nil {
		return err
	}
	i := &installing{program: f.Program, hub: hub, dryRun: dryRun}
	if err := i.checkKarmada(ctx); err != nil {
		return hub.Explain(f.Program, err)
	}
	heading := "Installing on the hub %s"
	if dryRun {
		heading = "Checking what an install would do on the hub %s"
	}
	i.steps = console.NewSteps(f.Out, heading, hub.URL())
	for _, crd := range crds {
		if err := i.step("CustomResourceDefinition "+crd.GetName(), func() (string, error) { return i.applyCRD(ctx, crd) }); err != nil {
			return err
		}
	}
	if err := i.step("Namespace "+membership.Namespace, func() (string, error) { return i.ensureNamespace(ctx) }); err != nil {
		return err
	}
	for _, c := range configurations {
		if err := i.step(c.GetKind()+" "+c.GetName(), func() (string, error) { return i.ensureWebhooks(ctx, c) }); err != nil {
			return err
		}
	}
	if dryRun {
		i.steps.End("Nothing was changed; checked")
		return nil
	}
	for _, crd := range crds {
		if err := i.step("served: "+crd.GetName(), func() (string, error) { return "", i.waitServed(ctx, crd) }); err != nil {
			return err
		}
	}
	i.steps.End("The hub is ready for `%s join`,", f.Program)
	return nil
}

func (i *installing) step(what string, do func() (string, error)) error {
	return i.steps.Do(what, func() (string, error) {
		result, err := do()
		return result, i.hub.Explain(i.program, err)
	})
}

// manifests reads the CRDs that are compiled in.
func manifests() ([]*unstructured.Unstructured, error) {
	files, err := fs.Glob(charts.CRDs, "namesake/crds/*.yaml")
	if err != nil || len(files) == 0 {
		return nil, fmt.Errorf("finding the CRDs that are compiled in (%d found): %w", len(files), err)
	}
	var crds []*unstructured.Unstructured
	for _, file := range files {
		data, err := charts.CRDs.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", file, err)
		}
		crd := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(data, &crd.Object); err != nil {
			return nil, fmt.Errorf("reading %s: %w", file, err)
		}
		if crd.GroupVersionKind() != crdKind {
			return nil, fmt.Errorf("%s holds a %s, not a CRD", file, crd.GroupVersionKind())
		}
		crds = append(crds, crd)
	}
	return crds, nil
}

// checkKarmada refuses a hub where an aggregated API server has the group of
// Cluster: there Karmada is installed, and its kinds are the ones to use.
func (i *installing) checkKarmada(ctx context.Context) error {
	service := &unstructured.Unstructured{}
	service.SetGroupVersionKind(schema.GroupVersionKind{Group: "apiregistration.k8s.io", Version: "v1", Kind: "APIService"})
	err := i.hub.Client.Get(ctx, client.ObjectKey{Name: "v1alpha1.cluster.karmada.io"}, service)
	switch {
	case apierrors.IsNotFound(err), apierrors.IsForbidden(err):
		return nil // nobody has the group, or we can't know and the API server will decide
	case err != nil:
		return fmt.Errorf("looking for Karmada: %w", err)
	}
	if _, aggregated, _ := unstructured.NestedMap(service.Object, "spec", "service"); !aggregated {
		return nil
	}
	return console.WithHint(fmt.Errorf("the %s is a Karmada control plane, which brings these kinds", i.hub),
		"there is nothing to install: run the controller-manager beside it with "+
			"--controllers=multiclusterservice,endpointsliceCollect,endpointsliceDispatch")
}

func (i *installing) applyCRD(ctx context.Context, crd *unstructured.Unstructured) (string, error) {
	before := &unstructured.Unstructured{}
	before.SetGroupVersionKind(crdKind)
	err := i.hub.Client.Get(ctx, client.ObjectKeyFromObject(crd), before)
	if client.IgnoreNotFound(err) != nil {
		return "", fmt.Errorf("reading CustomResourceDefinition %s: %w", crd.GetName(), err)
	}
	existed := err == nil

	applied := crd.DeepCopy()
	options := []client.ApplyOption{client.FieldOwner(target.FieldManager), client.ForceOwnership}
	if i.dryRun {
		options = append(options, client.DryRunAll)
	}
	if err := i.hub.Client.Apply(ctx, client.ApplyConfigurationFromUnstructured(applied), options...); err != nil {
		return "", fmt.Errorf("applying CustomResourceDefinition %s: %w", crd.GetName(), err)
	}
	return i.verb(!existed, existed && !same(before, applied)), nil
}

// same is whether an apply changed nothing that matters: the API server raises
// the generation with every change of the spec.
func same(before, after *unstructured.Unstructured) bool {
	return before.GetGeneration() == after.GetGeneration() &&
		maps.Equal(before.GetLabels(), after.GetLabels()) &&
		maps.Equal(before.GetAnnotations(), after.GetAnnotations())
}

func (i *installing) verb(created, updated bool) string {
	verb := "unchanged"
	switch {
	case created:
		verb = "created"
	case updated:
		verb = "updated"
	}
	if i.dryRun {
		verb += " (dry run)"
	}
	return verb
}

func (i *installing) ensureNamespace(ctx context.Context) (string, error) {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: membership.Namespace}}
	err := i.hub.Client.Get(ctx, client.ObjectKeyFromObject(namespace), namespace)
	if err == nil {
		if namespace.DeletionTimestamp != nil {
			return "", console.WithHint(fmt.Errorf("namespace %s is being deleted", namespace.Name), "run this again when it is gone")
		}
		return i.verb(false, false), nil
	}
	if !apierrors.IsNotFound(err) {
		return "", fmt.Errorf("reading namespace %s: %w", namespace.Name, err)
	}
	membership.Mark(namespace)
	var options []client.CreateOption
	if i.dryRun {
		options = append(options, client.DryRunAll)
	}
	err = i.hub.Client.Create(ctx, namespace, options...)
	if apierrors.IsAlreadyExists(err) {
		return i.verb(false, false), nil
	}
	if err != nil {
		return "", fmt.Errorf("creating namespace %s: %w", namespace.Name, err)
	}
	return i.verb(true, false), nil
}

// waitServed waits until the kind can be used: a CRD is Established a moment
// before the API server answers for it.
func (i *installing) waitServed(ctx context.Context, crd *unstructured.Unstructured) error {
	d, err := i.hub.Discovery()
	if err != nil {
		return err
	}
	state := "not Established"
	err = wait.PollUntilContextTimeout(ctx, pollInterval, serveTimeout, true, func(ctx context.Context) (bool, error) {
		current := &unstructured.Unstructured{}
		current.SetGroupVersionKind(crdKind)
		if err := i.hub.Client.Get(ctx, client.ObjectKeyFromObject(crd), current); err != nil {
			return false, err
		}
		established, why := condition(current, "Established")
		if !established {
			state = "not Established: " + why
			return false, nil
		}
		if accepted, why := condition(current, "NamesAccepted"); !accepted {
			state = "its names are not accepted: " + why
			return false, nil
		}
		state = "Established, but not served"
		if served, err := isServed(d, crd); err != nil || !served {
			return false, err
		}
		return i.answers(ctx, crd)
	})
	if wait.Interrupted(err) && ctx.Err() == nil {
		return console.WithHint(fmt.Errorf("CustomResourceDefinition %s is not served after %s: %s", crd.GetName(), serveTimeout, state),
			"kubectl describe crd %s", crd.GetName())
	}
	if err != nil {
		return fmt.Errorf("waiting until CustomResourceDefinition %s is served: %w", crd.GetName(), err)
	}
	return nil
}

// answers asks for objects of the kind: discovery knows of it before its
// storage does.
func (i *installing) answers(ctx context.Context, crd *unstructured.Unstructured) (bool, error) {
	group, _, _ := unstructured.NestedString(crd.Object, "spec", "group")
	kind, _, _ := unstructured.NestedString(crd.Object, "spec", "names", "kind")
	for _, version := range servedVersions(crd) {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(schema.GroupVersionKind{Group: group, Version: version, Kind: kind + "List"})
		err := i.hub.Client.List(ctx, list, client.Limit(1))
		switch {
		case apierrors.IsNotFound(err), meta.IsNoMatchError(err), apierrors.IsServiceUnavailable(err):
			return false, nil
		case err != nil && !apierrors.IsForbidden(err):
			return false, fmt.Errorf("listing %s: %w", crd.GetName(), err)
		}
	}
	return true, nil
}

func servedVersions(crd *unstructured.Unstructured) (names []string) {
	versions, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
	for _, v := range versions {
		if version, ok := v.(map[string]any); ok && version["served"] == true {
			names = append(names, fmt.Sprint(version["name"]))
		}
	}
	return names
}

// isServed asks the API server itself what it serves.
func isServed(d discovery.ServerResourcesInterface, crd *unstructured.Unstructured) (bool, error) {
	group, _, _ := unstructured.NestedString(crd.Object, "spec", "group")
	plural, _, _ := unstructured.NestedString(crd.Object, "spec", "names", "plural")
	for _, version := range servedVersions(crd) {
		list, err := d.ServerResourcesForGroupVersion(group + "/" + version)
		if apierrors.IsNotFound(err) {
			return false, nil
		}
		if err != nil {
			return false, fmt.Errorf("asking what the hub serves: %w", err)
		}
		if !lists(list, plural) {
			return false, nil
		}
	}
	return true, nil
}

func lists(resources *metav1.APIResourceList, plural string) bool {
	for _, r := range resources.APIResources {
		if r.Name == plural {
			return true
		}
	}
	return false
}

// condition returns whether a condition is True and, if not, what it says.
func condition(obj *unstructured.Unstructured, kind string) (ok bool, why string) {
	conditions, _, _ := unstructured.NestedSlice(obj.Object, "status", "conditions")
	for _, c := range conditions {
		m, isMap := c.(map[string]any)
		if isMap && m["type"] == kind {
			return m["status"] == "True", fmt.Sprintf("%v: %v", m["reason"], m["message"])
		}
	}
	return false, "the hub has not said so yet"
}
