// Package certificate keeps the webhook server's certificate valid and believed,
// without a file and without a restart.
//
//	Secret karmada-cluster/namesake-webhook-ca      shared by all replicas
//	  tls.crt, tls.key   the authority that signs
//	  ca.crt             all authorities that are believed, the signing one first
//	        │
//	        ├─▶ webhooks[].clientConfig.caBundle of both configurations
//	        └─▶ one serving certificate for each process, in memory only
//
// Each process signs a certificate for the hosts under which the configurations
// call it. A certificate is renewed when two thirds of its life are over, and so
// is the authority. A new authority is believed before it signs: the bundle has
// both for a while, and the old one's certificates stay in use as long.
//
// Watches: the Secret, and the configurations named namesake.
// Reads: the same, from the cache.
// Writes: the Secret; caBundle in the configurations.
// Owns: both of these, in every replica: the writes are the same bytes, and are
// made under the resourceVersion that was read.
// Fails: when the namespace of the Secret is missing, or the hub refuses the
// writes. It is tried again; a certificate that was issued stays in use.
package certificate
