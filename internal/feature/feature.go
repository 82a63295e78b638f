// Package feature names the feature gates.
package feature

import (
	"fmt"

	"k8s.io/component-base/featuregate"
	logsapi "k8s.io/component-base/logs/api/v1"
)

// MultiClusterService switches the sharing of services. Off: no new object is
// acted on; what stands in members stays.
const MultiClusterService featuregate.Feature = "MultiClusterService"

// NewGate returns a gate with the features of this version at their defaults.
func NewGate() (featuregate.MutableFeatureGate, error) {
	gate := featuregate.NewFeatureGate()
	err := gate.Add(map[featuregate.Feature]featuregate.FeatureSpec{
		MultiClusterService: {Default: true, PreRelease: featuregate.Beta},
	})
	if err != nil {
		return nil, fmt.Errorf("registering feature gates: %w", err)
	}
	if err := logsapi.AddFeatureGates(gate); err != nil {
		return nil, fmt.Errorf("registering the feature gates of logs: %w", err)
	}
	return gate, nil
}
