package node

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/namesake-io/namesake/sandbox/internal/contain"
	"github.com/namesake-io/namesake/sandbox/internal/images"
	"github.com/namesake-io/namesake/sandbox/internal/podenv"
)

// retryStart is how long to wait before a container that can't be made is tried
// again: what it lacks is most often made a moment later.
const retryStart = time.Second

// outputDelay bounds the wait for output after a container's last process.
const outputDelay = 2 * time.Second

// container is one container of a pod.
type container struct {
	pod    *pod
	spec   *corev1.Container
	policy corev1.RestartPolicy

	mu    sync.Mutex
	state containerState
	proc  *running // nil unless it runs
}

// running is one run of a container.
type running struct {
	cmd    *exec.Cmd
	env    []string
	begun  metav1.Time
	exited chan struct{}
	err    error // how it ended; read after exited
	log    *logFile
}

func (c *container) snapshot() containerState {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.state
}

// set changes the state and has it reported. A pod's lock comes before those of
// its containers, so change must not ask the pod for anything.
func (c *container) set(change func(*containerState)) {
	c.mu.Lock()
	change(&c.state)
	c.mu.Unlock()
	c.pod.changed()
}

func (c *container) wait(reason, message string) {
	c.set(func(s *containerState) {
		s.waiting = &corev1.ContainerStateWaiting{Reason: reason, Message: message}
		s.running, s.terminated, s.ready, s.started = nil, nil, false, false
	})
}

// run runs the container, again and again as its policy says, until stopping
// ends; killing then ends what did not end by itself.
func (c *container) run(stopping, killing context.Context) {
	crashes := 0
	for stopping.Err() == nil {
		proc, err := c.start(stopping)
		if err != nil {
			c.refuse(stopping, err)
			continue
		}
		code := c.attend(stopping, killing, proc)
		if stopping.Err() != nil || !shouldRestart(c.policy, code) {
			return
		}
		crashes++
		if time.Since(proc.begun.Time) > calm {
			crashes = 1
		}
		if delay := backoff(crashes); delay > 0 {
			c.wait("CrashLoopBackOff", fmt.Sprintf("back-off %s restarting failed container=%s", delay, c.spec.Name))
			pause(stopping, delay)
		}
		if stopping.Err() == nil {
			c.set(func(s *containerState) { s.restarts++ })
		}
	}
}

// refuse says why the container can't be made, and waits before the next try.
func (c *container) refuse(ctx context.Context, err error) {
	var (
		unknown *images.UnknownError
		missing *podenv.MissingError
	)
	delay := retryStart
	switch {
	case errors.As(err, &unknown):
		c.wait("ErrImagePull", err.Error())
		delay = firstBackoff
	case errors.As(err, &missing):
		c.wait("CreateContainerConfigError", err.Error())
	default:
		c.wait("CreateContainerError", err.Error())
	}
	pause(ctx, delay)
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// start makes the container's process.
func (c *container) start(ctx context.Context) (*running, error) {
	p, a := c.pod, c.pod.agent
	vars, err := podenv.Of(c.spec, p.source(ctx))
	if err != nil {
		return nil, err
	}
	argv, err := a.images.Argv(c.spec.Image, c.spec.Command, c.spec.Args)
	if err != nil {
		return nil, err
	}
	number := int(c.snapshot().restarts)
	proc := &running{env: append(a.baseEnv(p.hostname()), vars.Environ()...), begun: metav1.Now(), exited: make(chan struct{})}
	proc.cmd, err = contain.Cmd(a.self, contain.Spec{
		Namespace: p.namespace, Resolver: p.file("resolv.conf"), Hosts: p.file("hosts"), Hostname: p.hostname(),
		Processes: true, WorkingDir: c.spec.WorkingDir, Argv: vars.Expand(argv), Env: proc.env,
	})
	if err != nil {
		return nil, err
	}
	if proc.log, err = newLog(p.logPath(c.spec.Name, number)); err != nil {
		return nil, err
	}
	// One value for both makes one pipe, which keeps their lines in order.
	proc.cmd.Stdout, proc.cmd.Stderr = proc.log, proc.log
	proc.cmd.WaitDelay = outputDelay
	proc.cmd.SysProcAttr.Setsid = true
	if err := proc.cmd.Start(); err != nil {
		proc.log.Close()
		return nil, fmt.Errorf("starting container %s: %w", c.spec.Name, err)
	}
	go func() {
		proc.err = proc.cmd.Wait()
		proc.log.Close()
		close(proc.exited)
	}()
	id := fmt.Sprintf("sandbox://%s-%s-%d", p.spec().UID, c.spec.Name, number)
	c.mu.Lock()
	c.proc = proc
	c.mu.Unlock()
	c.set(func(s *containerState) {
		s.waiting, s.terminated = nil, nil
		s.running = &corev1.ContainerStateRunning{StartedAt: proc.begun}
		s.started = c.spec.StartupProbe == nil
		s.ready = s.started && c.spec.ReadinessProbe == nil
		s.id = id
	})
	return proc, nil
}

// attend sees to one run until it has ended, and returns its exit code.
func (c *container) attend(stopping, killing context.Context, proc *running) int32 {
	watched, unwatch := context.WithCancel(killing)
	unhealthy := c.watch(watched, stopping, proc)
	select {
	case <-proc.exited:
	case <-unhealthy:
		grace, cancel := context.WithTimeout(killing, c.grace())
		c.end(grace, proc)
		cancel()
	case <-stopping.Done():
		c.end(killing, proc)
	}
	unwatch()
	code, err := contain.ExitCode(proc.err)
	reason, message := exitReason(int32(code)), ""
	if err != nil {
		message = err.Error()
	}
	ended := &corev1.ContainerStateTerminated{
		ExitCode: int32(code), Reason: reason, Message: message,
		StartedAt: proc.begun, FinishedAt: metav1.Now(), ContainerID: c.snapshot().id,
	}
	c.mu.Lock()
	c.proc = nil
	c.mu.Unlock()
	c.set(func(s *containerState) {
		s.waiting, s.running, s.ready, s.started = nil, nil, false, false
		s.terminated, s.last = ended, ended
	})
	return int32(code)
}

// grace is how long a container may take to end when its pod stays.
func (c *container) grace() time.Duration {
	seconds := c.pod.spec().Spec.TerminationGracePeriodSeconds
	if p := c.spec.LivenessProbe; p != nil && p.TerminationGracePeriodSeconds != nil {
		seconds = p.TerminationGracePeriodSeconds
	}
	if seconds == nil {
		return 30 * time.Second
	}
	return time.Duration(*seconds) * time.Second
}

// end asks the run to end, after its preStop hook, and kills it when ctx ends.
func (c *container) end(ctx context.Context, proc *running) {
	if hook := c.spec.Lifecycle; hook != nil && hook.PreStop != nil {
		c.preStop(ctx, proc, hook.PreStop)
	}
	_ = proc.cmd.Process.Signal(syscall.SIGTERM) // it may just have ended
	select {
	case <-proc.exited:
		return
	case <-ctx.Done():
	}
	_ = proc.cmd.Process.Kill() // as above
	<-proc.exited
}

func (c *container) preStop(ctx context.Context, proc *running, hook *corev1.LifecycleHandler) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-proc.exited:
			cancel()
		case <-ctx.Done():
		}
	}()
	if hook.Sleep != nil {
		pause(ctx, time.Duration(hook.Sleep.Seconds)*time.Second)
		return
	}
	// A hook that fails changes nothing: the end comes all the same.
	_ = c.target().Ask(ctx, corev1.ProbeHandler{Exec: hook.Exec, HTTPGet: hook.HTTPGet, TCPSocket: hook.TCPSocket})
}

// exec makes a command that runs beside the container's process.
func (c *container) exec(command []string, terminal bool) (*exec.Cmd, error) {
	c.mu.Lock()
	proc := c.proc
	c.mu.Unlock()
	if proc == nil {
		return nil, fmt.Errorf("container %s is not running", c.spec.Name)
	}
	env := proc.env
	if terminal {
		env = append([]string{"TERM=" + os.Getenv("TERM")}, env...)
	}
	return contain.Cmd(c.pod.agent.self, contain.Spec{Join: proc.cmd.Process.Pid, Argv: command, Env: env, WorkingDir: c.spec.WorkingDir})
}
