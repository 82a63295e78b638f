// Package webhook serves admission: what a MultiClusterService is by default,
// and which MultiClusterServices and Clusters are refused.
//
//	rules/        what is right, and the sentences that say so; pure
//	handlers.go   from an admission request to a rule and back
//	certificate/  the server's certificate, and who believes it
//	server.go     flags, wiring
//
// Every replica serves, leader or not. A hub without webhooks works: what the
// schema cannot say is told by the controllers as a condition. The reasons for
// all of this are in docs/design/0003-admission.md.
package webhook
