package certificate

import (
	"crypto/x509"
	"net/url"
	"slices"
	"time"
)

// maxWait bounds the time until it is looked again: a machine that sleeps stops
// its timers, and not the life of certificates.
const maxWait = 12 * time.Hour

// authorityStale says that an authority has to be replaced now.
func authorityStale(a *authority, now time.Time) bool {
	return a == nil || !now.Before(renewal(a.cert))
}

// certificateStale says whether a certificate has to be issued. A new authority
// does not sign before it has had time to be believed, unless the old certificate
// is not believed any more.
func (k *Keeper) certificateStale(a *authority, now time.Time, hosts []string) bool {
	have := k.current.Load()
	switch {
	case have == nil || !now.Before(renewal(have.Leaf)) || !covers(have.Leaf, hosts):
		return true
	case signed(a.cert, have):
		return false
	}
	stillTrusted := slices.ContainsFunc(a.trusted, func(c *x509.Certificate) bool { return signed(c, have) })
	return !stillTrusted || !now.Before(k.signsFrom(a))
}

// signsFrom is when certificates of older authorities are replaced.
func (k *Keeper) signsFrom(a *authority) time.Time {
	return a.cert.NotBefore.Add(maxSkew).Add(k.opts.Overlap)
}

// wait is how long to do nothing, as long as nothing changes.
func (k *Keeper) wait(a *authority, now time.Time) time.Duration {
	next := now.Add(maxWait)
	have := k.current.Load()
	times := []time.Time{renewal(a.cert), renewal(have.Leaf)}
	if !signed(a.cert, have) {
		times = append(times, k.signsFrom(a))
	}
	for _, t := range times {
		if t.Before(next) {
			next = t
		}
	}
	return max(next.Sub(now), time.Millisecond)
}

// covers says that a certificate is good for every host.
func covers(c *x509.Certificate, hosts []string) bool {
	return !slices.ContainsFunc(hosts, func(host string) bool { return c.VerifyHostname(host) != nil })
}

// hostsOf returns the hosts that webhooks are called by, sorted, each once.
func hostsOf(configs []configuration) []string {
	var out []string
	for _, c := range configs {
		for _, h := range c.webhooks {
			switch {
			case h.client.URL != nil:
				if u, err := url.Parse(*h.client.URL); err == nil && u.Hostname() != "" {
					out = append(out, u.Hostname())
				}
			case h.client.Service != nil:
				out = append(out, h.client.Service.Name+"."+h.client.Service.Namespace+".svc")
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}
