package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// requests counts requests by "VERB resource", as an API server does.
type requests map[string]float64

var (
	requestTotal = regexp.MustCompile(`(?m)^apiserver_request_total\{(.*)\} (\S+)$`)
	metricLabel  = regexp.MustCompile(`(\w+)="([^"]*)"`)
)

// Verbs of requests that write, that read, and that watch. Watches are counted when
// they end, which tells of what was before; at rest it tells whether they last.
var (
	writeVerbs = []string{"POST", "PUT", "PATCH", "APPLY", "DELETE", "DELETECOLLECTION"}
	readVerbs  = []string{"GET", "LIST"}
	watchVerbs = []string{"WATCH"}
)

// aside are resources that are left out of every count: every process has leases,
// and the others are written by a cluster's own parts when a Service comes or goes.
var aside = []string{"", "leases", "ipaddresses", "endpoints"}

// countRequests asks an API server for its own count.
func countRequests(ctx context.Context, c *cluster) (requests, error) {
	text, err := c.kube.Discovery().RESTClient().Get().AbsPath("/metrics").DoRaw(ctx)
	if err != nil {
		return nil, fmt.Errorf("reading metrics of %s: %w", c.name, err)
	}
	out := requests{}
	for _, line := range requestTotal.FindAllStringSubmatch(string(text), -1) {
		labels := map[string]string{}
		for _, l := range metricLabel.FindAllStringSubmatch(line[1], -1) {
			labels[l[1]] = l[2]
		}
		if slices.Contains(aside, labels["resource"]) {
			continue
		}
		count, err := strconv.ParseFloat(line[2], 64)
		if err != nil {
			return nil, fmt.Errorf("reading metrics of %s: %w", c.name, err)
		}
		out[labels["verb"]+" "+strings.TrimSuffix(labels["resource"]+"/"+labels["subresource"], "/")] += count
	}
	if len(out) == 0 {
		return nil, errors.New(c.name + " counts no requests")
	}
	return out, nil
}

// of returns the counts of some verbs.
func (r requests) of(verbs []string) requests {
	out := requests{}
	for what, n := range r {
		if verb, _, _ := strings.Cut(what, " "); slices.Contains(verbs, verb) {
			out[what] = n
		}
	}
	return out
}

func (r requests) writes() requests { return r.of(writeVerbs) }

// total of all counts.
func (r requests) total() (sum float64) {
	for _, n := range r {
		sum += n
	}
	return sum
}

// less returns what is left without earlier or other requests.
func (r requests) less(other requests) requests {
	out := requests{}
	for what, n := range r {
		if left := n - other[what]; left > 0 {
			out[what] = left
		}
	}
	return out
}

// plus adds counts.
func (r requests) plus(other requests) requests {
	out := requests{}
	for _, counts := range []requests{r, other} {
		for what, n := range counts {
			out[what] += n
		}
	}
	return out
}

// cost is what the control plane spent on something. What the bench itself asked
// for is not in it.
type cost struct {
	HubWrites    requests `json:"hubWrites"`
	HubReads     requests `json:"hubReads"`
	MemberWrites requests `json:"memberWrites"`
	MemberReads  requests `json:"memberReads"`
	// HubWatches are those that ended, by anybody: some last five minutes, some ten.
	HubWatches requests `json:"hubWatches,omitempty"`
	// CPUSeconds of the control plane's process.
	CPUSeconds float64 `json:"cpuSeconds,omitempty"`
}

// bill is an account at a point in time.
type bill struct {
	hub, members requests
	cpu          float64
}

// account looks at every API server and at the process.
func (p *plane) account(ctx context.Context) (*bill, error) {
	b := &bill{members: requests{}}
	var err error
	if b.hub, err = countRequests(ctx, p.hub); err != nil {
		return nil, err
	}
	for _, m := range p.members {
		counts, err := countRequests(ctx, m)
		if err != nil {
			return nil, err
		}
		b.members = b.members.plus(counts)
	}
	if p.metricsURL != "" {
		if b.cpu, err = sumMetric(ctx, p.metricsURL, "process_cpu_seconds_total"); err != nil {
			return nil, err
		}
	}
	return b, nil
}

// since returns what was spent since an earlier account, without the bench's own
// requests.
func (b *bill) since(before *bill, ownHub, ownMembers requests) *cost {
	hub, members := b.hub.less(before.hub).less(ownHub), b.members.less(before.members).less(ownMembers)
	return &cost{
		HubWrites: hub.writes(), HubReads: hub.of(readVerbs),
		MemberWrites: members.writes(), MemberReads: members.of(readVerbs),
		HubWatches: hub.of(watchVerbs),
		CPUSeconds: max(b.cpu-before.cpu, 0),
	}
}

// metered does something and says what it cost, until all is settled again.
func (s *site) metered(ctx context.Context, ownHub, ownMembers requests, do func() error) (*cost, error) {
	before, err := s.account(ctx)
	if err != nil {
		return nil, err
	}
	if err := do(); err != nil {
		return nil, err
	}
	if err := s.settled(ctx, s.opts.patience); err != nil {
		return nil, err
	}
	after, err := s.account(ctx)
	if err != nil {
		return nil, err
	}
	return after.since(before, ownHub, ownMembers), nil
}

// sumMetric reads a metric of a process, with all labels together.
func sumMetric(ctx context.Context, url, name string) (float64, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, fmt.Errorf("reading %s: %w", url, err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, fmt.Errorf("reading %s: %w", url, err)
	}
	defer resp.Body.Close()
	sum, found := 0.0, false
	lines := bufio.NewScanner(io.LimitReader(resp.Body, 64<<20))
	for lines.Scan() {
		rest, ok := strings.CutPrefix(lines.Text(), name)
		if !ok || rest == "" || rest[0] != ' ' && rest[0] != '{' {
			continue
		}
		value, err := strconv.ParseFloat(rest[strings.LastIndexByte(rest, ' ')+1:], 64)
		if err != nil {
			return 0, fmt.Errorf("reading %s: %w", name, err)
		}
		sum, found = sum+value, true
	}
	if !found {
		return 0, errors.Join(fmt.Errorf("%s has no %s", url, name), lines.Err())
	}
	return sum, nil
}

// memory follows how much memory the control plane's process takes.
type memory struct {
	url string

	mu   sync.Mutex
	peak float64
}

// follow looks once a second until the context ends. A process that is dead just
// now takes none.
func (m *memory) follow(ctx context.Context) {
	for m.url != "" {
		_, _ = m.now(ctx)
		if pause(ctx, time.Second) != nil {
			return
		}
	}
}

// now returns the resident memory, in bytes.
func (m *memory) now(ctx context.Context) (float64, error) {
	if m.url == "" {
		return 0, nil
	}
	rss, err := sumMetric(ctx, m.url, "process_resident_memory_bytes")
	m.mu.Lock()
	defer m.mu.Unlock()
	m.peak = max(m.peak, rss)
	return rss, err
}

// highest returns the most that was seen.
func (m *memory) highest() float64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.peak
}

// stored is how much of one kind an API server holds.
type stored struct {
	Objects int `json:"objects"`
	// Bytes as JSON, as which etcd has what is not built in.
	Bytes int `json:"bytes"`
}

// storedOnHub returns what the hub holds for the site and in execution namespaces.
func (s *site) storedOnHub(ctx context.Context) (map[string]stored, error) {
	out := map[string]stored{}
	for _, resource := range []schema.GroupVersionResource{wishes, bindings, works} {
		list, err := s.hub.custom.Resource(resource).List(ctx, listOptions)
		if err != nil {
			return nil, fmt.Errorf("listing %s: %w", resource.Resource, err)
		}
		var sum stored
		for i := range list.Items {
			data, err := json.Marshal(list.Items[i].Object)
			if err != nil {
				return nil, fmt.Errorf("encoding %s: %w", resource.Resource, err)
			}
			sum.Objects, sum.Bytes = sum.Objects+1, sum.Bytes+len(data)
		}
		out[resource.Resource] = sum
	}
	return out, nil
}
