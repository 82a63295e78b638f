package pki

import (
	"crypto/tls"
	"crypto/x509"
	"testing"
)

func TestIssue(t *testing.T) {
	ours, err := NewAuthority("ours")
	if err != nil {
		t.Fatal(err)
	}
	other, err := NewAuthority("other")
	if err != nil {
		t.Fatal(err)
	}
	server, err := ours.Issue(Request{CommonName: "kube-apiserver", Hosts: []string{"127.0.0.1", "localhost"}})
	if err != nil {
		t.Fatal(err)
	}
	client, err := ours.Issue(Request{CommonName: "admin", Organization: "system:masters"})
	if err != nil {
		t.Fatal(err)
	}

	tests := map[string]struct {
		pair   Pair
		roots  *Authority
		host   string
		usage  x509.ExtKeyUsage
		wantOK bool
	}{
		"server by address":        {server, ours, "127.0.0.1", x509.ExtKeyUsageServerAuth, true},
		"server by name":           {server, ours, "localhost", x509.ExtKeyUsageServerAuth, true},
		"server as client":         {server, ours, "", x509.ExtKeyUsageClientAuth, true},
		"server under wrong name":  {server, ours, "example.org", x509.ExtKeyUsageServerAuth, false},
		"server of another CA":     {server, other, "127.0.0.1", x509.ExtKeyUsageServerAuth, false},
		"client":                   {client, ours, "", x509.ExtKeyUsageClientAuth, true},
		"client can't be a server": {client, ours, "", x509.ExtKeyUsageServerAuth, false},
		"client of another CA":     {client, other, "", x509.ExtKeyUsageClientAuth, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			pair, err := tls.X509KeyPair(tt.pair.Public, tt.pair.Private)
			if err != nil {
				t.Fatal(err)
			}
			leaf, err := x509.ParseCertificate(pair.Certificate[0])
			if err != nil {
				t.Fatal(err)
			}
			roots := x509.NewCertPool()
			if !roots.AppendCertsFromPEM(tt.roots.Certificate()) {
				t.Fatal("the authority's certificate is not PEM")
			}
			_, err = leaf.Verify(x509.VerifyOptions{DNSName: tt.host, Roots: roots, KeyUsages: []x509.ExtKeyUsage{tt.usage}})
			if gotOK := err == nil; gotOK != tt.wantOK {
				t.Errorf("verified = %t, want %t (%v)", gotOK, tt.wantOK, err)
			}
		})
	}

	admin, err := tls.X509KeyPair(client.Public, client.Private)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(admin.Certificate[0])
	if err != nil {
		t.Fatal(err)
	}
	if got := leaf.Subject.String(); got != "CN=admin,O=system:masters" {
		t.Errorf("subject = %q", got)
	}
}

func TestSigningKeysDiffer(t *testing.T) {
	a, err := NewSigningKey()
	if err != nil {
		t.Fatal(err)
	}
	b, err := NewSigningKey()
	if err != nil {
		t.Fatal(err)
	}
	if string(a.Public) == string(b.Public) {
		t.Error("two signing keys are the same: tokens of one cluster would be valid in another")
	}
}
