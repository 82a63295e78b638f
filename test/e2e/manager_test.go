package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

// stopLimit is how long a controller-manager may take to end when it is told to.
const stopLimit = 5 * time.Second

// A wrong name in --controllers is refused, with the names that are known.
func TestUnknownController(t *testing.T) {
	f := together(t)
	_, err := f.run(t.Context(), "controller-manager", "--kubeconfig", f.hub.kubeconfig, "--controllers", "*,-endpointsliceDispatsh")
	if err == nil {
		t.Fatal("it ran")
	}
	for _, want := range []string{"--controllers", `"endpointsliceDispatsh"`, "endpointsliceDispatch", "multiclusterservice"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("it does not say %q: %v", want, err)
		}
	}
	if strings.Contains(err.Error(), "Usage:") {
		t.Errorf("it drowns the error in its usage: %v", err)
	}
}

// The controller-manager answers probes, and ends within seconds when it is told
// to, its lease given back, so that the next one need not wait.
func TestGracefulStop(t *testing.T) {
	f := alone(t)
	s := servedEverywhere(t, f, "foo")

	args, health := makeRoom(t, f)
	cmd := exec.CommandContext(t.Context(), args[0], args[1:]...)
	var log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &log, &log
	begun := time.Now()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	exited := make(chan error, 1)
	go func() { exited <- cmd.Wait() }()
	for _, path := range []string{"/healthz", "/readyz"} {
		within(t, patience, path, func(ctx context.Context) error { return probe(ctx, "http://"+health+path) })
	}
	f.waitLeader(t, begun)
	// It is at work when it is told to stop.
	s.createMCS("foo")
	s.waitSpread(s.all("foo"))

	start := time.Now()
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case err := <-exited:
		took := time.Since(start)
		t.Logf("ended after %s", took.Round(time.Millisecond))
		if err != nil || took > stopLimit {
			t.Errorf("after %s, want at most %s and exit code 0: %v\n%s", took, stopLimit, err, &log)
		}
	case <-timer.C:
		t.Fatalf("still there after %s", patience)
	}
	waitReleased(t, f)
}

// makeRoom ends the fleet's own manager, for one that is a child of the test. It
// returns the manager's command line, and the address of its probes.
func makeRoom(t *testing.T, f *fleet) (args []string, health string) {
	t.Helper()
	pid := f.component(t, hubManager).PID
	args = argumentsOf(t, pid)
	health = valueOf(args, "--health-probe-bind-address")
	if err := syscall.Kill(pid, syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.sandbox(t, "restart", hubManager) })
	waitReleased(t, f)
	within(t, stopLimit, "the port of /healthz is free", func(ctx context.Context) error {
		listener, err := new(net.ListenConfig).Listen(ctx, "tcp", health)
		if err == nil {
			err = listener.Close()
		}
		return err
	})
	return args, health
}

// waitReleased waits until nobody holds the lease.
func waitReleased(t *testing.T, f *fleet) {
	t.Helper()
	within(t, stopLimit, "the lease is given back", func(ctx context.Context) error {
		who, err := f.holder(ctx)
		if err == nil && who != "" {
			err = fmt.Errorf("%s holds it", who)
		}
		return err
	})
}

// probe asks an HTTP endpoint whether all is well.
func probe(ctx context.Context, url string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return errors.New(resp.Status + ": " + string(body))
	}
	return nil
}
