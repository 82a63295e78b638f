package fabric

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/namesake-io/namesake/sandbox/internal/netns"
	"github.com/namesake-io/namesake/sandbox/internal/plan"
)

// Options are what the component fabric is started with.
type Options struct {
	// Network is the file that Read reads.
	Network string
	// Health is the address that answers once everything stands.
	Health string
	Logger *slog.Logger
}

// Run builds the network and forwards each node's connections to its API server
// until the context ends. The network stays: routes work without this process.
func Run(ctx context.Context, o Options) error {
	n, err := Read(o.Network)
	if err != nil {
		return err
	}
	if err := Build(n); err != nil {
		return err
	}
	f := forwarder{logger: o.Logger}
	for _, m := range n.Members {
		if err := f.open(ctx, m); err != nil {
			return err
		}
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(http.ResponseWriter, *http.Request) {})
	server := &http.Server{Addr: o.Health, Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	context.AfterFunc(ctx, func() { _ = server.Close() }) // nobody is left to hear an error
	if err := server.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serving health: %w", err)
	}
	return nil
}

// forwarder joins a node's loopback to the machine's, for one port each: API
// servers listen nowhere but on loopback, and one kubeconfig works on both sides.
type forwarder struct {
	logger *slog.Logger
}

func (f *forwarder) open(ctx context.Context, m plan.MemberNetwork) error {
	address := fmt.Sprintf("127.0.0.1:%d", m.APIPort)
	listener, err := netns.Listen(m.Node, "tcp4", address)
	if err != nil {
		return fmt.Errorf("listening in the node of %s: %w", m.Name, err)
	}
	context.AfterFunc(ctx, func() { listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if errors.Is(err, net.ErrClosed) {
				return
			}
			if err != nil {
				f.logger.Error("Could not accept a connection", "member", m.Name, "err", err)
				continue
			}
			go f.carry(ctx, conn, address)
		}
	}()
	return nil
}

func (f *forwarder) carry(ctx context.Context, from net.Conn, address string) {
	defer from.Close()
	to, err := (&net.Dialer{}).DialContext(ctx, "tcp4", address)
	if err != nil {
		f.logger.Info("Could not reach the API server", "address", address, "err", err)
		return
	}
	defer to.Close()
	Join(from, to)
}

// Join copies between two connections until both directions have ended.
func Join(a, b io.ReadWriter) {
	var wg sync.WaitGroup
	for _, way := range [][2]io.ReadWriter{{a, b}, {b, a}} {
		wg.Go(func() {
			// A broken connection is its owner's business; both sides see it end.
			_, _ = io.Copy(way[0], way[1])
			if half, ok := way[0].(interface{ CloseWrite() error }); ok {
				_ = half.CloseWrite()
			}
		})
	}
	wg.Wait()
}
