package node

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/node/api"
	corev1 "k8s.io/api/core/v1"
	utilexec "k8s.io/utils/exec"

	"github.com/namesake-io/namesake/sandbox/internal/contain"
	"github.com/namesake-io/namesake/sandbox/internal/fabric"
	"github.com/namesake-io/namesake/sandbox/internal/netns"
)

// idleTimeout is how long an exec may be silent.
const idleTimeout = 4 * time.Hour

// serve answers the API server, and nobody else, until the context ends.
func (a *Agent) serve(ctx context.Context, ready func() bool) error {
	pki := func(name string) string { return filepath.Join(a.dir, "pki", name) }
	cert, err := tls.LoadX509KeyPair(pki(a.member.Name+"-kubelet.crt"), pki(a.member.Name+"-kubelet.key"))
	if err != nil {
		return fmt.Errorf("reading the serving certificate: %w", err)
	}
	authority, err := os.ReadFile(pki(a.member.Name + "-clients.crt"))
	if err != nil {
		return fmt.Errorf("reading the authority of clients: %w", err)
	}
	clients := x509.NewCertPool()
	clients.AppendCertsFromPEM(authority)

	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		if !ready() {
			http.Error(w, "the Node is not registered yet", http.StatusServiceUnavailable)
			return
		}
	})
	list := func(ctx context.Context) ([]*corev1.Pod, error) { return a.GetPods(ctx) }
	mux.Handle("/", api.PodHandler(api.PodHandlerConfig{
		RunInContainer: func(ctx context.Context, namespace, pod, container string, command []string, streams api.AttachIO) error {
			c, err := a.findContainer(namespace, pod, container)
			if err != nil {
				return err
			}
			return c.runBeside(ctx, command, streams)
		},
		PortForward: a.portForward, GetContainerLogs: a.containerLogs,
		GetPods: list, GetPodsFromKubernetes: list,
		StreamIdleTimeout: idleTimeout, StreamCreationTimeout: 30 * time.Second,
	}, false))
	server := &http.Server{
		Addr:    fmt.Sprintf("127.0.0.1:%d", a.member.KubeletPort),
		Handler: mux, ReadHeaderTimeout: requestTimeout,
		TLSConfig: &tls.Config{
			Certificates: []tls.Certificate{cert}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: clients,
			NextProtos: []string{"http/1.1"}, // streams of exec take a connection over
		},
	}
	context.AfterFunc(ctx, func() { _ = server.Close() }) // nobody is left to hear an error
	if err := server.ListenAndServeTLS("", ""); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serving the API server: %w", err)
	}
	return nil
}

func (a *Agent) findContainer(namespace, podName, name string) (*container, error) {
	p, err := a.find(namespace, podName)
	if err != nil {
		return nil, err
	}
	c := p.container(name)
	if c == nil {
		return nil, errdefs.NotFoundf("pod %s has no container %s", podName, name)
	}
	return c, nil
}

func (a *Agent) containerLogs(ctx context.Context, namespace, podName, name string, o api.ContainerLogOpts) (io.ReadCloser, error) {
	c, err := a.findContainer(namespace, podName, name)
	if err != nil {
		return nil, err
	}
	state := c.snapshot()
	run := int(state.restarts)
	if o.Previous {
		run--
		if run < 0 {
			return nil, errdefs.NotFoundf("container %s has run only once", name)
		}
	}
	c.mu.Lock()
	proc := c.proc
	c.mu.Unlock()
	ended := func() bool {
		if proc == nil || o.Previous {
			return true
		}
		select {
		case <-proc.exited:
			return true
		default:
			return false
		}
	}
	return logs(ctx, c.pod.logPath(name, run), o, ended)
}

func (a *Agent) portForward(ctx context.Context, namespace, podName string, port int32, stream io.ReadWriteCloser) error {
	p, err := a.find(namespace, podName)
	if err != nil {
		return err
	}
	conn, err := netns.Dial(ctx, p.namespace, "tcp4", net.JoinHostPort("127.0.0.1", strconv.Itoa(int(port))))
	if err != nil {
		return err
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	fabric.Join(conn, stream)
	return nil
}

// runBeside runs a command in a container and returns when it has ended.
func (c *container) runBeside(ctx context.Context, command []string, streams api.AttachIO) error {
	cmd, err := c.exec(command, streams.TTY())
	if err != nil {
		return err
	}
	if streams.TTY() {
		err = runInTerminal(ctx, cmd, streams)
	} else {
		err = runPiped(ctx, cmd, streams)
	}
	code, err := contain.ExitCode(err)
	if err != nil || code == 0 {
		return err
	}
	return utilexec.CodeExitError{Err: fmt.Errorf("exit status %d", code), Code: code}
}

func runPiped(ctx context.Context, cmd *exec.Cmd, streams api.AttachIO) error {
	if out := streams.Stdout(); out != nil {
		cmd.Stdout = out
	}
	if out := streams.Stderr(); out != nil {
		cmd.Stderr = out
	}
	cmd.WaitDelay = outputDelay
	if in := streams.Stdin(); in != nil {
		pipe, err := cmd.StdinPipe()
		if err != nil {
			return err
		}
		go func() {
			defer pipe.Close()
			_, _ = io.Copy(pipe, in) // the command may want no more
		}()
	}
	return runUntil(ctx, cmd)
}
