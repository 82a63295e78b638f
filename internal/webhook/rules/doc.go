// Package rules says what a MultiClusterService and a Cluster may be, and what a
// MultiClusterService is by default. Pure: no client, clock or context.
//
// Most rules stand in the CRDs too, so that they hold without a webhook; which
// rule lives where is listed in docs/design/0003-admission.md. An error names
// the field, the value and the way out; a warning is for what works, but
// probably not as meant.
package rules
