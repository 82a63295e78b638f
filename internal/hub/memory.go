package hub

import (
	"context"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

const (
	// garbagePercent is how much garbage may pile up beside what is in use, and
	// leastGarbage how many bytes of it always may. What is in use is what has been
	// seen of members and hub, and lives long: twice of it is more than most who run
	// a hub want to reserve, and less than this costs a burst a third more CPU.
	garbagePercent = 50
	leastGarbage   = 32 << 20
	// memoryLook is how often memory is looked at.
	memoryLook = 10 * time.Second
	// quietBytes is how much a process allocates between two looks that has little
	// to do. Of garbage it keeps no more than quietPercent.
	quietBytes   = 40 << 20
	quietPercent = 10
)

// memory is what a look at it finds, in bytes.
type memory struct {
	// live was in use when garbage was collected last.
	live uint64
	// held is what has been allocated and not been freed, or freed and not given back.
	held uint64
	// allocated is all that was ever allocated.
	allocated uint64
}

// lookAtMemory reads what the runtime says.
func lookAtMemory() memory {
	samples := []metrics.Sample{
		{Name: "/gc/heap/live:bytes"},
		{Name: "/gc/heap/allocs:bytes"},
		{Name: "/memory/classes/heap/objects:bytes"},
		{Name: "/memory/classes/heap/free:bytes"},
	}
	metrics.Read(samples)
	return memory{
		live: samples[0].Value.Uint64(), allocated: samples[1].Value.Uint64(),
		held: samples[2].Value.Uint64() + samples[3].Value.Uint64(),
	}
}

// tendMemory keeps memory within what is in use and a share of it until the context
// ends: collecting garbage seldom in a burst, and giving memory back after one.
func tendMemory(ctx context.Context) {
	ticker := time.NewTicker(memoryLook)
	defer ticker.Stop()
	debug.SetGCPercent(garbagePercent)
	percent, before := garbagePercent, lookAtMemory()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		now := lookAtMemory()
		if wanted := now.percent(); wanted != percent {
			debug.SetGCPercent(wanted)
			percent = wanted
		}
		if now.spare(before) {
			debug.FreeOSMemory()
		}
		before = now
	}
}

// percent returns how much garbage may pile up for each 100 of what is in use, in
// steps, so that it seldom changes.
func (m memory) percent() int {
	const step = 10
	if m.live == 0 {
		return garbagePercent
	}
	return max(garbagePercent, int(100*leastGarbage/m.live)/step*step)
}

// spare says that memory is worth giving back: little has happened since a look
// before, and much of what is held is not in use.
func (m memory) spare(before memory) bool {
	return m.allocated-before.allocated < quietBytes && m.held > m.live+m.live*quietPercent/100
}
