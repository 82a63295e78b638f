package node

import (
	"context"
	"net"
	"os/exec"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/namesake-io/namesake/sandbox/internal/netns"
	"github.com/namesake-io/namesake/sandbox/internal/probe"
)

// target is the container as its probes see it: they come from the node.
func (c *container) target() probe.Target {
	p := c.pod
	return probe.Target{
		Address: p.ips()[0],
		Ports:   c.spec.Ports,
		Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
			return netns.Dial(ctx, p.member().Node, network, address)
		},
		Exec: func(ctx context.Context, command []string) error {
			cmd, err := c.exec(command, false)
			if err != nil {
				return err
			}
			return runUntil(ctx, cmd)
		},
	}
}

// runUntil runs a command to its end or the context's.
func runUntil(ctx context.Context, cmd *exec.Cmd) error {
	if err := cmd.Start(); err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { _ = cmd.Process.Kill() }) // it may just have ended
	defer stop()
	return cmd.Wait()
}

// watch runs the container's probes until ctx ends. Liveness is asked only until
// the pod is to end, readiness to the last: others still need to know it. The
// channel is closed when the container is to be restarted.
func (c *container) watch(ctx, stopping context.Context, proc *running) <-chan struct{} {
	unhealthy := make(chan struct{})
	go func() {
		if c.spec.StartupProbe != nil && !c.awaitStarted(ctx, unhealthy) {
			return
		}
		if c.spec.ReadinessProbe != nil {
			go c.watchReadiness(ctx, proc)
		}
		if c.spec.LivenessProbe != nil {
			alive, cancel := context.WithCancel(ctx)
			defer cancel()
			defer context.AfterFunc(stopping, cancel)()
			c.ask(alive, c.spec.LivenessProbe, func(v probe.Verdict) bool {
				if v == probe.Failure {
					close(unhealthy)
				}
				return v != probe.Failure
			})
		}
	}()
	return unhealthy
}

// awaitStarted reports whether the startup probe succeeded.
func (c *container) awaitStarted(ctx context.Context, unhealthy chan struct{}) bool {
	started := false
	c.ask(ctx, c.spec.StartupProbe, func(v probe.Verdict) bool {
		switch v {
		case probe.Success:
			started = true
			c.set(func(s *containerState) { s.started, s.ready = true, c.spec.ReadinessProbe == nil })
		case probe.Failure:
			close(unhealthy)
		}
		return v == probe.Undecided
	})
	return started
}

func (c *container) watchReadiness(ctx context.Context, proc *running) {
	c.ask(ctx, c.spec.ReadinessProbe, func(v probe.Verdict) bool {
		if v == probe.Undecided {
			return true
		}
		ready := v == probe.Success
		c.mu.Lock()
		current := c.proc == proc && c.state.running != nil
		differs := c.state.ready != ready
		c.mu.Unlock()
		if current && differs {
			c.set(func(s *containerState) { s.ready = ready && s.running != nil })
		}
		return true
	})
}

// ask asks at the probe's period and tells the verdict each time, until told
// returns false or ctx ends.
func (c *container) ask(ctx context.Context, p *corev1.Probe, told func(probe.Verdict) bool) {
	judge := probe.NewJudge(p)
	pause(ctx, time.Duration(p.InitialDelaySeconds)*time.Second)
	tick := time.NewTicker(probe.Period(p))
	defer tick.Stop()
	for ctx.Err() == nil {
		timed, cancel := context.WithTimeout(ctx, probe.Timeout(p))
		err := c.target().Ask(timed, p.ProbeHandler)
		cancel()
		if ctx.Err() != nil || !told(judge.Hear(err == nil)) {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
		}
	}
}
