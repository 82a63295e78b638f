package member

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"syscall"
	"time"

	clusterv1alpha1 "github.com/namesake-io/namesake/api/cluster/v1alpha1"
)

const (
	probeTimeout = 4 * time.Second
	// probeWhileDown is how often a member that does not answer is asked again.
	probeWhileDown = time.Second
	// failuresToClose is how many probes in a row must fail before the member
	// counts as unreachable; a refused connection needs no second one.
	failuresToClose = 2
)

// Health is what the last probe of a member found.
type Health struct {
	// Known is false until the first probe has ended.
	Known bool
	// Reachable is true when the API server answers with a credential it takes.
	Reachable bool
	// Ready is true when it also says that it is ready.
	Ready bool
	// Reason is a condition reason of a Cluster, and Message explains it.
	Reason, Message string
	// Since is when Reachable and Ready last changed.
	Since time.Time
}

// same says that nothing worth telling differs.
func (h Health) same(other Health) bool {
	return h.Known == other.Known && h.Reachable == other.Reachable && h.Ready == other.Ready &&
		h.Reason == other.Reason && h.Message == other.Message
}

// prober asks a member's API server whether it is ready: in turn, and at once
// when a request has failed.
type prober struct {
	endpoint string
	client   *http.Client
	interval time.Duration
	failed   chan struct{}
	report   func(Health)

	failures int
}

// hurry makes the next probe happen at once.
func (p *prober) hurry() {
	select {
	case p.failed <- struct{}{}:
	default:
	}
}

// run probes until the context ends.
func (p *prober) run(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	var last Health
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		case <-p.failed:
		}
		health, settled := p.probe(ctx)
		if ctx.Err() != nil {
			return
		}
		if settled {
			if health.Reachable != last.Reachable || health.Ready != last.Ready || !last.Known {
				health.Since = time.Now()
			} else {
				health.Since = last.Since
			}
			last = health
			p.report(health)
		}
		next := p.interval
		if !health.Ready {
			next = min(next, probeWhileDown)
		}
		timer.Reset(next)
	}
}

// probe asks once. settled is false while a failure may still be a hiccup.
func (p *prober) probe(ctx context.Context) (_ Health, settled bool) {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, p.endpoint+"/readyz", http.NoBody)
	if err != nil {
		return Health{Known: true, Reason: clusterv1alpha1.ReasonClusterNotReachable, Message: err.Error()}, true
	}
	resp, err := p.client.Do(req)
	if err != nil {
		p.failures++
		settled := p.failures >= failuresToClose || errors.Is(err, syscall.ECONNREFUSED)
		return Health{
			Known:   true,
			Reason:  clusterv1alpha1.ReasonClusterNotReachable,
			Message: fmt.Sprintf("the API server %s does not answer: %v", p.endpoint, errors.Unwrap(err)),
		}, settled
	}
	defer func() { _ = resp.Body.Close() }()
	p.failures = 0
	body, _ := io.ReadAll(io.LimitReader(resp.Body, 1024))

	switch {
	case resp.StatusCode == http.StatusOK:
		return Health{
			Known: true, Reachable: true, Ready: true,
			Reason: clusterv1alpha1.ReasonClusterReady, Message: "the API server answers and is ready",
		}, true
	case resp.StatusCode == http.StatusUnauthorized || resp.StatusCode == http.StatusForbidden:
		return Health{
			Known:   true,
			Reason:  clusterv1alpha1.ReasonCredentialRejected,
			Message: fmt.Sprintf("the API server %s refuses the token of the Cluster's Secret (%s): join the cluster again to renew it", p.endpoint, resp.Status),
		}, true
	default:
		return Health{
			Known: true, Reachable: true,
			Reason:  clusterv1alpha1.ReasonClusterNotReady,
			Message: fmt.Sprintf("the API server %s says that it is not ready (%s): %s", p.endpoint, resp.Status, firstFailure(string(body))),
		}, true
	}
}

// firstFailure picks the first failed check out of the answer of /readyz.
func firstFailure(body string) string {
	for line := range strings.Lines(body) {
		if strings.HasPrefix(line, "[-]") {
			return strings.TrimSpace(line)
		}
	}
	first, _, _ := strings.Cut(strings.TrimSpace(body), "\n")
	return first
}
