package get

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/printers"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/namesake-io/namesake/internal/cli/console"
	"github.com/namesake-io/namesake/internal/cli/target"
)

// pageSize of lists, so that a thousand clusters with their long statuses come
// in digestible parts.
const pageSize = 500

// run fetches and prints. Objects stay unstructured until a table needs them:
// programs get every field, also those that this build does not know.
func run(ctx context.Context, f *target.Factory, o *Options, k kind) error {
	if err := o.checkFormat(); err != nil {
		return err
	}
	hub, err := f.Hub()
	if err != nil {
		return err
	}
	items, err := fetch(ctx, hub, o, k)
	if err != nil && len(items) == 0 {
		return hub.Explain(f.Program, err)
	}
	if printErr := show(f, o, k, items); printErr != nil {
		return printErr
	}
	return hub.Explain(f.Program, err)
}

// fetch returns what it found, also beside an error about a name.
func fetch(ctx context.Context, hub *target.Target, o *Options, k kind) ([]unstructured.Unstructured, error) {
	if len(o.Names) == 0 {
		return list(ctx, hub, o, k)
	}
	var found []unstructured.Unstructured
	var missing []string
	for _, name := range o.Names {
		obj := unstructured.Unstructured{}
		obj.SetGroupVersionKind(k.gvk)
		err := hub.Client.Get(ctx, client.ObjectKey{Namespace: o.Namespace, Name: name}, &obj)
		switch {
		case apierrors.IsNotFound(err):
			missing = append(missing, name)
		case err != nil:
			return nil, fmt.Errorf("reading %s %s: %w", k.gvk.Kind, name, err)
		default:
			found = append(found, obj)
		}
	}
	return found, notFound(ctx, hub, o, k, missing)
}

func list(ctx context.Context, hub *target.Target, o *Options, k kind) ([]unstructured.Unstructured, error) {
	var items []unstructured.Unstructured
	page := &unstructured.UnstructuredList{}
	for {
		token := page.GetContinue()
		page = &unstructured.UnstructuredList{}
		page.SetGroupVersionKind(k.gvk.GroupVersion().WithKind(k.gvk.Kind + "List"))
		err := hub.Client.List(ctx, page, client.InNamespace(o.Namespace), client.Limit(pageSize), client.Continue(token))
		if err != nil {
			return nil, fmt.Errorf("listing %s: %w", k.title, err)
		}
		items = append(items, page.Items...)
		if page.GetContinue() == "" {
			return items, nil
		}
	}
}

// notFound is an error that names what there is instead.
func notFound(ctx context.Context, hub *target.Target, o *Options, k kind, missing []string) error {
	if len(missing) == 0 {
		return nil
	}
	where := "on the " + hub.String()
	if k.namespaced {
		where = fmt.Sprintf("in namespace %s %s", o.Namespace, where)
	}
	err := fmt.Errorf("no such %s %s: %s", k.title, where, console.List(missing))
	there, listErr := list(ctx, hub, o, k)
	if listErr != nil || len(there) == 0 {
		return console.WithHint(err, "there are no %s %s", k.title, where)
	}
	names := make([]string, 0, len(there))
	for i := range there {
		names = append(names, there[i].GetName())
	}
	return console.WithHint(err, "there are: %s", console.List(names))
}

func show(f *target.Factory, o *Options, k kind, items []unstructured.Unstructured) error {
	isTable := o.format() == wide || o.format() == "" && *o.output.TemplatePrinterFlags.TemplateArgument == ""
	if !isTable {
		return showObjects(f, o, items)
	}
	if len(items) == 0 {
		where := ""
		if k.namespaced && o.Namespace != "" {
			where = fmt.Sprintf(" in %s namespace", o.Namespace)
		}
		fmt.Fprintf(f.ErrOut, "No %s found%s.\n", k.title, where)
		return nil
	}
	view := view{wide: o.format() == wide, namespace: k.namespaced && o.Namespace == "", now: time.Now()}
	table, err := k.table(items, view)
	if err != nil {
		return err
	}
	printer := printers.NewTablePrinter(printers.PrintOptions{})
	if err := printer.PrintObj(table, f.Out); err != nil {
		return fmt.Errorf("printing: %w", err)
	}
	return nil
}

// showObjects prints a List, whatever the number of objects, so that a program
// need not tell cases apart; names come one a line.
func showObjects(f *target.Factory, o *Options, items []unstructured.Unstructured) error {
	printer, err := o.output.ToPrinter()
	if err != nil {
		return fmt.Errorf("choosing a printer: %w", err)
	}
	var objects []runtime.Object
	if o.format() == "name" {
		for i := range items {
			objects = append(objects, &items[i])
		}
	} else {
		all := &unstructured.UnstructuredList{Items: items}
		if items == nil {
			all.Items = []unstructured.Unstructured{}
		}
		all.SetAPIVersion("v1")
		all.SetKind("List")
		objects = append(objects, all)
	}
	for _, obj := range objects {
		if err := printer.PrintObj(obj, f.Out); err != nil {
			return fmt.Errorf("printing: %w", err)
		}
	}
	return nil
}

// readiness is the Ready condition in a word: True, or False/Reason.
func readiness(conditions []metav1.Condition) string {
	ready := meta.FindStatusCondition(conditions, "Ready")
	switch {
	case ready == nil:
		return "Unknown"
	case ready.Status == metav1.ConditionTrue || ready.Reason == "":
		return string(ready.Status)
	default:
		return string(ready.Status) + "/" + ready.Reason
	}
}
