package join

import (
	"fmt"

	clusterv1alpha1 "github.com/namesake-io/namesake/api/cluster/v1alpha1"
	"github.com/namesake-io/namesake/internal/cli/console"
	"github.com/namesake-io/namesake/internal/cli/membership"
)

// findings are what stands on both sides before anything is written.
type findings struct {
	hubID, hubURL string
	memberID      string
	// marker in the member; nil without one.
	marker *membership.Marker
	// clusters of the hub.
	clusters []clusterv1alpha1.Cluster
}

// named returns the hub's Cluster of that name, or nil.
func (f *findings) named(name string) *clusterv1alpha1.Cluster {
	for i := range f.clusters {
		if f.clusters[i].Name == name {
			return &f.clusters[i]
		}
	}
	return nil
}

// conflict returns why this join can't be, with the way out, or nil.
func (f *findings) conflict(o Options, program string) error {
	for i := range f.clusters {
		other := &f.clusters[i]
		if other.Name != o.Name && other.Spec.ID != "" && other.Spec.ID == f.memberID {
			return console.WithHint(
				fmt.Errorf("this cluster has already joined the hub %s as %q", f.hubURL, other.Name),
				"it can have one name only: keep that one, or run first: %s unjoin %s", program, other.Name)
		}
	}
	if f.marker != nil && f.marker.HubID != f.hubID && !o.Force {
		return console.WithHint(
			fmt.Errorf("this cluster has already joined another hub, %s, as %q", f.marker.HubURL, f.marker.Cluster),
			"run there: %s unjoin %s --cluster-kubeconfig %s; or, if that hub is gone, join with --force",
			program, f.marker.Cluster, o.Kubeconfig)
	}
	existing := f.named(o.Name)
	if existing == nil {
		return nil
	}
	return f.conflictWith(existing, o, program)
}

// conflictWith: the name is there already. It may be the same cluster.
func (f *findings) conflictWith(existing *clusterv1alpha1.Cluster, o Options, program string) error {
	switch {
	case existing.DeletionTimestamp != nil:
		return console.WithHint(fmt.Errorf("the cluster %q is being unjoined from the hub", o.Name),
			"wait until `%s get clusters` no longer shows it, then run this again", program)
	case existing.Spec.ID != "" && existing.Spec.ID != f.memberID:
		return console.WithHint(
			fmt.Errorf("the name %q is taken on the hub by another cluster (%s, id %s)",
				o.Name, existing.Spec.APIEndpoint, existing.Spec.ID),
			"choose another name, or run first: %s unjoin %s", program, o.Name)
	case existing.Spec.SyncMode == clusterv1alpha1.Pull:
		return console.WithHint(fmt.Errorf("the cluster %q has joined in Pull mode, where the hub needs no credential", o.Name),
			"to change the mode, run first: %s unjoin %s", program, o.Name)
	case existing.Spec.ImpersonatorSecretRef != nil:
		return console.WithHint(
			fmt.Errorf("the cluster %q was joined by Karmada, whose credential this would replace by one with fewer rights", o.Name),
			"Namesake uses that credential as it is: there is nothing to do")
	case existing.Spec.ID == "" && existing.Spec.APIEndpoint != "" && !o.Force:
		return console.WithHint(
			fmt.Errorf("the name %q is taken on the hub by a Cluster without an id (%s), which may be another cluster",
				o.Name, existing.Spec.APIEndpoint),
			"if it is this cluster, join with --force; else choose another name")
	}
	return nil
}
