package model

import (
	"slices"
	"time"
)

// Subject is what an outage concerns: the hub, or a member or service by name.
type Subject string

// Hub is the hub's API server and controller-manager together.
const Hub Subject = "hub"

// outage is a time through which work on a subject goes at a lesser pace.
type outage struct {
	from, to time.Time // to is zero while it lasts
	pace     float64   // 0: not at all
}

// clock counts undisturbed time.
type clock struct{ outages map[Subject][]*outage }

// begin records an outage and returns what records its end.
func (c *clock) begin(subject Subject, pace float64, at time.Time) (end func(time.Time)) {
	o := &outage{from: at, pace: pace}
	if c.outages == nil {
		c.outages = map[Subject][]*outage{}
	}
	c.outages[subject] = append(c.outages[subject], o)
	return func(at time.Time) { o.to = at }
}

// before returns the point in time from which on there has been so much
// undisturbed time for all of the subjects.
func (c *clock) before(now time.Time, enough time.Duration, subjects ...Subject) time.Time {
	var all []*outage
	edges := []time.Time{}
	for _, s := range subjects {
		for _, o := range c.outages[s] {
			all = append(all, o)
			for _, edge := range []time.Time{o.from, o.to} {
				if !edge.IsZero() && edge.Before(now) {
					edges = append(edges, edge)
				}
			}
		}
	}
	slices.SortFunc(edges, func(a, b time.Time) int { return b.Compare(a) })

	at, left := now, enough
	for _, edge := range edges {
		pace := paceIn(all, edge, at)
		gained := time.Duration(pace * float64(at.Sub(edge)))
		if gained >= left {
			return at.Add(-time.Duration(float64(left) / pace))
		}
		at, left = edge, left-gained
	}
	return at.Add(-left)
}

// paceIn is the least pace of the outages that cover a time without edges in it.
func paceIn(all []*outage, from, to time.Time) float64 {
	pace := 1.0
	for _, o := range all {
		if !o.from.After(from) && (o.to.IsZero() || !o.to.Before(to)) {
			pace = min(pace, o.pace)
		}
	}
	return pace
}
