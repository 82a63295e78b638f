package echo

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"strconv"
	"sync/atomic"
	"time"
)

// ClusterVariable is the environment variable that tells a program in a pod
// which member it runs in.
const ClusterVariable = "NAMESAKE_CLUSTER"

// Identity is what the server says of itself.
type Identity struct {
	Cluster string `json:"cluster"`
	Pod     string `json:"pod"`
	// Address is where the caller reached it, Caller where the call came from.
	Address  string `json:"address"`
	Caller   string `json:"caller"`
	Protocol string `json:"protocol"`
}

func (i Identity) String() string {
	return fmt.Sprintf("cluster=%s pod=%s address=%s caller=%s protocol=%s\n", i.Cluster, i.Pod, i.Address, i.Caller, i.Protocol)
}

// Options say what to serve.
type Options struct {
	// HTTP, TCP and UDP are the ports; none means that it is not served.
	HTTP, TCP, UDP []int
	// Linger is how long it goes on serving after it was told to end, as a server
	// does that gives others time to hear of its end.
	Linger time.Duration
}

type server struct {
	cluster, pod string
	notReady     atomic.Bool
}

// Serve serves until the context ends, then for Linger, and lets HTTP requests
// finish that are under way.
func Serve(ctx context.Context, o Options) error {
	s := &server{cluster: os.Getenv(ClusterVariable)}
	var err error
	if s.pod, err = os.Hostname(); err != nil {
		return fmt.Errorf("finding the pod's name: %w", err)
	}
	errs := make(chan error, len(o.HTTP)+len(o.TCP)+len(o.UDP))
	web := &http.Server{Handler: s.handler(), ReadHeaderTimeout: 10 * time.Second}
	for _, port := range o.HTTP {
		l, err := net.Listen("tcp", portOf(port))
		if err != nil {
			return fmt.Errorf("serving HTTP: %w", err)
		}
		go func() { errs <- web.Serve(l) }()
	}
	for _, port := range o.TCP {
		l, err := net.Listen("tcp", portOf(port))
		if err != nil {
			return fmt.Errorf("serving TCP: %w", err)
		}
		go func() { errs <- s.serveTCP(l) }()
	}
	for _, port := range o.UDP {
		c, err := listenUDP(ctx, port)
		if err != nil {
			return fmt.Errorf("serving UDP: %w", err)
		}
		for _, conn := range c {
			go func() { errs <- s.serveUDP(conn) }()
		}
	}
	select {
	case err := <-errs:
		return err
	case <-ctx.Done():
	}
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), o.Linger)
	defer cancel()
	<-end.Done()
	shutdown, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	return web.Shutdown(shutdown)
}

func portOf(n int) string { return ":" + strconv.Itoa(n) }

// identity tells who was reached by whom.
func (s *server) identity(protocol string, address, caller net.Addr) Identity {
	return Identity{Cluster: s.cluster, Pod: s.pod, Address: host(address), Caller: host(caller), Protocol: protocol}
}

func host(a net.Addr) string {
	h, _, err := net.SplitHostPort(a.String())
	if err != nil {
		return a.String()
	}
	return h
}

// handler serves /, /json, and /readyz, which /set?ready=false makes answer 503.
func (s *server) handler() http.Handler {
	who := func(r *http.Request) Identity {
		local, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
		caller, err := net.ResolveTCPAddr("tcp", r.RemoteAddr)
		if err != nil || local == nil {
			return Identity{Cluster: s.cluster, Pod: s.pod, Protocol: "http"}
		}
		return s.identity("http", local, caller)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		if d, err := time.ParseDuration(r.URL.Query().Get("wait")); err == nil {
			select {
			case <-time.After(d):
			case <-r.Context().Done():
			}
		}
		fmt.Fprint(w, who(r))
	})
	mux.HandleFunc("/json", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(who(r)) // the caller went away
	})
	mux.HandleFunc("/readyz", func(w http.ResponseWriter, _ *http.Request) {
		if s.notReady.Load() {
			http.Error(w, "told not to be ready", http.StatusServiceUnavailable)
			return
		}
	})
	mux.HandleFunc("/set", func(w http.ResponseWriter, r *http.Request) {
		ready, err := strconv.ParseBool(r.URL.Query().Get("ready"))
		if err != nil {
			http.Error(w, "say ready=true or ready=false", http.StatusBadRequest)
			return
		}
		s.notReady.Store(!ready)
	})
	return mux
}

// serveTCP says who it is, then sends every line back.
func (s *server) serveTCP(l net.Listener) error {
	for {
		conn, err := l.Accept()
		if errors.Is(err, net.ErrClosed) {
			return err
		}
		if err != nil {
			continue
		}
		go func() {
			defer conn.Close()
			fmt.Fprint(conn, s.identity("tcp", conn.LocalAddr(), conn.RemoteAddr()))
			for lines := bufio.NewScanner(conn); lines.Scan(); {
				fmt.Fprintln(conn, lines.Text())
			}
		}()
	}
}

// serveUDP answers each packet with who it is and what the packet said.
func (s *server) serveUDP(conn net.PacketConn) error {
	buf := make([]byte, 64<<10)
	for {
		n, from, err := conn.ReadFrom(buf)
		if errors.Is(err, net.ErrClosed) {
			return err
		}
		if err != nil {
			continue // such as an ICMP error for an earlier answer
		}
		answer := s.identity("udp", conn.LocalAddr(), from).String() + string(buf[:n])
		_, _ = conn.WriteTo([]byte(answer), from) // as little can be done as about a lost packet
	}
}

// listenUDP listens on each address of the machine by itself: an answer from a
// socket that listens on all of them may leave with another source address.
func listenUDP(ctx context.Context, port int) ([]net.PacketConn, error) {
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		return nil, err
	}
	var conns []net.PacketConn
	for _, a := range addresses {
		ip, ok := a.(*net.IPNet)
		if !ok || ip.IP.IsLinkLocalUnicast() {
			continue
		}
		conn, err := (&net.ListenConfig{}).ListenPacket(ctx, "udp", net.JoinHostPort(ip.IP.String(), strconv.Itoa(port)))
		if err != nil {
			return nil, err
		}
		conns = append(conns, conn)
	}
	return conns, nil
}
