// Package probe asks containers how they are, as a kubelet does, and judges the
// answers.
package probe

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Target is a container that can be asked.
type Target struct {
	// Address is the pod's.
	Address string
	// Ports are those that a probe may call by name.
	Ports []corev1.ContainerPort
	// Dial connects from where probes come from: the node.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// Exec runs a command in the container and fails unless its exit code is 0.
	Exec func(ctx context.Context, command []string) error
}

// Ask does what the handler says, once.
func (t Target) Ask(ctx context.Context, h corev1.ProbeHandler) error {
	switch {
	case h.Exec != nil:
		return t.Exec(ctx, h.Exec.Command)
	case h.HTTPGet != nil:
		return t.get(ctx, h.HTTPGet)
	case h.TCPSocket != nil:
		port, err := t.port(h.TCPSocket.Port.String())
		if err != nil {
			return err
		}
		return t.connect(ctx, h.TCPSocket.Host, port)
	case h.GRPC != nil:
		// That it listens is all that is asked of a gRPC server here.
		return t.connect(ctx, "", strconv.Itoa(int(h.GRPC.Port)))
	default:
		return errors.New("a probe without a handler")
	}
}

func (t Target) host(given string) string {
	if given != "" {
		return given
	}
	return t.Address
}

func (t Target) port(given string) (string, error) {
	if _, err := strconv.Atoi(given); err == nil {
		return given, nil
	}
	for _, p := range t.Ports {
		if p.Name == given {
			return strconv.Itoa(int(p.ContainerPort)), nil
		}
	}
	return "", fmt.Errorf("the container has no port named %q", given)
}

func (t Target) connect(ctx context.Context, host, port string) error {
	conn, err := t.Dial(ctx, "tcp", net.JoinHostPort(t.host(host), port))
	if err != nil {
		return err
	}
	conn.Close()
	return nil
}

func (t Target) get(ctx context.Context, g *corev1.HTTPGetAction) error {
	port, err := t.port(g.Port.String())
	if err != nil {
		return err
	}
	scheme := "http"
	if g.Scheme == corev1.URISchemeHTTPS {
		scheme = "https"
	}
	target, err := url.Parse(scheme + "://" + net.JoinHostPort(t.host(g.Host), port) + "/")
	if err != nil {
		return err
	}
	if target, err = target.Parse(g.Path); err != nil {
		return fmt.Errorf("parsing the path of a probe: %w", err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, target.String(), nil)
	if err != nil {
		return err
	}
	request.Header.Set("User-Agent", "kube-probe/sandbox")
	for _, h := range g.HTTPHeaders {
		request.Header.Add(h.Name, h.Value)
		if http.CanonicalHeaderKey(h.Name) == "Host" {
			request.Host = h.Value
		}
	}
	transport := &http.Transport{
		DialContext: t.Dial, DisableKeepAlives: true,
		// A probe asks whether a server is well, not who it is.
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true},
	}
	client := &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(response.Body, 10<<10))
	if response.StatusCode < 200 || response.StatusCode >= 400 {
		return fmt.Errorf("HTTP probe failed with statuscode: %d", response.StatusCode)
	}
	return nil
}

// Verdict is what a series of answers comes to.
type Verdict int

const (
	// Undecided means that a threshold has yet to be reached.
	Undecided Verdict = iota
	// Success means that enough answers in a row were good.
	Success
	// Failure means that enough answers in a row were bad.
	Failure
)

// Judge counts the answers to one probe. The zero thresholds are those of the API.
type Judge struct {
	success, failure int
	row              int
	good             bool
}

// NewJudge takes the thresholds of a probe.
func NewJudge(p *corev1.Probe) *Judge {
	return &Judge{success: atLeast(p.SuccessThreshold, 1), failure: atLeast(p.FailureThreshold, 3)}
}

func atLeast(n, without int32) int {
	if n <= 0 {
		n = without
	}
	return int(n)
}

// Hear counts an answer and tells what the series comes to now.
func (j *Judge) Hear(good bool) Verdict {
	if j.row > 0 && good != j.good {
		j.row = 0
	}
	j.good = good
	j.row++
	switch {
	case good && j.row >= j.success:
		return Success
	case !good && j.row >= j.failure:
		return Failure
	default:
		return Undecided
	}
}

// Period is the time between two questions.
func Period(p *corev1.Probe) time.Duration {
	return time.Duration(atLeast(p.PeriodSeconds, 10)) * time.Second
}

// Timeout is how long an answer may take.
func Timeout(p *corev1.Probe) time.Duration {
	return time.Duration(atLeast(p.TimeoutSeconds, 1)) * time.Second
}
