package discovery

import (
	discoveryv1 "k8s.io/api/discovery/v1"

	networkingv1alpha1 "github.com/namesake-io/namesake/api/networking/v1alpha1"
)

// prefersLocal says whether a consumer has backends of its own to use first.
func (p *Plan) prefersLocal(consumer ClusterName) bool {
	return p.options.mcs != nil && p.options.mcs.Spec.DiscoveryStrategy == networkingv1alpha1.DiscoveryLocalFirst &&
		p.providers[consumer].Ready > 0
}

// asSecondChoice returns a slice whose ready endpoints are used only where no
// other is ready: as serving but terminating. kube-proxy falls back to such
// endpoints by itself, so that the last local backend can go while the hub is
// away, and callers still reach the remote ones.
func asSecondChoice(slice *discoveryv1.EndpointSlice) *discoveryv1.EndpointSlice {
	out := slice.DeepCopy()
	yes, no := true, false
	for i := range out.Endpoints {
		if ready(&out.Endpoints[i]) {
			out.Endpoints[i].Conditions = discoveryv1.EndpointConditions{Ready: &no, Serving: &yes, Terminating: &yes}
		}
	}
	return out
}
