package certificate

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"math/big"
	"net"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
)

// bundleKey is the Secret's key of all authorities that are believed.
const bundleKey = "ca.crt"

// maxSkew is how far the clock of an API server may be behind ours: certificates
// are valid from so much earlier.
const maxSkew = time.Hour

// authority signs certificates.
type authority struct {
	cert *x509.Certificate
	key  crypto.Signer
	// trusted are all authorities that are believed, this one first.
	trusted []*x509.Certificate
}

// newAuthority makes an authority. Those of trusted that are still valid are
// believed beside it.
func newAuthority(now time.Time, lifetime time.Duration, trusted []*x509.Certificate) (*authority, error) {
	key, err := newKey()
	if err != nil {
		return nil, err
	}
	template, err := newTemplate(now, lifetime)
	if err != nil {
		return nil, err
	}
	template.Subject = pkix.Name{CommonName: fmt.Sprintf("namesake-webhook-ca-%x", template.SerialNumber.Bytes()[:4])}
	template.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature
	template.BasicConstraintsValid, template.IsCA, template.MaxPathLenZero = true, true, true
	made, err := sign(template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	out := &authority{cert: made, key: key, trusted: []*x509.Certificate{made}}
	for _, c := range trusted {
		if now.Before(c.NotAfter) && !slices.ContainsFunc(out.trusted, c.Equal) {
			out.trusted = append(out.trusted, c)
		}
	}
	return out, nil
}

// readAuthority reads the authority that a Secret holds.
func readAuthority(secret *corev1.Secret) (*authority, error) {
	pair, err := tls.X509KeyPair(secret.Data[corev1.TLSCertKey], secret.Data[corev1.TLSPrivateKeyKey])
	if err != nil {
		return nil, fmt.Errorf("reading certificate and key of Secret %s/%s: %w", secret.Namespace, secret.Name, err)
	}
	key, ok := pair.PrivateKey.(crypto.Signer)
	if !ok || !pair.Leaf.IsCA {
		return nil, fmt.Errorf("reading Secret %s/%s: its certificate is no authority's", secret.Namespace, secret.Name)
	}
	out := &authority{cert: pair.Leaf, key: key}
	if out.trusted, err = cert.ParseCertsPEM(secret.Data[bundleKey]); err != nil {
		return nil, fmt.Errorf("reading key %q of Secret %s/%s: %w", bundleKey, secret.Namespace, secret.Name, err)
	}
	if !slices.ContainsFunc(out.trusted, out.cert.Equal) {
		return nil, fmt.Errorf("reading Secret %s/%s: key %q does not hold the authority itself", secret.Namespace, secret.Name, bundleKey)
	}
	return out, nil
}

// data is the authority as a Secret holds it.
func (a *authority) data() (map[string][]byte, error) {
	key, err := keyutil.MarshalPrivateKeyToPEM(a.key)
	if err != nil {
		return nil, fmt.Errorf("encoding the authority's key: %w", err)
	}
	own, err := cert.EncodeCertificates(a.cert)
	if err != nil {
		return nil, fmt.Errorf("encoding the authority: %w", err)
	}
	bundle, err := a.bundle()
	if err != nil {
		return nil, err
	}
	return map[string][]byte{corev1.TLSCertKey: own, corev1.TLSPrivateKeyKey: key, bundleKey: bundle}, nil
}

// bundle is what an API server needs to believe the certificates.
func (a *authority) bundle() ([]byte, error) {
	out, err := cert.EncodeCertificates(a.trusted...)
	if err != nil {
		return nil, fmt.Errorf("encoding the authorities: %w", err)
	}
	return out, nil
}

// issue makes a certificate for a server that is called by these hosts.
func (a *authority) issue(now time.Time, lifetime time.Duration, hosts []string) (*tls.Certificate, error) {
	key, err := newKey()
	if err != nil {
		return nil, err
	}
	template, err := newTemplate(now, lifetime)
	if err != nil {
		return nil, err
	}
	if template.NotAfter.After(a.cert.NotAfter) {
		template.NotAfter = a.cert.NotAfter
	}
	template.Subject = pkix.Name{CommonName: "namesake-webhook"}
	template.KeyUsage, template.ExtKeyUsage = x509.KeyUsageDigitalSignature, []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	for _, host := range hosts {
		if ip := net.ParseIP(host); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, host)
		}
	}
	made, err := sign(template, a.cert, key.Public(), a.key)
	if err != nil {
		return nil, err
	}
	return &tls.Certificate{Certificate: [][]byte{made.Raw}, PrivateKey: key, Leaf: made}, nil
}

// signed says that an authority has made a certificate.
func signed(by *x509.Certificate, leaf *tls.Certificate) bool {
	return leaf.Leaf.CheckSignatureFrom(by) == nil
}

// renewal is when to replace a certificate: two thirds into its life.
func renewal(c *x509.Certificate) time.Time {
	from := c.NotBefore.Add(maxSkew)
	return from.Add(c.NotAfter.Sub(from) * 2 / 3)
}

func newKey() (*ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("making a key: %w", err)
	}
	return key, nil
}

// newTemplate returns what every certificate has: a number and its life.
func newTemplate(now time.Time, lifetime time.Duration) (*x509.Certificate, error) {
	const serialBits = 128
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), serialBits-1))
	if err != nil {
		return nil, fmt.Errorf("making a serial number: %w", err)
	}
	serial.SetBit(serial, serialBits-2, 1) // never short
	return &x509.Certificate{SerialNumber: serial, NotBefore: now.Add(-maxSkew), NotAfter: now.Add(lifetime)}, nil
}

func sign(template, parent *x509.Certificate, public crypto.PublicKey, key crypto.Signer) (*x509.Certificate, error) {
	der, err := x509.CreateCertificate(rand.Reader, template, parent, public, key)
	made, parseErr := x509.ParseCertificate(der)
	if err := errors.Join(err, parseErr); err != nil {
		return nil, fmt.Errorf("signing a certificate: %w", err)
	}
	return made, nil
}
