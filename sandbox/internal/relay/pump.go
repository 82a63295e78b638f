package relay

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"golang.org/x/sys/unix"
)

const (
	chunkSize = 16 << 10
	// lineLength bounds what is on its way in one direction: 4 MiB, so that a
	// path of 200 ms still carries some 40 MB/s.
	lineLength = 256
)

// chunk is what one read gave, and when it may be written.
type chunk struct {
	data []byte
	due  time.Time
	end  bool // the source has nothing more to say
}

// pump carries one direction until its source ends.
func (l *link) pump(ctx context.Context, dst, src net.Conn) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	line := make(chan chunk, lineLength)
	failed := make(chan error, 1)
	go func() { failed <- l.fill(ctx, line, src) }()
	for {
		select {
		case c := <-line:
			done, err := l.deliver(ctx, dst, c)
			if err != nil || done {
				return err
			}
		case err := <-failed:
			if err != nil {
				return err
			}
			failed = nil // the end stands in the line
		}
	}
}

// fill reads until the source ends, without waiting for what it has read to be
// delivered.
func (l *link) fill(ctx context.Context, line chan<- chunk, src io.Reader) error {
	for {
		buf := make([]byte, chunkSize)
		n, err := src.Read(buf)
		c, _ := l.conditions()
		next := chunk{data: buf[:n], due: time.Now().Add(c.Delay / 2), end: errors.Is(err, io.EOF)}
		if err != nil && !next.end {
			// What the source said before it broke is lost with it, as on a
			// reset.
			return fmt.Errorf("reading: %w", err)
		}
		select {
		case line <- next:
		case <-ctx.Done():
			return ctx.Err()
		}
		if next.end {
			return nil
		}
	}
}

// deliver writes one chunk when it is due and the gate is open, and reports
// whether it was the last.
func (l *link) deliver(ctx context.Context, dst net.Conn, c chunk) (done bool, err error) {
	if err := sleep(ctx, time.Until(c.due)); err != nil {
		return false, err
	}
	if err := l.pass(ctx); err != nil {
		return false, err
	}
	if len(c.data) > 0 {
		if _, err := dst.Write(c.data); err != nil {
			return false, fmt.Errorf("writing: %w", err)
		}
	}
	if !c.end {
		return false, nil
	}
	return true, closeWrite(dst)
}

// closeWrite passes the end of a stream on, and leaves the other direction open
// where the connection can do that.
func closeWrite(conn net.Conn) error {
	half, ok := conn.(interface{ CloseWrite() error })
	if !ok {
		return conn.Close()
	}
	if err := half.CloseWrite(); !errors.Is(err, unix.ENOTCONN) { // the other side has already left
		return err
	}
	return nil
}
