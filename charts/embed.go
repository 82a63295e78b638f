// Package charts holds what is installed on a hub, as files of the Helm chart,
// and gives it to programs.
package charts

import "embed"

// CRDs are the manifests of the kinds in api/, one file each, below
// namesake/crds.
//
//go:embed namesake/crds/*.yaml
var CRDs embed.FS

// Webhooks are the webhook configurations, in namesake/webhooks/webhooks.yaml, as
// they are for a controller-manager in the cluster.
//
//go:embed namesake/webhooks/webhooks.yaml
var Webhooks []byte
