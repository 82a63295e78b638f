package discovery

import (
	"slices"
	"time"

	networkingv1alpha1 "github.com/namesake-io/namesake/api/networking/v1alpha1"
)

// applyUnreachablePolicy acts on the slices of providers that have been
// unreachable for longer than the grace period, where the policy says so. An
// unreachable control plane says nothing about pods, so the default is to keep
// them; and when most providers are unreachable at once the fault is likely
// between them and the hub, so nothing is taken from anybody.
func (p *Plan) applyUnreachablePolicy(s Snapshot) {
	wish := s.MCS.Spec.UnreachableProviders
	if wish == nil || wish.Policy == "" || wish.Policy == networkingv1alpha1.UnreachableRetain {
		return
	}
	var grace time.Duration
	if wish.GracePeriod != nil {
		grace = wish.GracePeriod.Duration
	}

	var unreachable int
	var overdue []ClusterName
	for _, name := range p.Selection.Providers {
		since := p.providers[name].UnreachableSince
		if since.IsZero() {
			continue
		}
		unreachable++
		if left := since.Add(grace).Sub(s.Now); left > 0 {
			if p.RecheckAfter == 0 || left < p.RecheckAfter {
				p.RecheckAfter = left
			}
			continue
		}
		overdue = append(overdue, name)
	}
	if unreachable*2 > len(p.Selection.Providers) {
		p.Retained = overdue
		return
	}

	switch wish.Policy {
	case networkingv1alpha1.UnreachableWithdraw:
		for _, name := range overdue {
			state := p.providers[name]
			// The policy is the intent that removal needs.
			state.Authoritative = true
			p.providers[name] = state
		}
		p.Slices = slices.DeleteFunc(p.Slices, func(d DispatchedSlice) bool {
			return slices.Contains(overdue, d.Provider)
		})
	case networkingv1alpha1.UnreachableMarkNotReady:
		notReady := false
		for _, d := range p.Slices {
			if !slices.Contains(overdue, d.Provider) {
				continue
			}
			for i := range d.Slice.Endpoints {
				d.Slice.Endpoints[i].Conditions.Ready = &notReady
			}
		}
	case networkingv1alpha1.UnreachableRetain:
	}
}
