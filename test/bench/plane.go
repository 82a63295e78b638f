package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// plane is the control plane under test: an API, and a few commands of those who
// run it.
type plane struct {
	hub     *cluster
	members []*cluster

	// settle, kill and start are shell commands. Empty: there is none.
	settleCommand, killCommand, startCommand string
	// metricsURL is where its process tells of itself.
	metricsURL string
}

// open returns the control plane that the options mean, and how to leave it.
func open(ctx context.Context, o *options, log io.Writer) (_ *plane, leave func() error, err error) {
	p := &plane{
		settleCommand: o.settleCommand, killCommand: o.killCommand, startCommand: o.startCommand, metricsURL: o.metricsURL,
	}
	dir, leave := o.kubeconfigDir, func() error { return nil }
	if dir == "" {
		if dir, leave, err = startFleet(ctx, o, log); err != nil {
			return nil, nil, err
		}
		p.killCommand = fmt.Sprintf("%q kill --dir %q controller-manager", o.sandbox, dir)
		p.startCommand = fmt.Sprintf("%q restart --dir %q controller-manager", o.sandbox, dir)
		if p.metricsURL, err = fleetMetrics(ctx, o.sandbox, dir); err != nil {
			return nil, nil, errors.Join(err, leave())
		}
	}
	if p.hub, err = connect(dir, hubName); err != nil {
		return nil, nil, errors.Join(err, leave())
	}
	for i := range o.members {
		m, err := connect(dir, fmt.Sprintf("member%d", i+1))
		if err != nil {
			return nil, nil, errors.Join(err, leave())
		}
		p.members = append(p.members, m)
	}
	return p, leave, nil
}

// startFleet starts a fleet, which goes when leave is called or this process ends.
func startFleet(ctx context.Context, o *options, log io.Writer) (dir string, leave func() error, err error) {
	parent, err := os.MkdirTemp("", "bench-")
	if err != nil {
		return "", nil, fmt.Errorf("making a folder for a fleet: %w", err)
	}
	dir = filepath.Join(parent, "fleet")
	// It waits for the end of its input, which comes however this process ends.
	guard := exec.CommandContext(context.WithoutCancel(ctx), "sh", "-c", `read -r _; exec "$0" down --dir "$1"`, o.sandbox, dir)
	guard.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	input, err := guard.StdinPipe()
	if err == nil {
		err = guard.Start()
	}
	if err != nil {
		return "", nil, fmt.Errorf("starting a guard: %w", err)
	}
	leave = func() error {
		return errors.Join(input.Close(), guard.Wait(), os.RemoveAll(parent))
	}
	args := []string{"up", "--dir", dir, "--members", fmt.Sprint(o.members)}
	for _, arg := range o.managerArgs {
		args = append(args, "--controller-manager-arg", arg)
	}
	up := exec.CommandContext(ctx, o.sandbox, args...)
	up.Stderr = log
	if err := up.Run(); err != nil {
		return "", nil, errors.Join(fmt.Errorf("starting a fleet: %w", err), leave())
	}
	return dir, leave, nil
}

// fleetMetrics returns where the fleet's controller-manager tells of itself.
func fleetMetrics(ctx context.Context, sandbox, dir string) (string, error) {
	out, err := exec.CommandContext(ctx, sandbox, "status", "--dir", dir, "-o", "json").Output()
	if err != nil {
		return "", fmt.Errorf("asking for the fleet's state: %w", err)
	}
	var status struct {
		Components []struct {
			Name string `json:"name"`
			Port int    `json:"port"`
		} `json:"components"`
	}
	if err := json.Unmarshal(out, &status); err != nil {
		return "", fmt.Errorf("reading the fleet's state: %w", err)
	}
	for _, c := range status.Components {
		if c.Name == "controller-manager" {
			return fmt.Sprintf("http://127.0.0.1:%d/metrics", c.Port), nil
		}
	}
	return "", errors.New("the fleet has no controller-manager")
}

// mortal says whether the control plane can be killed and started.
func (p *plane) mortal() bool { return p.killCommand != "" }

// kill ends the control plane at once.
func (p *plane) kill(ctx context.Context) error { return shell(ctx, p.killCommand) }

// start starts it again.
func (p *plane) start(ctx context.Context) error { return shell(ctx, p.startCommand) }

// settled waits until the hub has been written to no more for a while. Leases are
// not counted.
func (p *plane) settled(ctx context.Context, patience time.Duration) error {
	const still = 2500 * time.Millisecond
	if p.settleCommand != "" {
		if err := shell(ctx, p.settleCommand); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	last := -1.0
	for {
		counts, err := countRequests(ctx, p.hub)
		if err != nil {
			return err
		}
		writes := counts.writes().total()
		if writes == last {
			return nil
		}
		last = writes
		if err := pause(ctx, still); err != nil {
			return fmt.Errorf("waiting until the hub is written to no more: %w", err)
		}
	}
}

// pause waits for a time.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// shell runs a command to its end.
func shell(ctx context.Context, command string) error {
	cmd := exec.CommandContext(ctx, "sh", "-c", command)
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("running %s: %w\n%s", command, err, &said)
	}
	return nil
}
