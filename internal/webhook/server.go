package webhook

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"strconv"

	"github.com/spf13/pflag"
	ctrl "sigs.k8s.io/controller-runtime"
	crwebhook "sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/namesake-io/namesake/internal/webhook/certificate"
)

// Paths that are served. The webhook configurations in charts/ name them.
const (
	PathDefaultService  = "/mutate/multiclusterservice"
	PathValidateService = "/validate/multiclusterservice"
	PathValidateCluster = "/validate/cluster"
)

// off is the address that switches the server off.
const off = "0"

// Options are what the flags say, and what tests set.
type Options struct {
	// BindAddress is host:port, or "0" for none.
	BindAddress string
	// CertDir holds tls.crt and tls.key. Empty: the process makes its own.
	CertDir string
	// Certificate is how the process makes its own.
	Certificate certificate.Options
}

// DefaultOptions are those of a hub.
func DefaultOptions() Options {
	return Options{BindAddress: "127.0.0.1:9443", Certificate: certificate.DefaultOptions()}
}

// AddFlags adds the flags to a set.
func (o *Options) AddFlags(fs *pflag.FlagSet) {
	fs.StringVar(&o.BindAddress, "webhook-bind-address", o.BindAddress, "Address of the admission webhooks, which 'namesakectl install --webhook-url' registers. '0' switches them off; ':9443' serves every interface.")
	fs.StringVar(&o.CertDir, "webhook-cert-dir", o.CertDir, "Folder with tls.crt and tls.key for the webhooks, read again when they change; their caBundle is then yours to set. Empty: the process makes and renews its own, kept in the Secret karmada-cluster/"+certificate.SecretName+", and sets the caBundle.")
}

// Enabled says that webhooks are served.
func (o *Options) Enabled() bool { return o.BindAddress != off }

// Validate says what is wrong with the options.
func (o *Options) Validate() error {
	if !o.Enabled() {
		return nil
	}
	var errs []error
	if _, _, err := splitAddress(o.BindAddress); err != nil {
		errs = append(errs, fmt.Errorf("--webhook-bind-address: %q: %w", o.BindAddress, err))
	}
	if o.CertDir != "" {
		if _, err := tls.LoadX509KeyPair(filepath.Join(o.CertDir, certFile), filepath.Join(o.CertDir, keyFile)); err != nil {
			errs = append(errs, fmt.Errorf("--webhook-cert-dir: %w: it must hold %s and %s; without the flag the process makes its own", err, certFile, keyFile))
		}
	}
	return errors.Join(errs...)
}

// Files of a certificate's folder, as in a Secret of type kubernetes.io/tls.
const (
	certFile = "tls.crt"
	keyFile  = "tls.key"
)

// splitAddress returns host and port of an address.
func splitAddress(address string) (host string, port int, err error) {
	host, number, err := net.SplitHostPort(address)
	if err != nil {
		return "", 0, errNoHost
	}
	port, err = strconv.Atoi(number)
	if err != nil || port < 1 || port > 65535 {
		return "", 0, errNoHost
	}
	return host, port, nil
}

// Add adds the webhooks to a manager. enabled is the feature gate
// MultiClusterService.
func Add(mgr ctrl.Manager, opts Options, enabled bool) error {
	host, port, err := splitAddress(opts.BindAddress)
	if err != nil {
		return fmt.Errorf("serving webhooks at %q: %w", opts.BindAddress, err)
	}
	certified := func(*http.Request) error { return nil }
	serve := crwebhook.Options{Host: host, Port: port, CertDir: opts.CertDir, CertName: certFile, KeyName: keyFile}
	if opts.CertDir == "" {
		opts.Certificate.Hosts = append(opts.Certificate.Hosts, ownHosts(host)...)
		keeper, err := certificate.Add(mgr, opts.Certificate)
		if err != nil {
			return err
		}
		serve.TLSOpts = append(serve.TLSOpts, func(c *tls.Config) { c.GetCertificate = keeper.GetCertificate })
		certified = keeper.Check
	}
	server := crwebhook.NewServer(serve)
	server.Register(PathDefaultService, &admission.Webhook{Handler: defaulter{}})
	server.Register(PathValidateService, admission.WithValidator(mgr.GetScheme(), serviceValidator{enabled: enabled, clusters: mgr.GetClient()}))
	server.Register(PathValidateCluster, admission.WithValidator(mgr.GetScheme(), clusterValidator{}))
	ready := func(req *http.Request) error {
		if err := certified(req); err != nil {
			return err // and do not knock: without a certificate, nobody can answer
		}
		return server.StartedChecker()(req)
	}
	if err := errors.Join(mgr.AddReadyzCheck("webhook", ready), mgr.Add(server)); err != nil {
		return fmt.Errorf("adding the webhook server: %w", err)
	}
	return nil
}

// ownHosts are the hosts that a server which listens on host is called by, as far
// as it can know.
func ownHosts(host string) []string {
	out := []string{"localhost"}
	if ip := net.ParseIP(host); host != "" && (ip == nil || !ip.IsUnspecified()) {
		out = append(out, host)
	}
	return out
}
