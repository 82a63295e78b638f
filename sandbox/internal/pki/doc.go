// Package pki makes the keys and certificates of a fleet.
//
// Everything is ECDSA P-256 and PEM. Authorities live in memory for the length
// of one `up`: what they issue is all that the fleet will ever need, so their
// private keys are never written to disk.
package pki
