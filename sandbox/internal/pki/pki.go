package pki

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"time"
)

const (
	// lifetime is long enough for any sandbox and short enough that a forgotten
	// key is worth nothing next year.
	lifetime = 365 * 24 * time.Hour
	// skew lets a certificate verify on a machine whose clock was just set back.
	skew = 5 * time.Minute
)

// Authority is a self-signed certificate authority.
type Authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// Pair is a certificate or public key with its private key, both PEM.
type Pair struct {
	Public  []byte
	Private []byte
}

// Request says what a certificate is for. A certificate with Hosts serves those
// DNS names and IP addresses; every certificate can be shown as a client.
type Request struct {
	CommonName   string
	Organization string
	Hosts        []string
}

// NewAuthority makes an authority with the given common name.
func NewAuthority(name string) (*Authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("generating the key of authority %q: %w", name, err)
	}
	template, err := newTemplate(pkix.Name{CommonName: name})
	if err != nil {
		return nil, err
	}
	template.IsCA = true
	template.BasicConstraintsValid = true
	template.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, fmt.Errorf("signing authority %q: %w", name, err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("parsing authority %q: %w", name, err)
	}
	return &Authority{cert: cert, key: key}, nil
}

// Certificate returns the authority's own certificate as PEM.
func (a *Authority) Certificate() []byte {
	return encode("CERTIFICATE", a.cert.Raw)
}

// Issue makes a key and a certificate for it, signed by the authority.
func (a *Authority) Issue(r Request) (Pair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return Pair{}, fmt.Errorf("generating the key of %q: %w", r.CommonName, err)
	}
	subject := pkix.Name{CommonName: r.CommonName}
	if r.Organization != "" {
		subject.Organization = []string{r.Organization}
	}
	template, err := newTemplate(subject)
	if err != nil {
		return Pair{}, err
	}
	template.KeyUsage = x509.KeyUsageDigitalSignature
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	if len(r.Hosts) > 0 {
		template.ExtKeyUsage = append(template.ExtKeyUsage, x509.ExtKeyUsageServerAuth)
	}
	for _, host := range r.Hosts {
		if ip := net.ParseIP(host); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, host)
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, key.Public(), a.key)
	if err != nil {
		return Pair{}, fmt.Errorf("signing the certificate of %q: %w", r.CommonName, err)
	}
	private, err := encodePrivate(key)
	if err != nil {
		return Pair{}, err
	}
	return Pair{Public: encode("CERTIFICATE", der), Private: private}, nil
}

// NewSigningKey makes a key pair that signs service account tokens.
func NewSigningKey() (Pair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return Pair{}, fmt.Errorf("generating a signing key: %w", err)
	}
	private, err := encodePrivate(key)
	if err != nil {
		return Pair{}, err
	}
	der, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return Pair{}, fmt.Errorf("encoding a public key: %w", err)
	}
	return Pair{Public: encode("PUBLIC KEY", der), Private: private}, nil
}

func newTemplate(subject pkix.Name) (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, fmt.Errorf("choosing a serial number: %w", err)
	}
	now := time.Now()
	return &x509.Certificate{
		SerialNumber: serial,
		Subject:      subject,
		NotBefore:    now.Add(-skew),
		NotAfter:     now.Add(lifetime),
	}, nil
}

func encodePrivate(key *ecdsa.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("encoding a private key: %w", err)
	}
	return encode("EC PRIVATE KEY", der), nil
}

func encode(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}
