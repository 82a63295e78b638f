package contain

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"
)

// join runs the program beside another process. A process namespace is entered
// by children only, so the program is one, and this process passes signals to it
// and its exit code on.
func join(s Spec) (int, error) {
	self, err := os.Executable() // asked before /proc is another one
	if err != nil {
		return NotFound, fmt.Errorf("finding this program: %w", err)
	}
	fd, err := unix.PidfdOpen(s.Join, 0)
	if err != nil {
		return NotFound, fmt.Errorf("finding the container's process: %w", err)
	}
	defer unix.Close(fd)
	// A thread that shares its root with others may not change mounts.
	if err := unix.Unshare(unix.CLONE_FS); err != nil {
		return NotFound, fmt.Errorf("leaving the shared root: %w", err)
	}
	all := unix.CLONE_NEWNET | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC | unix.CLONE_NEWPID | unix.CLONE_NEWNS
	if err := unix.Setns(fd, all); err != nil {
		return NotFound, fmt.Errorf("entering the container: %w", err)
	}
	// A child can't see its parent in another process namespace, so that the
	// standard library takes the parent for dead; the child has to follow its end
	// by its own means.
	text, err := json.Marshal(Spec{Plain: true, WorkingDir: s.WorkingDir, Argv: s.Argv, Env: s.Env})
	if err != nil {
		return NotFound, fmt.Errorf("encoding a container: %w", err)
	}
	cmd := exec.Command(self, Command, string(text))
	cmd.Env, cmd.Stdin, cmd.Stdout, cmd.Stderr = s.Env, os.Stdin, os.Stdout, os.Stderr
	if err := cmd.Start(); err != nil {
		return NotFound, fmt.Errorf("executing %s: %w", s.Argv[0], err)
	}
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT)
	go func() {
		for s := range signals {
			_ = cmd.Process.Signal(s) // it may just have ended
		}
	}()
	return ExitCode(cmd.Wait())
}

// ExitCode tells how a program ended, as a shell would: killed by a signal is
// 128 and the signal. The error is nil when the program ran.
func ExitCode(err error) (int, error) {
	var exit *exec.ExitError
	switch {
	case err == nil:
		return 0, nil
	case !errors.As(err, &exit):
		return NotFound, err
	}
	if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int(status.Signal()), nil
	}
	return exit.ExitCode(), nil
}
