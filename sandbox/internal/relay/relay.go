package relay

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// Options are where a relay finds its configuration and its control socket.
type Options struct {
	Config string
	Socket string
	Logger *slog.Logger
}

// Run relays until the context ends.
func Run(ctx context.Context, o Options) error {
	config, err := ReadConfig(o.Config)
	if err != nil {
		return err
	}
	r := &relay{options: o, links: map[string]*link{}}
	ctx, cancel := context.WithCancel(ctx)
	defer r.carried.Wait()
	defer cancel()
	for _, p := range config.Paths {
		if err := r.open(ctx, p); err != nil {
			return err
		}
	}
	return r.control(ctx)
}

type relay struct {
	options Options
	links   map[string]*link // by member; fixed once open
	carried sync.WaitGroup

	reloading sync.Mutex
}

// open starts to listen for a member's path.
func (r *relay) open(ctx context.Context, p Path) error {
	c, err := p.conditions()
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", p.Listen)
	if err != nil {
		return fmt.Errorf("listening for %s: %w", p.Member, err)
	}
	l := newLink(c, func(ctx context.Context) (net.Conn, error) {
		return (&net.Dialer{Timeout: 10 * time.Second}).DialContext(ctx, "tcp", p.Target)
	})
	r.links[p.Member] = l
	context.AfterFunc(ctx, func() { listener.Close() })
	r.carried.Go(func() { r.accept(ctx, p.Member, l, listener) })
	return nil
}

func (r *relay) accept(ctx context.Context, member string, l *link, listener net.Listener) {
	for {
		conn, err := listener.Accept()
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			r.options.Logger.Error("Could not accept a connection", "member", member, "err", err)
			if sleep(ctx, 100*time.Millisecond) != nil { // out of descriptors, most likely
				return
			}
			continue
		}
		r.carried.Go(func() {
			if err := l.serve(ctx, conn); err != nil && ctx.Err() == nil {
				r.options.Logger.Info("Connection broke", "member", member, "err", err)
			}
		})
	}
}

// control serves the control socket until the context ends.
func (r *relay) control(ctx context.Context) error {
	listener, err := listenUnix(r.options.Socket)
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("POST /reload", func(w http.ResponseWriter, _ *http.Request) {
		if err := r.reload(); err != nil {
			r.options.Logger.Error("Could not reload", "err", err)
			http.Error(w, err.Error(), http.StatusInternalServerError)
		}
	})
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	context.AfterFunc(ctx, func() { _ = server.Close() }) // nobody is left to hear an error
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serving the control socket: %w", err)
	}
	return nil
}

// reload brings each path into the conditions that the file wants now.
func (r *relay) reload() error {
	r.reloading.Lock()
	defer r.reloading.Unlock()
	config, err := ReadConfig(r.options.Config)
	if err != nil {
		return err
	}
	for _, p := range config.Paths {
		l, ok := r.links[p.Member]
		if !ok {
			return fmt.Errorf("no path leads to %s", p.Member)
		}
		c, err := p.conditions()
		if err != nil {
			return err
		}
		l.set(c)
		r.options.Logger.Info("Conditions set", "member", p.Member, "cut", c.Cut, "delay", c.Delay)
	}
	return nil
}

// listenUnix listens on a unix socket whose path may be longer than the 107
// bytes that an address has room for: the socket is named through its directory.
func listenUnix(path string) (net.Listener, error) {
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("removing the former control socket: %w", err)
	}
	var listener *net.UnixListener
	err := throughDirectory(path, func(short string) (err error) {
		listener, err = net.ListenUnix("unix", &net.UnixAddr{Name: short, Net: "unix"})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("listening on %s: %w", path, err)
	}
	// Its short name leads nowhere any more when it is closed.
	listener.SetUnlinkOnClose(false)
	return listener, nil
}

// throughDirectory calls f with a short name for path.
func throughDirectory(path string, f func(short string) error) error {
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	defer dir.Close()
	return f(fmt.Sprintf("/proc/self/fd/%d/%s", dir.Fd(), filepath.Base(path)))
}
