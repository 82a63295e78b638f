package main

import (
	"fmt"
	"math"
	"strings"
)

// plot is a picture of lines. Both axes are logarithmic, unless said otherwise.
type plot struct {
	title, x, y string
	linearY     bool
	markers     bool
	lines       []line
}

// line is one of them.
type line struct {
	name   string
	dashed bool
	xs, ys []float64
}

// add adds a point. One without a place on a logarithmic axis is left out.
func (l *line) add(x, y float64) {
	if x > 0 && y > 0 {
		l.xs, l.ys = append(l.xs, x), append(l.ys, y)
	}
}

// The picture's size, and that of the part with lines.
const (
	width, height              = 720, 400
	left, right, top, bottom   = 60, 190, 40, 50
	plotWidth, plotHeight      = width - left - right, height - top - bottom
	firstLegend, legendSpacing = top + 10, 20
)

// colours that differ for those, too, who see fewer.
var colours = []string{"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9"}

// axis maps values to places.
type axis struct {
	low, high float64
	linear    bool
}

// newAxis returns an axis that has room for all values.
func newAxis(linear bool, values func(yield func(float64))) axis {
	a := axis{low: math.Inf(1), high: math.Inf(-1), linear: linear}
	values(func(v float64) { a.low, a.high = min(a.low, v), max(a.high, v) })
	switch {
	case math.IsInf(a.low, 0):
		a.low, a.high = 1, 10
	case linear:
		a.low = 0
	default:
		a.low, a.high = a.low/1.15, a.high*1.15
	}
	return a
}

// place of a value, from 0 to 1.
func (a axis) place(v float64) float64 {
	if a.linear {
		return (v - a.low) / (a.high - a.low)
	}
	return math.Log(v/a.low) / math.Log(a.high/a.low)
}

// ticks are values that are easy to read.
func (a axis) ticks() (out []float64) {
	if a.linear {
		for i := range 5 {
			out = append(out, a.low+(a.high-a.low)*float64(i)/4)
		}
		return out
	}
	for decade := math.Pow(10, math.Floor(math.Log10(a.low))); decade <= a.high; decade *= 10 {
		for _, step := range []float64{1, 2, 5} {
			if v := decade * step; v >= a.low && v <= a.high {
				out = append(out, v)
			}
		}
	}
	return out
}

// svg returns the picture.
func (p *plot) svg() string {
	xs := newAxis(false, func(yield func(float64)) {
		for _, l := range p.lines {
			for _, x := range l.xs {
				yield(x)
			}
		}
	})
	ys := newAxis(p.linearY, func(yield func(float64)) {
		for _, l := range p.lines {
			for _, y := range l.ys {
				yield(y)
			}
		}
	})
	px := func(x float64) float64 { return left + plotWidth*xs.place(x) }
	py := func(y float64) float64 { return top + plotHeight*(1-ys.place(y)) }

	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="12">`+"\n", width, height)
	fmt.Fprintf(&b, `<rect width="%d" height="%d" fill="white"/>`+"\n", width, height)
	fmt.Fprintf(&b, `<text x="%d" y="22" font-size="14">%s</text>`+"\n", left, p.title)
	for _, x := range xs.ticks() {
		fmt.Fprintf(&b, `<path d="M%.1f %dV%d" stroke="#ddd"/><text x="%.1f" y="%d" text-anchor="middle">%g</text>`+"\n",
			px(x), top, top+plotHeight, px(x), top+plotHeight+18, x)
	}
	for _, y := range ys.ticks() {
		fmt.Fprintf(&b, `<path d="M%d %.1fH%d" stroke="#ddd"/><text x="%d" y="%.1f" text-anchor="end">%g</text>`+"\n",
			left, py(y), left+plotWidth, left-6, py(y)+4, y)
	}
	fmt.Fprintf(&b, `<text x="%d" y="%d" text-anchor="middle">%s</text>`+"\n", left+plotWidth/2, height-12, p.x)
	fmt.Fprintf(&b, `<text x="%d" y="%d" text-anchor="end">%s</text>`+"\n", left-6, top-8, p.y)
	for i, l := range p.lines {
		colour, dash := colours[i/2%len(colours)], ""
		if l.dashed {
			dash = ` stroke-dasharray="5 4"`
		}
		var path strings.Builder
		for k := range l.xs {
			fmt.Fprintf(&path, "%c%.1f %.1f", "ML"[min(k, 1)], px(l.xs[k]), py(l.ys[k]))
			if p.markers {
				fmt.Fprintf(&b, `<circle cx="%.1f" cy="%.1f" r="3" fill="%s"/>`+"\n", px(l.xs[k]), py(l.ys[k]), colour)
			}
		}
		y := firstLegend + legendSpacing*i
		fmt.Fprintf(&b, `<path d="%s" fill="none" stroke="%s" stroke-width="2"%s/>`+"\n", &path, colour, dash)
		fmt.Fprintf(&b, `<path d="M%d %dh24" stroke="%s" stroke-width="2"%s/><text x="%d" y="%d">%s</text>`+"\n",
			left+plotWidth+14, y, colour, dash, left+plotWidth+44, y+4, l.name)
	}
	b.WriteString("</svg>\n")
	return b.String()
}
