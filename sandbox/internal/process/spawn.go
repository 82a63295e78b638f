package process

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"
)

// Marker is the environment variable that carries the fleet's directory.
const Marker = "NAMESAKE_SANDBOX_DIR"

// Child is a process that this program started.
type Child struct {
	ID ID
	// Exited is closed when the child has ended; Err then says how.
	Exited <-chan struct{}
	err    error
}

// Err returns how the child ended, nil for exit code 0. Read it after Exited.
func (c *Child) Err() error { return c.err }

// Spawn starts argv in a session of its own, so that neither Ctrl-C nor a
// closing terminal reaches it, with its output appended to the log file.
func Spawn(dir, log string, argv []string) (*Child, error) {
	out, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening log: %w", err)
	}
	defer out.Close() // the child has its own copy
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Env = Environ(dir)
	cmd.Stdout, cmd.Stderr = out, out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting process: %w", err)
	}
	id, err := Identify(cmd.Process.Pid)
	if err != nil {
		return nil, err // not reaped yet, so /proc must have it
	}
	exited := make(chan struct{})
	child := &Child{ID: id, Exited: exited}
	go func() {
		child.err = cmd.Wait()
		close(exited)
	}()
	return child, nil
}

// Environ is the environment of the fleet's processes: ours, marked.
func Environ(dir string) []string {
	return append(os.Environ(), Marker+"="+dir)
}
