// Package namespace makes the hub's namespaces exist in every member, so that a
// service can stand there.
//
// Watches: Namespaces and Clusters on the hub; the Works that it makes.
// Reads: nothing else.
// Writes: one Work for each namespace and member.
// Owns: those Works. The namespaces in members are made where they are missing,
// and from then on left alone: they hold what is not ours, so they are never
// changed or deleted.
// Fails: never blocks a namespace that is being deleted. Namespaces labelled
// namespace.karmada.io/skip-auto-propagation=true, default, and those of the
// system (kube-*, karmada-*) are passed over.
package namespace
