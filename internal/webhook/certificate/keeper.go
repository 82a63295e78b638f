package certificate

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync/atomic"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	clusterv1alpha1 "github.com/namesake-io/namesake/api/cluster/v1alpha1"
	"github.com/namesake-io/namesake/internal/apply"
)

const (
	// SecretName is the name of the Secret with the authority, in the namespace
	// karmada-cluster.
	SecretName = "namesake-webhook-ca"
	// ConfigurationName is the name of both webhook configurations.
	ConfigurationName = "namesake"

	// systemLabel marks what the system made for itself.
	systemLabel = "karmada.io/system"
	owner       = "namesake-webhook"
	// again is how soon to look again after somebody else wrote first.
	again = 100 * time.Millisecond
)

// errNone is what callers get before there is a certificate.
var errNone = errors.New("the webhook server has no certificate yet")

// Options of a Keeper.
type Options struct {
	// Hosts that the server is called by in any case, beside those that the
	// configurations name.
	Hosts []string
	// CertificateLifetime and AuthorityLifetime, each renewed after two thirds.
	CertificateLifetime, AuthorityLifetime time.Duration
	// Overlap is how long a new authority is believed before it signs.
	Overlap time.Duration
	// Now is the clock.
	Now func() time.Time
}

// DefaultOptions are those of a hub.
func DefaultOptions() Options {
	const year = 365 * 24 * time.Hour
	return Options{CertificateLifetime: year, AuthorityLifetime: 10 * year, Overlap: time.Minute, Now: time.Now}
}

// Keeper keeps the certificate.
type Keeper struct {
	opts   Options
	reader client.Reader
	writer apply.Writer

	current atomic.Pointer[tls.Certificate]
	// trusted are the authorities that were believed last, so that one that was
	// lost is believed until its certificates are replaced.
	trusted []*x509.Certificate
	settled atomic.Bool
}

// Add makes a Keeper and adds it to a manager. It works in every replica, leader
// or not.
func Add(mgr ctrl.Manager, opts Options) (*Keeper, error) {
	// The manager's own client may be for the leader alone.
	anybody, err := client.New(mgr.GetConfig(), client.Options{
		HTTPClient: mgr.GetHTTPClient(), Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(),
	})
	if err != nil {
		return nil, fmt.Errorf("making a client for the webhook certificate: %w", err)
	}
	k := &Keeper{opts: opts, reader: mgr.GetClient(), writer: apply.NewWriter(anybody, owner)}
	one := reconcile.Request{NamespacedName: types.NamespacedName{Name: ConfigurationName}}
	enqueue := handler.EnqueueRequestsFromMapFunc(func(context.Context, client.Object) []reconcile.Request {
		return []reconcile.Request{one}
	})
	named := func(namespace, name string) builder.Predicates {
		return builder.WithPredicates(predicate.NewPredicateFuncs(func(obj client.Object) bool {
			return obj.GetNamespace() == namespace && obj.GetName() == name
		}))
	}
	onlyLeader, anyName := false, true // a process may hold more than one hub
	err = ctrl.NewControllerManagedBy(mgr).Named("webhook-certificate").
		WithOptions(controller.Options{NeedLeaderElection: &onlyLeader, SkipNameValidation: &anyName}).
		Watches(&corev1.Secret{}, enqueue, named(clusterv1alpha1.SystemNamespace, SecretName)).
		Watches(&admissionregistrationv1.MutatingWebhookConfiguration{}, enqueue, named("", ConfigurationName)).
		Watches(&admissionregistrationv1.ValidatingWebhookConfiguration{}, enqueue, named("", ConfigurationName)).
		WatchesRawSource(source.Func(func(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
			queue.Add(one) // there may be nothing yet that could say so
			return nil
		})).
		Complete(k)
	if err != nil {
		return nil, fmt.Errorf("adding the keeper of the webhook certificate: %w", err)
	}
	return k, nil
}

// GetCertificate returns the certificate as it is now.
func (k *Keeper) GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	if have := k.current.Load(); have != nil {
		return have, nil
	}
	return nil, errNone
}

// Check is ready when there is a certificate, and the configurations that there
// are believe it.
func (k *Keeper) Check(*http.Request) error {
	if !k.settled.Load() {
		return errNone
	}
	return nil
}

// Reconcile makes and renews what is needed.
func (k *Keeper) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	now := k.opts.Now()
	a, err := k.authority(ctx, now)
	if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) {
		return reconcile.Result{RequeueAfter: again}, nil // another replica was first
	}
	if err != nil {
		return reconcile.Result{}, err
	}
	k.trusted = a.trusted
	configs, err := k.configurations(ctx)
	if err != nil {
		return reconcile.Result{}, err
	}
	injectErr := k.inject(ctx, configs, a)
	if injectErr != nil && k.current.Load() != nil {
		if apierrors.IsConflict(injectErr) {
			return reconcile.Result{RequeueAfter: again}, nil
		}
		return reconcile.Result{}, injectErr // what is in use is still believed
	}
	if err := errors.Join(injectErr, k.renew(ctx, a, now, hostsOf(configs))); err != nil {
		return reconcile.Result{}, err
	}
	k.settled.Store(true)
	return reconcile.Result{RequeueAfter: k.wait(a, now)}, nil
}

// authority returns the one that signs: that of the Secret, or a new one.
func (k *Keeper) authority(ctx context.Context, now time.Time) (*authority, error) {
	secret := &corev1.Secret{}
	key := types.NamespacedName{Namespace: clusterv1alpha1.SystemNamespace, Name: SecretName}
	err := k.reader.Get(ctx, key, secret)
	if client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("reading Secret %s: %w", key, err)
	}
	exists := err == nil
	var have *authority
	if exists {
		if have, err = readAuthority(secret); err != nil {
			klog.FromContext(ctx).Error(err, "Replacing the webhook authority")
		}
	}
	if !authorityStale(have, now) {
		return have, nil
	}
	trusted := k.trusted
	if have != nil {
		trusted = slices.Concat(have.trusted, trusted)
	}
	made, err := newAuthority(now, k.opts.AuthorityLifetime, trusted)
	if err != nil {
		return nil, err
	}
	if secret.Data, err = made.data(); err != nil {
		return nil, err
	}
	if exists {
		err = k.writer.Update(ctx, secret)
	} else {
		secret.ObjectMeta = metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name, Labels: map[string]string{systemLabel: "true"}}
		secret.Type = corev1.SecretTypeTLS
		err = k.writer.Create(ctx, secret)
	}
	if err != nil {
		return nil, err
	}
	klog.FromContext(ctx).Info("Made a webhook authority", "notAfter", made.cert.NotAfter)
	return made, nil
}

// renew issues a certificate if one is needed.
func (k *Keeper) renew(ctx context.Context, a *authority, now time.Time, hosts []string) error {
	hosts = slices.Concat(k.opts.Hosts, hosts)
	slices.Sort(hosts)
	hosts = slices.Compact(hosts)
	if !k.certificateStale(a, now, hosts) {
		return nil
	}
	made, err := a.issue(now, k.opts.CertificateLifetime, hosts)
	if err != nil {
		return err
	}
	k.current.Store(made)
	klog.FromContext(ctx).Info("Issued a webhook certificate", "hosts", hosts, "notAfter", made.Leaf.NotAfter)
	return nil
}
