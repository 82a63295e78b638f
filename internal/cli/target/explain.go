package target

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/url"
	"regexp"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/namesake-io/namesake/internal/cli/console"
)

// forbidden takes an API server's refusal apart.
var forbidden = regexp.MustCompile(`User "([^"]*)" cannot (\S+) resource "([^"]*)" in API group "([^"]*)"(.*)`)

// Explain says what an error of t means and gives the way out. Errors that it
// does not know come back as they are.
func (t *Target) Explain(program string, err error) error {
	switch {
	case err == nil:
		return nil
	case isMissingKind(err):
		return console.WithHint(&plainError{text: fmt.Sprintf("the %s does not serve Namesake's kinds", t), err: err},
			"install them: %s install", program)
	case apierrors.IsForbidden(err):
		return t.explainForbidden(err)
	case apierrors.IsUnauthorized(err):
		return console.WithHint(fmt.Errorf("the %s refuses the credential of %s: %w", t, t.source(), err),
			"renew the credential in that file, or name another one")
	case errors.Is(err, context.Canceled):
		return fmt.Errorf("interrupted: %w", err)
	case isUnreachable(err):
		return t.explainUnreachable(err)
	}
	return err
}

func (t *Target) explainForbidden(err error) error {
	match := forbidden.FindStringSubmatch(err.Error())
	if match == nil {
		return console.WithHint(fmt.Errorf("the %s refuses: %w", t, err), "use a kubeconfig of somebody who may do this")
	}
	user, verb, resource, group, where := match[1], match[2], match[3], match[4], match[5]
	if group != "" {
		resource += "." + group
	}
	return console.WithHint(&plainError{
		text: fmt.Sprintf("user %q may not %s %s%s of the %s", user, verb, resource, trimDetail(where), t),
		err:  err,
	}, "let an administrator grant this, or use a kubeconfig of somebody who may (%s was used)", t.source())
}

// trimDetail keeps `in the namespace "x"` and drops the causes after it, which
// are long and name roles that the reader can't see.
func trimDetail(where string) string {
	where, _, _ = strings.Cut(where, ":")
	return where
}

// plainError replaces a library's long sentence and keeps it for errors.As.
type plainError struct {
	text string
	err  error
}

func (e *plainError) Error() string { return e.text }

func (e *plainError) Unwrap() error { return e.err }

func (t *Target) explainUnreachable(err error) error {
	cause := err
	var urlError *url.Error
	if errors.As(err, &urlError) {
		cause = urlError.Err
	}
	text := cause.Error()
	if errors.Is(err, context.DeadlineExceeded) || isTimeout(err) {
		text = fmt.Sprintf("no answer within %s", requestTimeout)
	}
	hint := "is its API server up, and is the address right from here?"
	if isCertificate(err) {
		hint = "the kubeconfig's certificate authority does not fit this API server: is the file the right one, and fresh?"
	}
	return console.WithHint(&plainError{
		text: fmt.Sprintf("the %s cannot be reached (%s): %s", t, t.source(), text),
		err:  err,
	}, "%s", hint)
}

func isMissingKind(err error) bool {
	var discovery *apiutil.ErrResourceDiscoveryFailed
	return meta.IsNoMatchError(err) || isGroupMissing(err) ||
		(errors.As(err, &discovery) && allNotFound(discovery))
}

// isGroupMissing: discovery of the whole group failed with 404.
func isGroupMissing(err error) bool {
	groups, ok := discovery.GroupDiscoveryFailedErrorGroups(err)
	if !ok {
		return false
	}
	for _, err := range groups {
		if !apierrors.IsNotFound(err) {
			return false
		}
	}
	return len(groups) > 0
}

func allNotFound(failed *apiutil.ErrResourceDiscoveryFailed) bool {
	for _, err := range *failed {
		if !apierrors.IsNotFound(err) {
			return false
		}
	}
	return len(*failed) > 0
}

func isUnreachable(err error) bool {
	var urlError *url.Error
	var netError net.Error
	return errors.As(err, &urlError) || errors.As(err, &netError) || errors.Is(err, context.DeadlineExceeded)
}

func isTimeout(err error) bool {
	var netError net.Error
	return errors.As(err, &netError) && netError.Timeout()
}

func isCertificate(err error) bool {
	var unknown x509.UnknownAuthorityError
	var host x509.HostnameError
	var invalid x509.CertificateInvalidError
	return errors.As(err, &unknown) || errors.As(err, &host) || errors.As(err, &invalid)
}
