package e2e

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// A member is 200 ms away, each way. Twenty services are new, and one changes: the
// others have all of it as soon as ever, and it has it in its own time.
func TestSlowMember(t *testing.T) {
	f := alone(t)
	s := f.newSite(t, nil)
	all := s.serveEverywhere(0, 20)
	var services []string
	for _, sp := range all {
		services = append(services, sp.service)
	}
	off := f.fault(t, "member2", "api-slow=200ms")
	begun := time.Now()
	for _, name := range services {
		s.createMCS(name)
	}
	s.waitAmong("member2", services...)
	t.Logf("right beside a member that is far away after %s", time.Since(begun).Round(time.Millisecond))
	s.waitSpread(all...)
	t.Logf("with it after %s", time.Since(begun).Round(time.Millisecond))

	other := s.watch(f.members["member3"], &discoveryv1.EndpointSliceList{})
	begun = time.Now()
	address := s.changeSlice("member1", services[0]+"-a")
	at := other.waitState(soon, "member3 has the change", has("member1", address))
	t.Logf("a change is in member3 after %s", at.Sub(begun).Round(time.Millisecond))
	s.waitSpread(all...)
	off()
}

// A member's API server has no time for the hub's writes: it answers 429. The
// others are not kept waiting, and it catches up when it has time again.
func TestBusyMember(t *testing.T) {
	f := alone(t)
	s := servedEverywhere(t, f, "foo", "bar")
	s.createMCS("foo")
	s.waitSpread(s.all("foo"))
	end := s.tooManyRequests(f.members["member2"])
	other := s.watch(f.members["member3"], &discoveryv1.EndpointSliceList{})
	address := s.changeSlice("member1", "foo-a")
	other.waitState(soon, "member3 has the change", has("member1", address))
	s.createMCS("bar")
	s.waitAmong("member2", "bar")
	end()
	s.waitSpread(s.all("foo"), s.all("bar"))
	s.waitService("bar", f.names()...)
	s.waitReady("bar")
}

// tooManyRequests has an API server answer 429 to every write of slices and Services
// in the site's namespace. Priority and fairness would let one at a time pass.
func (s *site) tooManyRequests(c *cluster) (end func()) {
	s.t.Helper()
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		review := &admissionv1.AdmissionReview{}
		if err := json.NewDecoder(r.Body).Decode(review); err != nil || review.Request == nil {
			http.Error(w, "no review", http.StatusBadRequest)
			return
		}
		review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Result: &metav1.Status{
			Code: http.StatusTooManyRequests, Reason: metav1.StatusReasonTooManyRequests, Message: "no time",
		}}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(review) // who asked sees what is missing
	}))
	s.t.Cleanup(server.Close)
	hook := admissionregistrationv1.ValidatingWebhook{
		Name:                    "busy.e2e.namesake.io",
		AdmissionReviewVersions: []string{"v1"},
		SideEffects:             ptr.To(admissionregistrationv1.SideEffectClassNone),
		NamespaceSelector:       &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: s.ns}},
		ClientConfig: admissionregistrationv1.WebhookClientConfig{
			URL:      &server.URL,
			CABundle: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}),
		},
		Rules: []admissionregistrationv1.RuleWithOperations{{
			Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.OperationAll},
			Rule:       admissionregistrationv1.Rule{APIGroups: []string{"*"}, APIVersions: []string{"*"}, Resources: []string{"endpointslices", "services"}},
		}},
	}
	hooks := &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "busy-" + s.ns}, Webhooks: []admissionregistrationv1.ValidatingWebhook{hook},
	}
	end = func() { s.must(client.IgnoreNotFound(c.Delete(context.WithoutCancel(s.t.Context()), hooks))) }
	s.t.Cleanup(end)
	s.must(c.Create(s.t.Context(), hooks))
	s.eventually(c.name+" has no time", func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, time.Second) // a client tries again by itself
		defer cancel()
		if err := c.Create(ctx, s.newSlice("foo", "foo-probe", newAddress()), client.DryRunAll); err == nil {
			return errors.New("it has")
		}
		return nil
	})
	return end
}
