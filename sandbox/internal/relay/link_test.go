package relay

import (
	"context"
	"errors"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"
)

// fixture is a link with one connection over in-memory pipes: what the client
// writes arrives at the server, and the other way round. It is for use in a
// synctest bubble, where time is virtual.
type fixture struct {
	link           *link
	client, server net.Conn
	dialled        <-chan time.Time
	served         <-chan error
}

func newFixture(t *testing.T, c Conditions) *fixture {
	t.Helper()
	client, clientSide := net.Pipe()
	serverSide, server := net.Pipe()
	dialled, served := make(chan time.Time, 1), make(chan error, 1)
	l := newLink(c, func(context.Context) (net.Conn, error) {
		dialled <- time.Now()
		return serverSide, nil
	})
	ctx, cancel := context.WithCancel(t.Context())
	go func() { served <- l.serve(ctx, clientSide) }()
	t.Cleanup(func() {
		cancel()
		client.Close()
		server.Close()
	})
	return &fixture{link: l, client: client, server: server, dialled: dialled, served: served}
}

// send writes at one end and returns how long it takes to arrive at the other.
func send(t *testing.T, from, to net.Conn, text string) time.Duration {
	t.Helper()
	start := time.Now()
	go func() {
		if _, err := from.Write([]byte(text)); err != nil {
			t.Errorf("writing %q: %v", text, err)
		}
	}()
	return receive(t, to, text).Sub(start)
}

func receive(t *testing.T, conn net.Conn, want string) time.Time {
	t.Helper()
	buf := make([]byte, len(want))
	if _, err := io.ReadFull(conn, buf); err != nil {
		t.Fatalf("reading %q: %v", want, err)
	}
	if string(buf) != want {
		t.Fatalf("read %q, want %q", buf, want)
	}
	return time.Now()
}

func TestDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		f := newFixture(t, Conditions{Delay: 200 * time.Millisecond})
		if got := (<-f.dialled).Sub(start); got != 200*time.Millisecond {
			t.Errorf("a connection took %v, want one round trip", got)
		}
		there := send(t, f.client, f.server, "ping")
		back := send(t, f.server, f.client, "pong")
		if there != 100*time.Millisecond || back != 100*time.Millisecond {
			t.Errorf("directions took %v and %v, want half a round trip each", there, back)
		}

		f.link.set(Conditions{})
		if got := send(t, f.client, f.server, "fast"); got != 0 {
			t.Errorf("without a delay it took %v", got)
		}
	})
}

// A delay must not become a limit on bandwidth: chunks travel side by side.
func TestDelayKeepsBandwidth(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, Conditions{Delay: 200 * time.Millisecond})
		<-f.dialled
		start := time.Now()
		go func() {
			for range 100 {
				if _, err := f.client.Write(make([]byte, chunkSize)); err != nil {
					t.Error(err)
				}
			}
		}()
		if _, err := io.ReadFull(f.server, make([]byte, 100*chunkSize)); err != nil {
			t.Fatal(err)
		}
		if got := time.Since(start); got != 100*time.Millisecond {
			t.Errorf("100 chunks took %v, want as long as one", got)
		}
	})
}

func TestCutHangsAndHeals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, Conditions{})
		<-f.dialled
		send(t, f.client, f.server, "before")

		f.link.set(Conditions{Cut: true})
		if _, err := f.client.Write([]byte("during")); err != nil {
			t.Fatalf("writing into a cut path: %v, want it to vanish without a word", err)
		}
		for name, conn := range map[string]net.Conn{"client": f.client, "server": f.server} {
			if err := conn.SetReadDeadline(time.Now().Add(time.Hour)); err != nil {
				t.Fatal(err)
			}
			var timeout net.Error
			if _, err := conn.Read(make([]byte, 1)); !errors.As(err, &timeout) || !timeout.Timeout() {
				t.Fatalf("%s read %v on a cut path, want nothing for an hour", name, err)
			}
			if err := conn.SetReadDeadline(time.Time{}); err != nil {
				t.Fatal(err)
			}
		}

		f.link.set(Conditions{})
		receive(t, f.server, "during")
		send(t, f.server, f.client, "after")
	})
}

func TestNewConnectionOnCutPath(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, Conditions{Cut: true})
		time.Sleep(time.Hour) // virtual
		synctest.Wait()
		select {
		case <-f.dialled:
			t.Fatal("the server was dialled over a cut path")
		case err := <-f.served:
			t.Fatalf("the connection ended with %v, want it to hang", err)
		default:
		}
		f.link.set(Conditions{})
		<-f.dialled
		send(t, f.client, f.server, "hello")
	})
}

// The end of a stream is a message like any other: it waits for the path.
func TestEndOfStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, Conditions{})
		<-f.dialled
		f.link.set(Conditions{Cut: true})
		f.client.Close()
		synctest.Wait()
		select {
		case err := <-f.served:
			t.Fatalf("the end passed a cut path (%v)", err)
		default:
		}
		f.link.set(Conditions{})
		if n, err := f.server.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
			t.Fatalf("server read %d, %v; want the end of the stream", n, err)
		}
	})
}

func TestServeEndsWithContext(t *testing.T) {
	for name, c := range map[string]Conditions{"whole": {}, "cut": {Cut: true}, "slow": {Delay: time.Hour}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client, clientSide := net.Pipe()
				serverSide, server := net.Pipe()
				defer client.Close()
				defer server.Close()
				l := newLink(c, func(context.Context) (net.Conn, error) { return serverSide, nil })
				ctx, cancel := context.WithCancel(t.Context())
				served := make(chan error, 1)
				go func() { served <- l.serve(ctx, clientSide) }()
				synctest.Wait()
				cancel()
				if err := <-served; err == nil {
					t.Error("a broken connection is reported as whole")
				}
			})
		})
	}
}
