package discovery

import (
	"slices"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	networkingv1alpha1 "github.com/namesake-io/namesake/api/networking/v1alpha1"
)

// UnreachableWish is what is done with endpoints of a service's providers that
// cannot be reached: as the MultiClusterService says, or else as fallback does.
func UnreachableWish(mcs *networkingv1alpha1.MultiClusterService, fallback networkingv1alpha1.UnreachableProviders) networkingv1alpha1.UnreachableProviders {
	wish := fallback
	if mcs.Spec.UnreachableProviders != nil {
		wish = *mcs.Spec.UnreachableProviders
	}
	if wish.Policy == "" {
		wish.Policy = networkingv1alpha1.UnreachableRetain
	}
	if wish.GracePeriod == nil {
		wish.GracePeriod = &metav1.Duration{}
	}
	return wish
}

// applyUnreachablePolicy acts on the slices of providers that have been
// unreachable for longer than the grace period, where the policy says so. An
// unreachable control plane says nothing about pods, so the default is to keep
// them; and when most clusters of the hub, providers or not, are unreachable at
// once, the fault is likely the hub's own, so nothing is taken from anybody.
func (p *Plan) applyUnreachablePolicy(s Snapshot) {
	wish := UnreachableWish(s.MCS, s.Unreachable)
	p.unreachable = wish
	if wish.Policy == networkingv1alpha1.UnreachableRetain {
		return
	}
	var overdue []ClusterName
	for _, name := range p.Selection.Providers {
		since := p.providers[name].UnreachableSince
		if since.IsZero() {
			continue
		}
		if left := since.Add(wish.GracePeriod.Duration).Sub(s.Now); left > 0 {
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
