// Package state keeps what is known about a fleet in DIR/state.json, and the
// lock that lets one command at a time change it.
//
// The record is written before the first process starts and again after each
// one, always by rename, so that a command killed at any moment leaves a record
// that can be read and cleaned up from.
package state
