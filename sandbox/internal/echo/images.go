package echo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"time"
)

const page = `<!DOCTYPE html>
<html>
<head><title>Welcome to nginx!</title></head>
<body><h1>Welcome to nginx!</h1><p>A static page of the Namesake sandbox.</p></body>
</html>
`

// ServePage serves one static page, as a web server does that nobody configured.
func ServePage(ctx context.Context, port int) error {
	return serveHTTP(ctx, port, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = io.WriteString(w, page) // the caller went away
	}))
}

// ServeHostname answers with the pod's name, as agnhost serve-hostname does.
func ServeHostname(ctx context.Context, port int) error {
	name, err := os.Hostname()
	if err != nil {
		return fmt.Errorf("finding the pod's name: %w", err)
	}
	return serveHTTP(ctx, port, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, name) }))
}

// ServeNetexec answers over HTTP and UDP, as agnhost netexec does.
func ServeNetexec(ctx context.Context, httpPort, udpPort int) error {
	name, err := os.Hostname()
	if err != nil {
		return fmt.Errorf("finding the pod's name: %w", err)
	}
	if udpPort > 0 {
		conns, err := listenUDP(ctx, udpPort)
		if err != nil {
			return fmt.Errorf("serving UDP: %w", err)
		}
		for _, conn := range conns {
			go answerNetexec(conn, name)
		}
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintf(w, "NOW: %v", time.Now()) })
	mux.HandleFunc("/hostname", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, name) })
	mux.HandleFunc("/hostName", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, name) })
	mux.HandleFunc("/clientip", func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, r.RemoteAddr) })
	mux.HandleFunc("/echo", func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, r.FormValue("msg")) })
	mux.HandleFunc("/healthz", func(http.ResponseWriter, *http.Request) {})
	return serveHTTP(ctx, httpPort, mux)
}

func answerNetexec(conn net.PacketConn, name string) {
	buf := make([]byte, 64<<10)
	for {
		n, from, err := conn.ReadFrom(buf)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			continue
		}
		var answer string
		switch word, rest, _ := strings.Cut(strings.TrimSpace(string(buf[:n])), " "); strings.ToLower(word) {
		case "hostname":
			answer = name
		case "clientip":
			answer = from.String()
		case "echo":
			answer = rest
		}
		_, _ = conn.WriteTo([]byte(answer), from) // as little can be done as about a lost packet
	}
}

// Connect fails unless a TCP connection can be made in time, as agnhost connect.
func Connect(ctx context.Context, address string, timeout time.Duration) error {
	conn, err := (&net.Dialer{Timeout: timeout}).DialContext(ctx, "tcp", address)
	if err != nil {
		return err
	}
	return conn.Close()
}

func serveHTTP(ctx context.Context, port int, handler http.Handler) error {
	l, err := net.Listen("tcp", portOf(port))
	if err != nil {
		return fmt.Errorf("serving HTTP: %w", err)
	}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second}
	context.AfterFunc(ctx, func() { _ = server.Close() }) // nobody is left to hear an error
	if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serving HTTP: %w", err)
	}
	return nil
}
