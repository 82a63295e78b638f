// Package charts holds what is installed on a hub, as files of the Helm chart,
// and gives it to programs.
package charts

import "embed"

// CRDs are the manifests of the kinds in api/, one file each, below
// namesake/crds.
//
//go:embed namesake/crds/*.yaml
var CRDs embed.FS
