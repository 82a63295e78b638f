package certificate

import (
	"crypto"
	"crypto/tls"
	"crypto/x509"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
)

const year = 365 * 24 * time.Hour

var begin = time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)

func made(t *testing.T, now time.Time, trusted ...*x509.Certificate) *authority {
	t.Helper()
	a, err := newAuthority(now, 10*year, trusted)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func issued(t *testing.T, a *authority, now time.Time, hosts ...string) *tls.Certificate {
	t.Helper()
	leaf, err := a.issue(now, year, hosts)
	if err != nil {
		t.Fatal(err)
	}
	return leaf
}

func TestAuthorityStoredAndRead(t *testing.T) {
	old := made(t, begin.Add(-9*year))
	expired := made(t, begin.Add(-11*year))
	a := made(t, begin, old.cert, expired.cert, old.cert)
	if len(a.trusted) != 2 || !a.trusted[0].Equal(a.cert) || !a.trusted[1].Equal(old.cert) {
		t.Fatalf("believed are %d, want the new one and the old one", len(a.trusted))
	}
	data, err := a.data()
	if err != nil {
		t.Fatal(err)
	}
	secret := &corev1.Secret{Data: data}
	b, err := readAuthority(secret)
	if err != nil {
		t.Fatal(err)
	}
	again, err := b.data()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(data, again); diff != "" {
		t.Errorf("written again (-want +got):\n%s", diff)
	}

	for name, spoil := range map[string]func(map[string][]byte){
		"no key":               func(d map[string][]byte) { delete(d, corev1.TLSPrivateKeyKey) },
		"no certificate":       func(d map[string][]byte) { d[corev1.TLSCertKey] = nil },
		"another's key":        func(d map[string][]byte) { d[corev1.TLSPrivateKeyKey] = dataOf(t, old)[corev1.TLSPrivateKeyKey] },
		"no bundle":            func(d map[string][]byte) { delete(d, bundleKey) },
		"a bundle without it":  func(d map[string][]byte) { d[bundleKey] = dataOf(t, old)[bundleKey] },
		"a server's, no CA's":  func(d map[string][]byte) { serverPair(t, a, d) },
		"not even a PEM block": func(d map[string][]byte) { d[corev1.TLSCertKey] = []byte("nonsense") },
	} {
		t.Run(name, func(t *testing.T) {
			spoilt := dataOf(t, a)
			spoil(spoilt)
			if got, err := readAuthority(&corev1.Secret{Data: spoilt}); err == nil {
				t.Errorf("read %v", got.cert.Subject)
			} else if strings.Contains(err.Error(), "PRIVATE KEY") {
				t.Errorf("the error tells the key: %v", err)
			}
		})
	}
}

func dataOf(t *testing.T, a *authority) map[string][]byte {
	t.Helper()
	data, err := a.data()
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// serverPair puts a server's certificate where an authority's should be.
func serverPair(t *testing.T, a *authority, into map[string][]byte) {
	t.Helper()
	leaf := issued(t, a, begin, "localhost")
	key, ok := leaf.PrivateKey.(crypto.Signer)
	if !ok {
		t.Fatalf("%T signs nothing", leaf.PrivateKey)
	}
	fake := &authority{cert: leaf.Leaf, key: key, trusted: []*x509.Certificate{leaf.Leaf}}
	maps.Copy(into, dataOf(t, fake))
}

func TestIssued(t *testing.T) {
	a := made(t, begin)
	leaf := issued(t, a, begin, "127.0.0.1", "::1", "localhost", "namesake-webhook.namesake-system.svc")
	pool := x509.NewCertPool()
	pool.AddCert(a.cert)
	for _, host := range []string{"127.0.0.1", "[::1]", "localhost", "namesake-webhook.namesake-system.svc"} {
		for _, at := range []time.Time{begin.Add(-maxSkew), begin, begin.Add(year)} {
			if _, err := leaf.Leaf.Verify(x509.VerifyOptions{DNSName: host, Roots: pool, CurrentTime: at}); err != nil {
				t.Errorf("%s at %s: %v", host, at, err)
			}
		}
	}
	if !covers(leaf.Leaf, []string{"::1", "localhost"}) || covers(leaf.Leaf, []string{"localhost", "10.0.0.1"}) {
		t.Error("covers does not tell what the certificate is good for")
	}
	if want := begin.Add(year * 2 / 3); !renewal(leaf.Leaf).Equal(want) {
		t.Errorf("renewed at %s, want %s", renewal(leaf.Leaf), want)
	}
	late := issued(t, a, begin.Add(9*year+year/2), "localhost")
	if late.Leaf.NotAfter.After(a.cert.NotAfter) {
		t.Errorf("the certificate outlives its authority: %s, %s", late.Leaf.NotAfter, a.cert.NotAfter)
	}
}

func TestWhenToRenew(t *testing.T) {
	first := made(t, begin)
	turnover := begin.Add(7 * year)
	second := made(t, turnover, first.cert)
	stranger := made(t, begin)
	const overlap = time.Minute
	tests := map[string]struct {
		have  *tls.Certificate
		by    *authority
		now   time.Time
		hosts []string
		want  bool
	}{
		"none":                            {by: first, now: begin, want: true},
		"fresh":                           {have: issued(t, first, begin, "localhost"), by: first, now: begin, hosts: []string{"localhost"}},
		"just before two thirds":          {have: issued(t, first, begin), by: first, now: begin.Add(year*2/3 - time.Second)},
		"two thirds":                      {have: issued(t, first, begin), by: first, now: begin.Add(year * 2 / 3), want: true},
		"another host":                    {have: issued(t, first, begin, "localhost"), by: first, now: begin, hosts: []string{"10.0.0.1", "localhost"}, want: true},
		"a host less":                     {have: issued(t, first, begin, "10.0.0.1", "localhost"), by: first, now: begin, hosts: []string{"localhost"}},
		"new authority, not yet believed": {have: issued(t, first, turnover.Add(-time.Hour)), by: second, now: turnover.Add(overlap - time.Second)},
		"new authority, believed":         {have: issued(t, first, turnover.Add(-time.Hour)), by: second, now: turnover.Add(overlap), want: true},
		"signed by nobody believed":       {have: issued(t, stranger, turnover.Add(-time.Hour)), by: second, now: turnover, want: true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			k := &Keeper{opts: Options{Overlap: overlap}}
			k.current.Store(tc.have)
			if got := k.certificateStale(tc.by, tc.now, tc.hosts); got != tc.want {
				t.Errorf("stale %v, want %v", got, tc.want)
			}
			if tc.have == nil || tc.want {
				return
			}
			// Whoever waits as long as told finds something to do, or half a day is over.
			then := tc.now.Add(k.wait(tc.by, tc.now))
			if !k.certificateStale(tc.by, then, tc.hosts) && !authorityStale(tc.by, then) && then.Sub(tc.now) != maxWait {
				t.Errorf("told to wait until %s, when there is nothing to do", then)
			}
		})
	}
	if authorityStale(first, begin.Add(10*year*2/3-time.Second)) || !authorityStale(first, begin.Add(10*year*2/3)) || !authorityStale(nil, begin) {
		t.Error("an authority is renewed at two thirds of its life, and made when there is none")
	}
}

func TestHostsOf(t *testing.T) {
	at := func(url string) hook {
		return hook{client: admissionregistrationv1.WebhookClientConfig{URL: &url}}
	}
	service := hook{client: admissionregistrationv1.WebhookClientConfig{
		Service: &admissionregistrationv1.ServiceReference{Namespace: "namesake-system", Name: "namesake-webhook"},
	}}
	got := hostsOf([]configuration{
		{webhooks: []hook{at("https://127.0.0.1:9443/mutate"), at("https://127.0.0.1:9443/validate"), service}},
		{webhooks: []hook{at("https://[fd00::1]:9443/"), at("https://hub.example.com/x"), at("%"), {}}},
	})
	want := []string{"127.0.0.1", "fd00::1", "hub.example.com", "namesake-webhook.namesake-system.svc"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("hosts (-want +got):\n%s", diff)
	}
}
