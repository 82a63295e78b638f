// Package execution puts the objects of Works into their members, keeps them
// there as the Works have them, and takes them out again when the Works go.
//
// Watches: Works on the hub; in members, what Works have put there.
// Reads: the Work, and the object as it stands in the member.
// Writes: objects in members; the status, and on deletion the finalizer, of Works.
// Owns: objects that it created or took over, marked by the Work's name and by
// field manager; the status of Works.
// Fails: an object that stands there and is not ours is adopted, left alone or
// taken over, as the manifest says; a member that cannot be reached is waited
// for. Collected (suspended) Works are never touched.
package execution
