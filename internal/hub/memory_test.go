package hub

import (
	"runtime"
	"testing"
)

func TestMemoryPercent(t *testing.T) {
	const mb = 1 << 20
	for title, tc := range map[string]struct {
		live uint64
		want int
	}{
		"nothing known yet":                       {0, garbagePercent},
		"a small fleet may keep 32 MB of garbage": {16 * mb, 200},
		"in steps":              {15 * mb, 210},
		"a larger one its half": {64 * mb, 50},
		"and no less":           {640 * mb, 50},
	} {
		t.Run(title, func(t *testing.T) {
			if got := (memory{live: tc.live}).percent(); got != tc.want {
				t.Errorf("%d for 100, want %d", got, tc.want)
			}
		})
	}
}

func TestMemorySpare(t *testing.T) {
	const mb = 1 << 20
	before := memory{live: 80 * mb, held: 90 * mb, allocated: 500 * mb}
	for title, tc := range map[string]struct {
		now  memory
		want bool
	}{
		"much garbage and little to do": {memory{live: 80 * mb, held: 110 * mb, allocated: 530 * mb}, true},
		"much to do":                    {memory{live: 80 * mb, held: 110 * mb, allocated: 600 * mb}, false},
		"little garbage":                {memory{live: 80 * mb, held: 85 * mb, allocated: 530 * mb}, false},
	} {
		t.Run(title, func(t *testing.T) {
			if got := tc.now.spare(before); got != tc.want {
				t.Errorf("spare %v, want %v", got, tc.want)
			}
		})
	}
}

// The runtime must know what it is asked for, or a look would find nothing.
func TestLookAtMemory(t *testing.T) {
	runtime.GC()
	if m := lookAtMemory(); m.live == 0 || m.held == 0 || m.allocated < m.live {
		t.Errorf("a look at memory finds %+v", m)
	}
}
