package relay

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// echo serves a loopback port that sends back what it gets.
func echo(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				_, _ = io.Copy(conn, conn) // ends when the test closes or breaks the connection
			}()
		}
	}()
	return listener.Addr().String()
}

func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}

// start runs a relay whose socket path is longer than a socket address.
func start(t *testing.T, config Config) (configFile, socket string) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), strings.Repeat("long", 40))
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	configFile, socket = filepath.Join(dir, "relay.json"), filepath.Join(dir, "relay.sock")
	if err := config.Write(configFile); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() {
		done <- Run(ctx, Options{Config: configFile, Socket: socket, Logger: slog.New(slog.DiscardHandler)})
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("relay ended: %v", err)
		}
	})
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for {
		conn, err := Dial(t.Context(), socket)
		if err == nil {
			conn.Close()
			return configFile, socket
		}
		<-tick.C
	}
}

func TestRelayOverLoopback(t *testing.T) {
	path := Path{Member: "member1", Listen: freeAddress(t), Target: echo(t)}
	file, socket := start(t, Config{Paths: []Path{path}})
	reload := func(p Path) {
		t.Helper()
		if err := (Config{Paths: []Path{p}}).Write(file); err != nil {
			t.Fatal(err)
		}
		if err := Reload(t.Context(), socket); err != nil {
			t.Fatal(err)
		}
	}
	roundTrip := func(conn net.Conn, wait time.Duration) error {
		t.Helper()
		if err := conn.SetDeadline(time.Now().Add(wait)); err != nil {
			t.Fatal(err)
		}
		if _, err := conn.Write([]byte("x")); err != nil {
			return err
		}
		_, err := io.ReadFull(conn, make([]byte, 1))
		return err
	}
	dial := func() net.Conn {
		t.Helper()
		conn, err := net.Dial("tcp", path.Listen)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		return conn
	}

	existing := dial()
	if err := roundTrip(existing, time.Minute); err != nil {
		t.Fatalf("over a whole path: %v", err)
	}

	cut := path
	cut.Cut = true
	reload(cut)
	for name, conn := range map[string]net.Conn{"existing": existing, "new": dial()} {
		if err := roundTrip(conn, 50*time.Millisecond); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%s connection over a cut path: %v, want it to time out", name, err)
		}
	}

	reload(path)
	if err := existing.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(existing, make([]byte, 1)); err != nil {
		t.Errorf("what was sent into the cut path did not arrive after it healed: %v", err)
	}

	slow := path
	slow.Delay = "100ms"
	reload(slow)
	begin := time.Now()
	if err := roundTrip(existing, time.Minute); err != nil {
		t.Fatal(err)
	}
	if got := time.Since(begin); got < 100*time.Millisecond {
		t.Errorf("a round trip took %v over a path that adds 100ms", got)
	}
}

func TestRelayPassesARefusalOn(t *testing.T) {
	path := Path{Member: "member1", Listen: freeAddress(t), Target: freeAddress(t)}
	start(t, Config{Paths: []Path{path}})
	conn, err := net.Dial("tcp", path.Listen)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("reading from a path to a dead server: %v, want the connection closed", err)
	}
}

func TestReloadRefusesRubbish(t *testing.T) {
	path := Path{Member: "member1", Listen: freeAddress(t), Target: echo(t)}
	file, socket := start(t, Config{Paths: []Path{path}})
	bad := path
	bad.Delay = "soon"
	unknown := path
	unknown.Member = "member2"
	for want, p := range map[string]Path{"parsing the delay of member1": bad, "no path leads to member2": unknown} {
		if err := (Config{Paths: []Path{p}}).Write(file); err != nil {
			t.Fatal(err)
		}
		if err := Reload(t.Context(), socket); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error = %v, want %q", err, want)
		}
	}
}

func TestReloadWithoutARelay(t *testing.T) {
	err := Reload(t.Context(), filepath.Join(t.TempDir(), "relay.sock"))
	if err == nil || !strings.Contains(err.Error(), "reaching the relay") {
		t.Errorf("error = %v", err)
	}
}
