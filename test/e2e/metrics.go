package e2e

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"k8s.io/client-go/kubernetes"
)

// request is a kind of request that an API server has served.
type request struct {
	verb, resource, subresource string
	// code of the answer, for example "403".
	code string
}

// isWrite says whether a request may have changed something.
func (r request) isWrite() bool {
	return slices.Contains([]string{"POST", "PUT", "PATCH", "APPLY", "DELETE", "DELETECOLLECTION"}, r.verb)
}

// requests counts what an API server has served since it started.
type requests map[request]float64

var (
	requestTotal = regexp.MustCompile(`(?m)^apiserver_request_total\{(.*)\} (\S+)$`)
	metricLabel  = regexp.MustCompile(`(\w+)="([^"]*)"`)
)

// countRequests asks an API server for its own count.
func countRequests(ctx context.Context, c *cluster) (requests, error) {
	set, err := kubernetes.NewForConfig(c.config)
	if err != nil {
		return nil, err
	}
	text, err := set.Discovery().RESTClient().Get().AbsPath("/metrics").DoRaw(ctx)
	if err != nil {
		return nil, fmt.Errorf("reading metrics of %s: %w", c.name, err)
	}
	out := requests{}
	for _, line := range requestTotal.FindAllStringSubmatch(string(text), -1) {
		labels := map[string]string{}
		for _, l := range metricLabel.FindAllStringSubmatch(line[1], -1) {
			labels[l[1]] = l[2]
		}
		count, err := strconv.ParseFloat(line[2], 64)
		if err != nil {
			return nil, fmt.Errorf("reading metrics of %s: %w", c.name, err)
		}
		out[request{
			verb: labels["verb"], resource: labels["resource"], subresource: labels["subresource"], code: labels["code"],
		}] += count
	}
	if len(out) == 0 {
		return nil, errors.New(c.name + " counts no requests")
	}
	return out, nil
}

// writesSince returns the writes that came after an earlier count.
func (r requests) writesSince(before requests) requests {
	out := requests{}
	for kind, count := range r {
		if more := count - before[kind]; kind.isWrite() && more > 0 {
			out[kind] = more
		}
	}
	return out
}

// watchesSince returns how many watches of our kinds have ended since an earlier
// count, whoever watched.
func (r requests) watchesSince(before requests) (count float64) {
	ours := []string{"works", "resourcebindings", "clusters", "multiclusterservices"}
	for kind, n := range r {
		if kind.verb == "WATCH" && slices.Contains(ours, kind.resource) {
			count += n - before[kind]
		}
	}
	return count
}

// of returns how many requests were for a resource.
func (r requests) of(resource string) (count float64) {
	for kind, n := range r {
		if kind.resource == resource {
			count += n
		}
	}
	return count
}

// refused returns how many requests were forbidden, as they are to make something
// in a namespace that is going.
func (r requests) refused() (count float64) {
	for kind, n := range r {
		if kind.code == "403" {
			count += n
		}
	}
	return count
}

// byUs leaves out what a cluster writes by itself: leases, the addresses of
// Services, and in members what its controllers say of a node. The hub may do
// nothing of that there.
func (r requests) byUs(cluster string) requests {
	own := []string{"leases", "ipaddresses"}
	if cluster != hubName {
		own = append(own, "events", "nodes")
	}
	out := requests{}
	for kind, n := range r {
		if !slices.Contains(own, kind.resource) {
			out[kind] = n
		}
	}
	return out
}

// String lists the counts.
func (r requests) String() string {
	var lines []string
	for kind, count := range r {
		what := strings.TrimSuffix(kind.resource+"/"+kind.subresource, "/")
		lines = append(lines, fmt.Sprintf("%s %s (%s) %g times", kind.verb, what, kind.code, count))
	}
	slices.Sort(lines)
	return strings.Join(lines, ", ")
}
