// Package netns makes network namespaces with names, as `ip netns` does, and
// runs code, listeners and connections inside them.
//
// A socket belongs for ever to the namespace that its thread was in when it was
// made. Everything here therefore moves one thread, makes the socket, and moves
// the thread back.
package netns

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"golang.org/x/sys/unix"
)

// dir is where `ip netns` looks for namespaces, too.
const dir = "/run/netns"

const ownNamespace = "/proc/thread-self/ns/net"

// Path is the file that stands for the namespace.
func Path(name string) string { return filepath.Join(dir, name) }

// Create makes a namespace with its loopback down. It is no error if it exists.
func Create(name string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("making network namespace %s: %w", name, err)
	}
	if Exists(name) {
		return nil
	}
	file, err := os.OpenFile(Path(name), os.O_CREATE|os.O_RDONLY, 0o444)
	if err != nil {
		return fmt.Errorf("making network namespace %s: %w", name, err)
	}
	file.Close()
	err = onThread(func() error {
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			return err
		}
		return unix.Mount(ownNamespace, Path(name), "", unix.MS_BIND, "")
	})
	if err != nil {
		return errors.Join(fmt.Errorf("making network namespace %s: %w", name, err), os.Remove(Path(name)))
	}
	return nil
}

// Exists tells whether a namespace has the name. A file of that name that
// stands for no namespace is what a killed Create left.
func Exists(name string) bool {
	var st unix.Statfs_t
	return unix.Statfs(Path(name), &st) == nil && st.Type == unix.NSFS_MAGIC
}

// Delete takes the name away. The namespace goes with its last process, and
// takes its links, routes and tables with it.
func Delete(name string) error {
	if err := unix.Unmount(Path(name), unix.MNT_DETACH); err != nil && !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.ENOENT) {
		return fmt.Errorf("unmounting network namespace %s: %w", name, err)
	}
	if err := os.Remove(Path(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("removing network namespace %s: %w", name, err)
	}
	return nil
}

// List returns the names that begin with the prefix.
func List(prefix string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("listing network namespaces: %w", err)
	}
	var names []string
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), prefix) {
			names = append(names, e.Name())
		}
	}
	return names, nil
}

// Do calls fn on a thread that is inside the namespace. What fn starts as a
// goroutine is not inside.
func Do(name string, fn func() error) error {
	return onThread(func() error {
		if err := Enter(name); err != nil {
			return err
		}
		return fn()
	})
}

// Enter moves the calling thread for good.
func Enter(name string) error {
	target, err := os.Open(Path(name))
	if err != nil {
		return fmt.Errorf("opening network namespace %s: %w", name, err)
	}
	defer target.Close()
	if err := unix.Setns(int(target.Fd()), unix.CLONE_NEWNET); err != nil {
		return fmt.Errorf("entering network namespace %s: %w", name, err)
	}
	return nil
}

// onThread calls fn on a thread of its own and brings the thread back into the
// namespace that it came from. A thread that can't come back is never used again.
func onThread(fn func() error) error {
	result := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		home, err := os.Open(ownNamespace)
		if err != nil {
			runtime.UnlockOSThread()
			result <- err
			return
		}
		defer home.Close()
		err = fn()
		if back := unix.Setns(int(home.Fd()), unix.CLONE_NEWNET); back != nil {
			result <- errors.Join(err, fmt.Errorf("returning from a network namespace: %w", back))
			return // still locked: the thread ends with this goroutine
		}
		runtime.UnlockOSThread()
		result <- err
	}()
	return <-result
}

// Listen listens inside the namespace.
func Listen(name, network, address string) (net.Listener, error) {
	var listener net.Listener
	err := Do(name, func() (err error) {
		listener, err = net.Listen(network, address)
		return err
	})
	return listener, err
}

// Dial connects from inside the namespace to an address, which must be an IP
// address: names would be looked up outside.
func Dial(ctx context.Context, name, network, address string) (net.Conn, error) {
	var conn net.Conn
	err := Do(name, func() (err error) {
		conn, err = (&net.Dialer{}).DialContext(ctx, network, address)
		return err
	})
	return conn, err
}
