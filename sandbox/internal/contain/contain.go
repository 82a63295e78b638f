// Package contain starts a program as a container's would be: in the network of
// its pod, with its own resolver, hosts file, host name and, unless it joins
// another, its own processes. Files are the machine's.
//
// The work is done by a copy of this program that becomes the one to run, since
// a running Go program has threads that can't be moved together.
package contain

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/namesake-io/namesake/sandbox/internal/netns"
)

// Command is the word that makes the sandbox program a container's beginning.
const Command = "contain"

// NotFound is the exit code of a program that could not be started.
const NotFound = 127

// Spec is a program and its surroundings. Empty fields change nothing, but for
// the working directory, which is / then.
type Spec struct {
	Namespace  string   `json:"namespace,omitempty"` // network namespace
	Resolver   string   `json:"resolver,omitempty"`  // file for /etc/resolv.conf
	Hosts      string   `json:"hosts,omitempty"`     // file for /etc/hosts
	Hostname   string   `json:"hostname,omitempty"`
	Processes  bool     `json:"processes,omitempty"` // in a process namespace of its own
	WorkingDir string   `json:"workingDir,omitempty"`
	Argv       []string `json:"argv"`
	Env        []string `json:"env"`
	// Join is the process whose surroundings are entered, instead of all above.
	Join int `json:"join,omitempty"`
	// Plain leaves the surroundings as they are.
	Plain bool `json:"plain,omitempty"`
}

// Cmd returns the command that starts the program. The caller sets its input
// and output; it dies with the caller.
func Cmd(self string, s Spec) (*exec.Cmd, error) {
	text, err := json.Marshal(s)
	if err != nil {
		return nil, fmt.Errorf("encoding a container: %w", err)
	}
	cmd := exec.Command(self, Command, string(text))
	cmd.Env = s.Env // the mark of the fleet among them
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if s.Join != 0 {
		return cmd, nil
	}
	cmd.SysProcAttr.Cloneflags = syscall.CLONE_NEWNS | syscall.CLONE_NEWUTS | syscall.CLONE_NEWIPC
	if s.Processes {
		cmd.SysProcAttr.Cloneflags |= syscall.CLONE_NEWPID
	}
	return cmd, nil
}

// Run is the copy's work. It returns only if the program can't be started, or
// with its exit code after joining.
func Run(text string) (int, error) {
	runtime.LockOSThread()
	var s Spec
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		return NotFound, fmt.Errorf("decoding a container: %w", err)
	}
	switch {
	case s.Join != 0:
		return join(s)
	case s.Plain:
	default:
		if err := surround(s); err != nil {
			return NotFound, err
		}
	}
	path, err := find(s)
	if err != nil {
		return NotFound, err
	}
	// The thread that executes is the one that stays, and each has its own wish.
	if err := unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0); err != nil {
		return NotFound, fmt.Errorf("following the parent's end: %w", err)
	}
	return NotFound, fmt.Errorf("executing %s: %w", path, unix.Exec(path, s.Argv, s.Env))
}

func surround(s Spec) error {
	if s.Namespace != "" {
		if err := netns.Enter(s.Namespace); err != nil {
			return err
		}
	}
	// Without this, mounts would show on the machine.
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("making mounts private: %w", err)
	}
	for target, source := range map[string]string{"/etc/resolv.conf": s.Resolver, "/etc/hosts": s.Hosts} {
		if source == "" {
			continue
		}
		if err := unix.Mount(source, target, "", unix.MS_BIND, ""); err != nil {
			return fmt.Errorf("mounting %s: %w", target, err)
		}
	}
	if s.Processes {
		if err := unix.Mount("proc", "/proc", "proc", 0, ""); err != nil {
			return fmt.Errorf("mounting /proc: %w", err)
		}
	}
	if s.Hostname != "" {
		if err := unix.Sethostname([]byte(s.Hostname)); err != nil {
			return fmt.Errorf("setting the host name: %w", err)
		}
	}
	return nil
}

// find looks the program up as the container's environment says. Images keep
// programs in other places than this machine does, so a path that leads nowhere
// is looked up by its last element.
func find(s Spec) (string, error) {
	if len(s.Argv) == 0 {
		return "", errors.New("a container without a command")
	}
	if err := os.Chdir(cmp.Or(s.WorkingDir, "/")); err != nil {
		return "", fmt.Errorf("entering the working directory: %w", err)
	}
	for _, entry := range s.Env {
		if path, ok := strings.CutPrefix(entry, "PATH="); ok {
			if err := os.Setenv("PATH", path); err != nil {
				return "", err
			}
		}
	}
	path, err := exec.LookPath(s.Argv[0])
	if err != nil {
		var other error
		if path, other = exec.LookPath(filepath.Base(s.Argv[0])); other != nil {
			return "", fmt.Errorf("exec: %q: this machine has no such program: %w", s.Argv[0], err)
		}
	}
	return path, nil
}
