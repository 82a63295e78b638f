// Package model says which endpoints may, must and must not stand in each
// consumer, from what was done to the fleet and when. It is pure: it is told of
// deeds and outages with their times, and judges what is seen.
//
// A hub learns of a deed some time after it, and of several in an order of its
// own. So a fact keeps the values that it had, and for a bounded time after a
// change each of them is right:
//
//	wish, members ──▶ does consumer C get endpoints of provider P?   ─┐
//	P's slices    ──▶ is the endpoint ready, not ready, absent?      ─┼─▶ what C may hold now
//	wish          ──▶ which ports are exposed?                       ─┘
//
// The bound is one of undisturbed time: a second counts only while the hub and
// whoever else it takes (the consumer; for what is new, the provider too) can be
// reached, and less while the path is slow. So an outage, however long, excuses no
// withdrawal: the value before it is still the only one that is right.
package model
