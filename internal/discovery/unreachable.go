package discovery

import (
	"slices"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"

	networkingv1alpha1 "github.com/namesake-io/namesake/api/networking/v1alpha1"
)

// applyUnreachablePolicy acts on the slices of providers that have been
// unreachable for longer than the grace period, where the policy says so. An
// unreachable control plane says nothing about pods, so the default is to keep
// them; and when most clusters of the hub, providers or not, are unreachable at
// once, the fault is likely the hub's own, so nothing is taken from anybody.
func (p *Plan) applyUnreachablePolicy(s Snapshot) {
	wish := s.MCS.Spec.UnreachableProviders
	if wish == nil || wish.Policy == "" || wish.Policy == networkingv1alpha1.UnreachableRetain {
		return
	}
	var grace time.Duration
	if wish.GracePeriod != nil {
		grace = wish.GracePeriod.Duration
	}

	var overdue []ClusterName
	for _, name := range p.Selection.Providers {
		since := p.providers[name].UnreachableSince
		if since.IsZero() {
			continue
		}
		if left := since.Add(grace).Sub(s.Now); left > 0 {
			if p.RecheckAfter == 0 || left < p.RecheckAfter {
				p.RecheckAfter = left
			}
			continue
		}
		overdue = append(overdue, name)
	}
	if mostUnreachable(s.Clusters) {
		p.Retained = overdue
		return
	}

	for _, name := range overdue {
		state := p.providers[name]
		state.withdrawn = wish.Policy == networkingv1alpha1.UnreachableWithdraw
		state.notReady = wish.Policy == networkingv1alpha1.UnreachableMarkNotReady
		p.providers[name] = state
	}
	p.Slices = slices.DeleteFunc(p.Slices, func(d DispatchedSlice) bool { return p.providers[d.Provider].withdrawn })
	for _, d := range p.Slices {
		if p.providers[d.Provider].notReady {
			markNotReady(d.Slice)
		}
	}
}

// mostUnreachable says whether more than half of the joined clusters do not answer.
func mostUnreachable(clusters []Cluster) bool {
	joined, unreachable := 0, 0
	for i := range clusters {
		if clusters[i].Leaving {
			continue
		}
		joined++
		if !clusters[i].UnreachableSince.IsZero() {
			unreachable++
		}
	}
	return unreachable*2 > joined
}

// markNotReady keeps the endpoints known, but out of use while others are ready.
func markNotReady(slice *discoveryv1.EndpointSlice) {
	for i := range slice.Endpoints {
		slice.Endpoints[i].Conditions.Ready = new(bool)
	}
}
