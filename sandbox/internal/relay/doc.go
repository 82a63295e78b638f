// Package relay is the path from the hub to each member: one TCP listener per
// member, which can be cut or slowed without touching the member's server.
//
//	hub ──▶ listener ──▶ [ delay line ] ─▶ [ gate ] ──▶ API server
//	    ◀──────────── [ gate ] ◀─ [ delay line ] ◀─────
//
// A cut path is a black hole, as when a network partitions: connections that
// exist hang and so do new ones, nothing is refused or reset, not even an end of
// stream gets through. When the path heals, what was on its way arrives. A slow
// path delays each direction by half of the given round trip, at full
// bandwidth, and a new connection by one whole round trip more.
//
// The wanted conditions stand in a file, which the relay reads when it starts
// and again when it is told to over its control socket, so a relay that was
// restarted is as cut or slow as it was before.
package relay
