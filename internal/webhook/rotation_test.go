package webhook

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/util/cert"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	networkingv1alpha1 "github.com/namesake-io/namesake/api/networking/v1alpha1"
	"github.com/namesake-io/namesake/internal/apply"
	"github.com/namesake-io/namesake/internal/webhook/certificate"
)

const month = 30 * 24 * time.Hour

// lives are long enough that what was issued at the first month is still valid,
// by the API server's clock, at the seventeenth, which is now.
//
//	month   0        12.5           16.1            16.2
//	leaf    issued   renewed                        renewed, by the new authority
//	CA      first                   second, believed beside the first
func lives(c *clock) certificate.Options {
	return certificate.Options{
		CertificateLifetime: 18 * month, AuthorityLifetime: 24 * month, Overlap: 24 * time.Hour, Now: c.Now,
	}
}

// admits says whether the API server asks the webhooks and believes them.
func admits(t *testing.T, u *user) error {
	t.Helper()
	bad := parse(t, mcs("probe", `types: [CrossCluster], providerClusters: [{labelSelector: {matchExpressions: [{key: a, operator: Near}]}}]`))
	if err := u.Create(t.Context(), bad, client.DryRunAll); err == nil || !strings.Contains(err.Error(), "not a valid selector operator") {
		return fmt.Errorf("a bad object: %w", err)
	}
	good := parse(t, mcs("probe", `types: [CrossCluster]`))
	if err := u.Create(t.Context(), good, client.DryRunAll); err != nil {
		return fmt.Errorf("a good object: %w", err)
	}
	if good.GetLabels()[networkingv1alpha1.PermanentIDLabel] == "" {
		return errors.New("a good object got no id")
	}
	return nil
}

// TestRotation turns the clock of two replicas, one of which leads. At every
// moment the API server believes both.
func TestRotation(t *testing.T) {
	u := newUser(t)
	forget(t, u)
	end := time.Now()
	start := end.Add(-17 * month)
	turned := &clock{now: start}
	opts := DefaultOptions()
	opts.Certificate = lives(turned)
	replicas := []string{serve(t, opts, true), serve(t, opts, true)}
	register(t, u, replicas[0])

	serials := map[string]string{}
	look := func(address string) {
		t.Helper()
		serial, err := believed(t, u, address)
		if err != nil {
			t.Fatalf("%s is not believed: %v", address, err)
		}
		serials[address] = serial
	}
	turn := func(month float64, leaves bool, authorities int) {
		t.Helper()
		turned.set(start.Add(time.Duration(month * float64(30*24) * float64(time.Hour))))
		wake(t, u, fmt.Sprint(month))
		for _, address := range replicas {
			eventually(t, fmt.Sprintf("month %v has come to %s", month, address), func() error {
				if err := admits(t, u); err != nil {
					t.Fatalf("month %v: admission has a gap: %v", month, err)
				}
				serial, err := believed(t, u, address)
				if err != nil {
					t.Fatalf("month %v: %s is not believed: %v", month, address, err)
				}
				if leaves && serial == serials[address] {
					return errors.New("the certificate is the old one")
				}
				return bundled(t, u, authorities)
			})
		}
		for _, address := range replicas {
			before := serials[address]
			look(address)
			if !leaves && serials[address] != before {
				t.Errorf("month %v: %s has a new certificate already", month, address)
			}
		}
	}
	eventually(t, "both replicas are believed", func() error {
		for _, address := range replicas {
			if _, err := believed(t, u, address); err != nil {
				return err
			}
		}
		return nil
	})
	for _, address := range replicas {
		look(address)
	}
	turn(1, false, 1)
	turn(12.5, true, 1)
	turn(16.1, false, 2)
	turn(16.2, true, 2)
}

// TestAuthorityLost has the Secret deleted, and spoilt: the certificate in use
// stays believed, and a new authority comes.
func TestAuthorityLost(t *testing.T) {
	u := newUser(t)
	address := serve(t, DefaultOptions(), true)
	register(t, u, address)
	for name, lose := range map[string]func() error{
		"deleted": func() error { return u.Delete(t.Context(), secret(t, u)) },
		"spoilt": func() error {
			s := secret(t, u)
			s.Data["ca.crt"] = []byte("nonsense")
			return u.Update(t.Context(), s)
		},
	} {
		before := secret(t, u)
		if err := lose(); err != nil {
			t.Fatal(err)
		}
		eventually(t, "there is a new authority", func() error {
			if err := admits(t, u); err != nil {
				t.Fatalf("%s: admission has a gap: %v", name, err)
			}
			now := secret(t, u)
			if now == nil || bytes.Equal(now.Data["tls.crt"], before.Data["tls.crt"]) || string(now.Data["ca.crt"]) == "nonsense" {
				return errors.New("the authority is gone, or the old one")
			}
			for _, bundle := range bundles(t, u) {
				if !bytes.Equal(bundle, now.Data["ca.crt"]) {
					return errors.New("it is not believed yet")
				}
			}
			return nil
		})
		if _, err := believed(t, u, address); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if got := secret(t, u); got.Type != "kubernetes.io/tls" || got.Labels["karmada.io/system"] != "true" {
		t.Errorf("the Secret's type is %q, its labels are %v", got.Type, got.Labels)
	}
}

// TestRegistration has the configurations come after the server, lose their
// caBundle, and name another host.
func TestRegistration(t *testing.T) {
	u := newUser(t)
	address := serve(t, DefaultOptions(), true)
	eventually(t, "there is an authority without anything registered", func() error {
		if secret(t, u) == nil {
			return errors.New("there is none")
		}
		return nil
	})
	register(t, u, address)
	for _, c := range configurations(t, strings.Replace(address, "127.0.0.1", "localhost", 1)) {
		have := c.DeepCopy()
		get(t, u, c, have)
		c.SetResourceVersion(have.GetResourceVersion())
		if err := u.Update(t.Context(), c); err != nil { // without caBundle
			t.Fatal(err)
		}
	}
	asked(t, u)

	// At rest, nothing is written.
	wrote := writes(t)
	for i := range 3 {
		looked := looks(t)
		wake(t, u, fmt.Sprint("rest ", i))
		eventually(t, "the keeper has looked", func() error {
			if looks(t) == looked {
				return errors.New("it has not")
			}
			return admits(t, u)
		})
	}
	if now := writes(t); now != wrote {
		t.Errorf("%v writes at rest", now-wrote)
	}
}

// writes counts what keepers of this process have written.
func writes(t *testing.T) float64 {
	t.Helper()
	registry := prometheus.NewRegistry()
	for _, c := range apply.Collectors() {
		registry.MustRegister(c)
	}
	return count(t, registry, "namesake_writes_total", "namesake-webhook")
}

// looks counts their reconciles.
func looks(t *testing.T) float64 {
	t.Helper()
	return count(t, metrics.Registry, "controller_runtime_reconcile_total", "webhook-certificate")
}

// count sums the series of a controller.
func count(t *testing.T, from prometheus.Gatherer, name, controller string) (sum float64) {
	t.Helper()
	families, err := from.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			for _, l := range m.GetLabel() {
				if f.GetName() == name && l.GetName() == "controller" && l.GetValue() == controller {
					sum += m.GetCounter().GetValue()
				}
			}
		}
	}
	return sum
}

// TestCertDir gives the certificate by files: the process makes none, and sets no
// caBundle.
func TestCertDir(t *testing.T) {
	u := newUser(t)
	forget(t, u)
	own, key, err := cert.GenerateSelfSignedCertKey("127.0.0.1", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	opts := DefaultOptions()
	opts.CertDir = t.TempDir()
	if err := opts.Validate(); err == nil || !strings.Contains(err.Error(), "--webhook-cert-dir") || !strings.Contains(err.Error(), "without the flag the process makes its own") {
		t.Errorf("an empty folder: %v", err)
	}
	if err := errors.Join(os.WriteFile(filepath.Join(opts.CertDir, "tls.crt"), own, 0o600), os.WriteFile(filepath.Join(opts.CertDir, "tls.key"), key, 0o600)); err != nil {
		t.Fatal(err)
	}
	if err := opts.Validate(); err != nil {
		t.Error(err)
	}
	address := serve(t, opts, true)
	for _, c := range configurations(t, address) {
		for _, webhook := range webhooksOf(t, c) {
			if err := unstructured.SetNestedField(webhook, base64.StdEncoding.EncodeToString(own), "clientConfig", "caBundle"); err != nil {
				t.Fatal(err)
			}
		}
		create(t, u, c)
	}
	t.Cleanup(func() { unregister(t, u) })
	asked(t, u)
	if secret(t, u) != nil {
		t.Error("the process has made an authority of its own")
	}
}

func TestOptions(t *testing.T) {
	for address, ok := range map[string]bool{
		"0": true, "127.0.0.1:9443": true, ":9443": true, "[::1]:9443": true,
		"": false, "9443": false, "127.0.0.1": false, "127.0.0.1:0": false, "127.0.0.1:http": false, ":65536": false,
	} {
		opts := Options{BindAddress: address}
		if err := opts.Validate(); (err == nil) != ok {
			t.Errorf("--webhook-bind-address=%q: %v", address, err)
		}
	}
}

// forget removes the authority of earlier tests.
func forget(t *testing.T, u *user) {
	t.Helper()
	if s := secret(t, u); s != nil {
		if err := u.Delete(t.Context(), s); err != nil {
			t.Fatal(err)
		}
	}
}

// wake has the keepers look again, as a timer would.
func wake(t *testing.T, u *user, why string) {
	t.Helper()
	for _, c := range configurations(t, "") {
		patch(t, u, c, map[string]any{"metadata": map[string]any{"annotations": map[string]any{"test": why}}})
	}
}

// bundled says whether every webhook's callers believe so many authorities.
func bundled(t *testing.T, u *user, authorities int) error {
	t.Helper()
	for _, bundle := range bundles(t, u) {
		certs, err := cert.ParseCertsPEM(bundle)
		if err != nil {
			return err
		}
		if len(certs) != authorities {
			return fmt.Errorf("%d authorities are believed, want %d", len(certs), authorities)
		}
	}
	return nil
}
