package e2e

import (
	"context"
	"errors"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	networkingv1alpha1 "github.com/namesake-io/namesake/api/networking/v1alpha1"
	workv1alpha1 "github.com/namesake-io/namesake/api/work/v1alpha1"
)

// noSpace is what an API server says when its etcd is full.
const noSpace = "etcdserver: mvcc: database space exceeded"

// refuseWrites has an API server refuse every write of a resource in a namespace, as
// one does whose etcd is full. probe is an object of that kind to try with.
func (s *site) refuseWrites(c *cluster, group, resource string, probe client.Object) (end func()) {
	s.t.Helper()
	name := "full-" + s.ns
	policy := &admissionregistrationv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: name}}
	policy.Spec.MatchConstraints = &admissionregistrationv1.MatchResources{
		NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": probe.GetNamespace()}},
		ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{RuleWithOperations: admissionregistrationv1.RuleWithOperations{
			Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update, admissionregistrationv1.Delete},
			Rule:       admissionregistrationv1.Rule{APIGroups: []string{group}, APIVersions: []string{"*"}, Resources: []string{resource}},
		}}},
	}
	policy.Spec.Validations = []admissionregistrationv1.Validation{{Expression: "false", Message: noSpace}}
	binding := &admissionregistrationv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: name}}
	binding.Spec.PolicyName = name
	binding.Spec.ValidationActions = []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny}
	end = func() {
		for _, obj := range []client.Object{binding, policy} {
			if err := client.IgnoreNotFound(c.Delete(context.WithoutCancel(s.t.Context()), obj)); err != nil {
				s.t.Error(err)
			}
		}
	}
	s.t.Cleanup(end)
	s.must(c.Create(s.t.Context(), policy))
	s.must(c.Create(s.t.Context(), binding))
	s.eventually(c.name+" refuses to write "+resource, func(ctx context.Context) error {
		obj, ok := probe.DeepCopyObject().(client.Object)
		if !ok {
			return errors.New("the probe is no object")
		}
		switch err := c.Create(ctx, obj, client.DryRunAll); {
		case err == nil:
			return errors.New("it does not")
		case !strings.Contains(err.Error(), noSpace):
			return err
		}
		return nil
	})
	return end
}

// A consumer that cannot store anything any more delays itself alone, is told, and
// catches up.
func TestFullMember(t *testing.T) {
	f := alone(t)
	s := servedEverywhere(t, f, "foo")
	s.createMCS("foo")
	s.waitSpread(s.all("foo"))
	s.waitReady("foo")
	other := s.watch(f.members["member3"], &discoveryv1.EndpointSliceList{})
	end := s.refuseWrites(f.members["member2"], "discovery.k8s.io", "endpointslices", s.newSlice("foo", "foo-probe", newAddress()))

	address := s.changeSlice("member1", "foo-a")
	other.waitState(soon, "member3 is not kept waiting", has("member1", address))
	s.waitCondition("foo", networkingv1alpha1.ConditionEndpointSliceDispatched, networkingv1alpha1.ReasonEndpointSliceDispatchedFailed, noSpace)
	end()
	s.waitSpread(s.all("foo"))
	s.waitReady("foo")
}

// A hub that cannot store anything any more forgets nothing and holds nothing up:
// what changes in a provider goes to the consumers all the same, and is remembered
// when there is room again.
func TestFullHub(t *testing.T) {
	f := alone(t)
	s := servedEverywhere(t, f, "foo")
	s.createMCS("foo")
	s.waitSpread(s.all("foo"))
	s.waitCollected(s.all("foo"))
	work := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-es-member1", Name: "probe"}}
	end := s.refuseWrites(f.hub, "work.karmada.io", "works", work)

	s.putSlice("member1", "foo", "foo-b")
	s.waitSpreadWithin(soon, s.all("foo"))
	if err := s.checkCollected(t.Context(), s.all("foo")); err == nil {
		t.Error("the hub has stored the change: it was not full")
	}
	end()
	s.waitCollected(s.all("foo"))
}
