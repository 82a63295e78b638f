package fleet

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/namesake-io/namesake/sandbox/internal/netns"
	"github.com/namesake-io/namesake/sandbox/internal/plan"
	"github.com/namesake-io/namesake/sandbox/internal/ports"
	"github.com/namesake-io/namesake/sandbox/internal/process"
	"github.com/namesake-io/namesake/sandbox/internal/relay"
	"github.com/namesake-io/namesake/sandbox/internal/state"
)

const (
	startTimeout  = 2 * time.Minute
	probeInterval = 30 * time.Millisecond
	probeTimeout  = 5 * time.Second
	tailLines     = 15
	tailWidth     = 400
)

// starter starts processes of one fleet, at most a few at a time: an API server
// is busy for seconds while it starts, and more of them than cores only make
// each one late.
type starter struct {
	fleet *Fleet
	// held are the ports still kept for processes to come; nil at a restart.
	held  *ports.Held
	slots chan struct{}

	mu sync.Mutex // guards st and its file
	st *state.Fleet
}

func newStarter(f *Fleet, st *state.Fleet, held *ports.Held) *starter {
	return &starter{fleet: f, st: st, held: held, slots: make(chan struct{}, runtime.NumCPU()+2)}
}

// startAll starts the components, each as soon as what it needs is ready.
func (s *starter) startAll(ctx context.Context, components []plan.Component) error {
	ready := map[string]chan struct{}{}
	for _, c := range components {
		ready[c.Name] = make(chan struct{})
	}
	group, ctx := errgroup.WithContext(ctx)
	for _, c := range components {
		group.Go(func() error {
			for _, need := range c.Needs {
				select {
				case <-ready[need]:
				case <-ctx.Done():
					return ctx.Err()
				}
			}
			if err := s.inSlot(ctx, func() error { return s.start(ctx, c) }); err != nil {
				return err
			}
			close(ready[c.Name])
			return nil
		})
	}
	return group.Wait()
}

func (s *starter) inSlot(ctx context.Context, fn func() error) error {
	select {
	case s.slots <- struct{}{}:
		defer func() { <-s.slots }()
		return fn()
	case <-ctx.Done():
		return ctx.Err()
	}
}

// start starts one component and returns when it is ready.
func (s *starter) start(ctx context.Context, c plan.Component) error {
	if s.held != nil {
		s.mu.Lock()
		s.held.Release(c.Ports)
		s.mu.Unlock()
	}
	var taken *ports.TakenError
	if err := ports.Check(ctx, c.Ports); errors.As(err, &taken) {
		return fmt.Errorf("port %d of %s was taken by another program: end that program, or let `sandbox down` and `sandbox up` choose other ports (%w)", taken.Port, c.Name, err)
	}
	begin := time.Now()
	child, err := process.Spawn(s.fleet.dir, c.Log, c.Argv)
	if err != nil {
		return fmt.Errorf("starting %s: %w", c.Name, err)
	}
	if err := s.record(c, child.ID); err != nil {
		return err
	}
	if err := awaitReady(ctx, child, c.Ready); err != nil {
		if ctx.Err() != nil {
			return ctx.Err() // it is not to blame, so its log is not shown
		}
		return &startError{what: c.Name, log: c.Log, cause: err}
	}
	s.fleet.progress.Say("%s ready after %.1fs", c.Name, time.Since(begin).Seconds())
	return nil
}

// record notes which process a component is now. A kill between spawn and here
// is why processes are marked as well.
func (s *starter) record(c plan.Component, id process.ID) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if known := s.st.Component(c.Name); known != nil {
		known.ID = id
	} else {
		s.st.Components = append(s.st.Components, state.Component{Component: c, ID: id})
	}
	return s.st.Save(s.fleet.dir)
}

// run runs a step to its end.
func (s *starter) run(ctx context.Context, step plan.Step) error {
	begin := time.Now()
	out, err := os.OpenFile(step.Log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("opening log: %w", err)
	}
	defer out.Close()
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, step.Argv[0], step.Argv[1:]...)
	cmd.Env = process.Environ(s.fleet.dir)
	cmd.Stdout, cmd.Stderr = out, out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			err = fmt.Errorf("did not finish: %w", ctx.Err())
		}
		return &startError{what: step.Name, log: step.Log, cause: err}
	}
	s.fleet.progress.Say("%s done after %.1fs", step.Name, time.Since(begin).Seconds())
	return nil
}

// awaitReady returns when the probe succeeds, or with an error when the child
// ends or takes too long.
func awaitReady(ctx context.Context, child *process.Child, probe plan.Probe) error {
	client, err := newProbeClient(probe)
	if err != nil {
		return err
	}
	defer client.CloseIdleConnections()
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	tick := time.NewTicker(probeInterval)
	defer tick.Stop()
	var last error
	for {
		select {
		case <-child.Exited:
			return fmt.Errorf("ended before it was ready: %w", exitError(child.Err()))
		case <-ctx.Done():
			return fmt.Errorf("was not ready (%w); the last answer was: %w", ctx.Err(), last)
		case <-tick.C:
			if last = ask(ctx, client, probe.URL); last == nil {
				return nil
			}
		}
	}
}

func exitError(err error) error {
	if err == nil {
		return errors.New("exit status 0")
	}
	return err
}

func ask(ctx context.Context, client *http.Client, url string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answered %s", url, response.Status)
	}
	return nil
}

// newProbeClient makes a client that verifies the server by the probe's
// authority, and by nothing else.
func newProbeClient(probe plan.Probe) (*http.Client, error) {
	transport := &http.Transport{}
	if probe.Socket != "" {
		transport.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			return relay.Dial(ctx, probe.Socket)
		}
	}
	if probe.Namespace != "" {
		transport.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
			return netns.Dial(ctx, probe.Namespace, network, address)
		}
	}
	if probe.CA != "" {
		authority, err := os.ReadFile(probe.CA)
		if err != nil {
			return nil, fmt.Errorf("reading the authority: %w", err)
		}
		roots := x509.NewCertPool()
		roots.AppendCertsFromPEM(authority)
		cert, err := tls.LoadX509KeyPair(probe.Cert, probe.Key)
		if err != nil {
			return nil, fmt.Errorf("reading the client certificate: %w", err)
		}
		transport.TLSClientConfig = &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{cert}}
	}
	return &http.Client{Transport: transport, Timeout: probeTimeout}, nil
}

// startError says what did not start, and shows the end of its log.
type startError struct {
	what, log string
	cause     error
}

func (e *startError) Unwrap() error { return e.cause }

func (e *startError) Error() string {
	return fmt.Sprintf("%s %v\n%s", e.what, e.cause, tail(e.log))
}

// tail returns the last lines of a log, indented and cut to a readable width.
func tail(path string) string {
	data, err := os.ReadFile(path)
	if err != nil {
		return fmt.Sprintf("(its log can't be read: %v)", err)
	}
	text := strings.TrimRight(string(data), "\n")
	if text == "" {
		return fmt.Sprintf("(its log %s is empty)", path)
	}
	lines := strings.Split(text, "\n")
	lines = lines[max(0, len(lines)-tailLines):]
	for i, line := range lines {
		if len(line) > tailWidth {
			line = line[:tailWidth] + "…"
		}
		lines[i] = "    " + line
	}
	return fmt.Sprintf("the end of %s:\n%s", path, strings.Join(lines, "\n"))
}
