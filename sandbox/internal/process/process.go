package process

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// State is what a process is doing, as far as a fleet cares.
type State string

const (
	// Running means that the process exists and is not stopped.
	Running State = "running"
	// Stopped means that SIGSTOP holds the process.
	Stopped State = "stopped"
	// Dead means that the process has ended, reaped by its parent or not.
	Dead State = "dead"
)

// pollInterval is how often a wait looks whether its context has ended.
const pollInterval = 100 * time.Millisecond

// ID names one process for ever: pids are reused, pid and start time are not.
type ID struct {
	PID int `json:"pid"`
	// Start is the start time in clock ticks since boot (field 22 of
	// /proc/PID/stat).
	Start uint64 `json:"start"`
}

// Identify returns the ID of the process that has the pid now.
func Identify(pid int) (ID, error) {
	_, start, err := readStat(pid)
	if err != nil {
		return ID{}, err
	}
	return ID{PID: pid, Start: start}, nil
}

// State tells what the process is doing now.
func (id ID) State() State {
	if id.PID <= 0 {
		return Dead
	}
	letter, start, err := readStat(id.PID)
	if err != nil || start != id.Start {
		return Dead
	}
	switch letter {
	case "Z", "X", "x":
		return Dead
	case "T", "t":
		return Stopped
	default:
		return Running
	}
}

// Signal sends the signal to exactly this process. A dead process is no error.
func (id ID) Signal(signal unix.Signal) error {
	fd, err := id.open()
	if err != nil || fd < 0 {
		return err
	}
	defer unix.Close(fd)
	if err := unix.PidfdSendSignal(fd, signal, nil, 0); err != nil && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("sending %s to process %d: %w", unix.SignalName(signal), id.PID, err)
	}
	return nil
}

// Wait returns when the process has ended, or with the context's error.
func (id ID) Wait(ctx context.Context) error {
	fd, err := id.open()
	if err != nil || fd < 0 {
		return err
	}
	defer unix.Close(fd)
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		// A pidfd becomes readable when its process ends, child of ours or not.
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, int(pollInterval.Milliseconds()))
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return fmt.Errorf("waiting for process %d: %w", id.PID, err)
		case n > 0:
			return nil
		}
	}
}

// End asks the process to end, and kills it when it has not done so within the
// grace period. A stopped process is continued, since it could not hear.
func (id ID) End(ctx context.Context, grace time.Duration) error {
	if grace > 0 {
		if err := errors.Join(id.Signal(unix.SIGTERM), id.Signal(unix.SIGCONT)); err != nil {
			return err
		}
		graceful, cancel := context.WithTimeout(ctx, grace)
		defer cancel()
		if err := id.Wait(graceful); err == nil {
			return nil
		}
	}
	if err := id.Signal(unix.SIGKILL); err != nil {
		return err
	}
	return id.Wait(ctx)
}

// open returns a file descriptor that stands for the process, or -1 when the
// process is gone. The start time is compared after opening: from then on the
// descriptor can't come to mean another process.
func (id ID) open() (int, error) {
	if id.PID <= 0 {
		return -1, nil
	}
	fd, err := unix.PidfdOpen(id.PID, 0)
	if errors.Is(err, unix.ESRCH) {
		return -1, nil
	}
	if err != nil {
		return -1, fmt.Errorf("opening process %d: %w", id.PID, err)
	}
	if id.State() == Dead {
		unix.Close(fd)
		return -1, nil
	}
	return fd, nil
}

// readStat returns the state letter and the start time of a process.
func readStat(pid int) (string, uint64, error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return "", 0, fmt.Errorf("reading the state of process %d: %w", pid, err)
	}
	return parseStat(string(data))
}

// parseStat reads a line of /proc/PID/stat. The program's name stands in
// parentheses and may hold anything, so fields are counted from the last one.
func parseStat(line string) (string, uint64, error) {
	end := strings.LastIndexByte(line, ')')
	if end < 0 {
		return "", 0, fmt.Errorf("parsing process state %q: no program name", line)
	}
	fields := strings.Fields(line[end+1:]) // the first one is field 3, the state
	const startField = 22 - 3
	if len(fields) <= startField {
		return "", 0, fmt.Errorf("parsing process state %q: %d fields", line, len(fields))
	}
	start, err := strconv.ParseUint(fields[startField], 10, 64)
	if err != nil {
		return "", 0, fmt.Errorf("parsing process start time: %w", err)
	}
	return fields[0], start, nil
}
