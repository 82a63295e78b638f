package node

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"

	"github.com/virtual-kubelet/virtual-kubelet/node/api"
	"golang.org/x/sys/unix"
)

// openTerminal makes a terminal: what is written to one end is read at the other.
func openTerminal() (outer, inner *os.File, err error) {
	if outer, err = os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0); err != nil {
		return nil, nil, fmt.Errorf("opening a terminal: %w", err)
	}
	fd := int(outer.Fd())
	number, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0)
	}
	if err == nil {
		inner, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	}
	if err != nil {
		outer.Close()
		return nil, nil, fmt.Errorf("opening a terminal: %w", err)
	}
	return outer, inner, nil
}

// runInTerminal runs a command that has a terminal.
func runInTerminal(ctx context.Context, cmd *exec.Cmd, streams api.AttachIO) error {
	outer, inner, err := openTerminal()
	if err != nil {
		return err
	}
	defer outer.Close()
	cmd.Stdin, cmd.Stdout, cmd.Stderr = inner, inner, inner
	cmd.SysProcAttr.Setsid, cmd.SysProcAttr.Setctty = true, true
	go func() {
		for size := range streams.Resize() {
			// A size that is not taken is the next one's problem.
			_ = unix.IoctlSetWinsize(int(outer.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: size.Height, Col: size.Width})
		}
	}()
	if in := streams.Stdin(); in != nil {
		go func() { _, _ = io.Copy(outer, in) }() // ends with the terminal
	}
	copied := make(chan struct{})
	if out := streams.Stdout(); out != nil {
		go func() {
			defer close(copied)
			_, _ = io.Copy(out, outer) // reading fails when the other end is closed
		}()
	} else {
		close(copied)
	}
	err = runUntil(ctx, cmd)
	inner.Close()
	select {
	case <-copied:
	case <-time.After(outputDelay): // something else still has the terminal
	}
	return err
}
