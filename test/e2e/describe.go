package e2e

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	networkingv1alpha1 "github.com/namesake-io/namesake/api/networking/v1alpha1"
)

var updateGolden = flag.Bool("update", false, "write testdata/describe anew from what is found")

// workName is the name of a Work, which ends in a hash of the namespace and more.
var workName = regexp.MustCompile(`(Work karmada-es-\w+/\w+)-[a-z0-9]+`)

// describeMCS returns what kubectl describe tells of a MultiClusterService, but for
// what is another one each time: times, ids and the namespace. Of its events there
// are those that tell of the present.
func describeMCS(ctx context.Context, s *site, name string) (string, error) {
	mcs, err := get(ctx, s, s.hub, name, &networkingv1alpha1.MultiClusterService{})
	if err != nil {
		return "", err
	}
	events := &corev1.EventList{}
	if err := s.hub.List(ctx, events, client.InNamespace(s.ns)); err != nil {
		return "", err
	}
	spec, err := yaml.Marshal(mcs.Spec)
	if err != nil {
		return "", err
	}
	var out strings.Builder
	fmt.Fprintf(&out, "Name:       %s\nNamespace:  %s\nKind:       MultiClusterService\n", mcs.Name, mcs.Namespace)
	fmt.Fprintf(&out, "Spec:\n%s", indent(string(spec)))
	fmt.Fprintf(&out, "Status:\n  Providers:  %s\n  Consumers:  %s\n", mcs.Status.Providers, mcs.Status.Consumers)

	told := map[string]bool{}
	fmt.Fprint(&out, "  Conditions:\n")
	for _, c := range sortedConditions(mcs.Status.Conditions) {
		told[c.Message] = true
		generation := ""
		if c.ObservedGeneration != mcs.Generation {
			generation = fmt.Sprintf(" (of generation %d, which is %d now)", c.ObservedGeneration, mcs.Generation)
		}
		fmt.Fprintf(&out, "    %s: %s, %s%s\n      %s\n", c.Type, c.Status, c.Reason, generation, c.Message)
	}
	fmt.Fprint(&out, "  Clusters:\n")
	table := tabwriter.NewWriter(&out, 0, 0, 2, ' ', 0)
	fmt.Fprint(table, "    Name\tRoles\tCollected\tReady\tDispatched\tReason\n")
	for i := range mcs.Status.Clusters {
		c := &mcs.Status.Clusters[i]
		told[c.Message] = true
		fmt.Fprintf(table, "    %s\t%v\t%d\t%d\t%d\t%s\n", c.Name, c.Roles, c.CollectedEndpoints, c.ReadyEndpoints, c.DispatchedEndpoints, c.Reason)
	}
	if err := table.Flush(); err != nil {
		return "", err
	}
	var lines []string
	for i := range events.Items {
		e := &events.Items[i]
		line := fmt.Sprintf("  %s  %s: %s\n", e.Type, e.Reason, e.Message)
		// How far things had come when a failure was told is a matter of chance.
		chance := e.Reason == networkingv1alpha1.EventSyncServiceFailed || e.Reason == networkingv1alpha1.EventDispatchEndpointSliceFailed
		if e.InvolvedObject.UID == mcs.UID && told[e.Message] && !chance && !slices.Contains(lines, line) {
			lines = append(lines, line)
		}
	}
	slices.Sort(lines)
	fmt.Fprintf(&out, "Events:\n%s", strings.Join(lines, ""))
	return strings.ReplaceAll(workName.ReplaceAllString(out.String(), "$1"), s.ns, "shop"), nil
}

func indent(text string) string {
	return "  " + strings.ReplaceAll(strings.TrimSuffix(text, "\n"), "\n", "\n  ") + "\n"
}

// sortedConditions returns the summary first.
func sortedConditions(conditions []metav1.Condition) []metav1.Condition {
	return slices.SortedFunc(slices.Values(conditions), func(a, b metav1.Condition) int {
		if (a.Type == networkingv1alpha1.ConditionReady) != (b.Type == networkingv1alpha1.ConditionReady) {
			if a.Type == networkingv1alpha1.ConditionReady {
				return -1
			}
			return 1
		}
		return strings.Compare(a.Type, b.Type)
	})
}

// waitDescribed waits until a MultiClusterService is described as in a golden file.
func (s *site) waitDescribed(name, golden string) {
	s.t.Helper()
	s.waitGolden(golden, func(ctx context.Context) (string, error) { return describeMCS(ctx, s, name) })
}

// waitGolden waits until a text is as in a golden file, or writes it when asked to.
func (s *site) waitGolden(golden string, text func(context.Context) (string, error)) {
	s.t.Helper()
	path := filepath.Join("testdata", "describe", golden+".txt")
	want, err := os.ReadFile(path)
	if *updateGolden {
		s.must(os.WriteFile(path, []byte(s.settled(text)), 0o644))
		return
	}
	s.must(err)
	s.eventually(path, func(ctx context.Context) error {
		got, err := text(ctx)
		if err != nil {
			return err
		}
		if diff := cmp.Diff(string(want), got); diff != "" {
			return fmt.Errorf("(- file, + found; -update writes it anew):\n%s", diff)
		}
		return nil
	})
}

// settled returns a text that has not changed for a while.
func (s *site) settled(text func(context.Context) (string, error)) (last string) {
	s.t.Helper()
	same := 0
	s.eventually("a text that stays", func(ctx context.Context) error {
		now, err := text(ctx)
		if err != nil {
			return err
		}
		same++
		if now != last {
			last, same = now, 0
		}
		if same*int(interval) < int(2*soon) {
			return errors.New("it has just changed")
		}
		return nil
	})
	return last
}
