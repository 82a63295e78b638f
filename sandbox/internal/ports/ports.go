package ports

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

const (
	lowest = 10000
	// fallbackTop bounds the choice where the kernel's range can't be read or
	// leaves no room below it.
	fallbackTop = 32768
	minRoom     = 5000
	// attempts bounds the search for one free port.
	attempts = 1000
)

// Held are ports that nobody else can listen on until they are released.
type Held struct {
	// Numbers has the port of each name.
	Numbers   map[string]int
	listeners map[int]net.Listener
}

// Choose holds a free port for each name. With a base other than 0, the ports
// are base, base+1, … in the order of names, and each must be free.
func Choose(names []string, base int) (*Held, error) {
	h := &Held{Numbers: map[string]int{}, listeners: map[int]net.Listener{}}
	top := top()
	for i, name := range names {
		var err error
		if base != 0 {
			err = h.take(name, base+i)
		} else {
			err = h.search(name, top)
		}
		if err != nil {
			h.ReleaseAll()
			return nil, err
		}
	}
	return h, nil
}

// Release lets go of the ports, so that the process they are for can have them.
func (h *Held) Release(ports []int) {
	for _, port := range ports {
		if l, ok := h.listeners[port]; ok {
			l.Close()
			delete(h.listeners, port)
		}
	}
}

// ReleaseAll lets go of every port.
func (h *Held) ReleaseAll() {
	for port := range h.listeners {
		h.Release([]int{port})
	}
}

func (h *Held) take(name string, port int) error {
	if port < 1 || port > 65535 {
		return fmt.Errorf("port %d (for %s) is not a port: choose a --port-base between 1024 and %d", port, name, 65535-1000)
	}
	l, err := listen(port)
	if errors.Is(err, unix.EADDRINUSE) {
		return fmt.Errorf("port %d (for %s) is taken by another program: choose another --port-base, or leave it out and free ports are found", port, name)
	}
	if err != nil {
		return fmt.Errorf("reserving port %d for %s: %w", port, name, err)
	}
	h.Numbers[name], h.listeners[port] = port, l
	return nil
}

func (h *Held) search(name string, top int) error {
	for range attempts {
		port := lowest + rand.IntN(top-lowest)
		l, err := listen(port)
		if errors.Is(err, unix.EADDRINUSE) {
			continue
		}
		if err != nil {
			return fmt.Errorf("reserving a port for %s: %w", name, err)
		}
		h.Numbers[name], h.listeners[port] = port, l
		return nil
	}
	return fmt.Errorf("no free port for %s between %d and %d", name, lowest, top)
}

// settle is how long a port may take to become free after its release. A
// process that is being started meanwhile has a copy of every descriptor, our
// listener among them, until it has executed its program.
const settle = time.Second

// Check tells whether the ports can be listened on.
func Check(ctx context.Context, ports []int) error {
	ctx, cancel := context.WithTimeout(ctx, settle)
	defer cancel()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for _, port := range ports {
		for {
			l, err := listen(port)
			if err == nil {
				l.Close()
				break
			}
			select {
			case <-ctx.Done():
				return &TakenError{Port: port, cause: err}
			case <-tick.C:
			}
		}
	}
	return nil
}

// TakenError says that a port can't be listened on.
type TakenError struct {
	Port  int
	cause error
}

func (e *TakenError) Error() string { return fmt.Sprintf("port %d is taken: %v", e.Port, e.cause) }
func (e *TakenError) Unwrap() error { return e.cause }

func listen(port int) (net.Listener, error) {
	return net.Listen("tcp4", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
}

// top is the first port that the kernel may give to an outgoing connection.
func top() int {
	data, err := os.ReadFile("/proc/sys/net/ipv4/ip_local_port_range")
	if err != nil {
		return fallbackTop
	}
	return parseTop(string(data))
}

func parseTop(line string) int {
	fields := strings.Fields(line)
	if len(fields) == 0 {
		return fallbackTop
	}
	low, err := strconv.Atoi(fields[0])
	if err != nil || low < lowest+minRoom {
		return fallbackTop
	}
	return low
}
