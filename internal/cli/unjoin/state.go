package unjoin

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"

	clusterv1alpha1 "github.com/namesake-io/namesake/api/cluster/v1alpha1"
	workv1alpha1 "github.com/namesake-io/namesake/api/work/v1alpha1"
)

var workListKind = workv1alpha1.GroupVersion.WithKind("WorkList")

// readiness is the Ready condition in a few words.
func readiness(cluster *clusterv1alpha1.Cluster) string {
	ready := meta.FindStatusCondition(cluster.Status.Conditions, clusterv1alpha1.ConditionReady)
	if ready == nil {
		return "no Ready condition"
	}
	return fmt.Sprintf("Ready %s (%s)", ready.Status, ready.Reason)
}
