// Package install is the command that puts Namesake's kinds on a hub.
//
// Writes: the CRDs of package charts, by server-side apply, and the namespace
// karmada-cluster; on request the webhook configurations, but for the caBundle,
// which is the controller-manager's. Fails: on a hub where Karmada serves the
// kinds already, and when the hub does not grant it.
package install
