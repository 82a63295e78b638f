package node

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/virtual-kubelet/virtual-kubelet/node/api"
)

// logFile keeps what a container prints, each line after its time. It may be
// written by several goroutines.
type logFile struct {
	mu   sync.Mutex
	file *os.File
	part []byte // of a line whose end has yet to come
}

func newLog(path string) (*logFile, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("making a log directory: %w", err)
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("making a log: %w", err)
	}
	return &logFile{file: file}, nil
}

// maxLine is where a line is cut, so that one without end needs no memory.
const maxLine = 16 << 10

// Write never fails: a full disk is no reason to break a container's pipe.
func (l *logFile) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.part = append(l.part, p...)
	for {
		i := bytes.IndexByte(l.part, '\n')
		if i < 0 && len(l.part) < maxLine {
			return len(p), nil
		}
		if i < 0 {
			i = len(l.part) - 1
		}
		l.line(l.part[:i+1])
		l.part = l.part[i+1:]
	}
}

func (l *logFile) line(text []byte) {
	_, _ = fmt.Fprintf(l.file, "%s %s\n", time.Now().UTC().Format(time.RFC3339Nano), bytes.TrimSuffix(text, []byte("\n")))
}

// Close writes the last line, whole or not.
func (l *logFile) Close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.part) > 0 {
		l.line(l.part)
		l.part = nil
	}
	l.file.Close()
}

// followInterval is how often a followed log is looked at.
const followInterval = 50 * time.Millisecond

// logs returns what a container printed, as the options want it. ended tells
// whether the run that prints has ended.
func logs(ctx context.Context, path string, o api.ContainerLogOpts, ended func() bool) (io.ReadCloser, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("opening the log: %w", err)
	}
	reader, writer := io.Pipe()
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		defer cancel()
		defer file.Close()
		writer.CloseWithError(copyLog(ctx, writer, file, logWish{ContainerLogOpts: o, ended: ended}))
	}()
	return &cancelReader{PipeReader: reader, cancel: cancel}, nil
}

// cancelReader ends the copying when its reader has had enough.
type cancelReader struct {
	*io.PipeReader
	cancel context.CancelFunc
}

func (r *cancelReader) Close() error {
	r.cancel()
	return r.PipeReader.Close()
}

type logWish struct {
	api.ContainerLogOpts
	ended func() bool
}

func copyLog(ctx context.Context, w io.Writer, file io.Reader, wish logWish) error {
	lines := bufio.NewReaderSize(file, 2*maxLine)
	var (
		kept []string // the last ones, when only these are wanted
		part string
		end  bool // the first end of the file was seen
	)
	limited := &limitWriter{w: w, left: wish.LimitBytes, limited: wish.LimitBytes > 0}
	for {
		finished := wish.ended() // asked before reading: nothing is printed later
		text, err := lines.ReadString('\n')
		part += text
		switch {
		case err == nil:
			line, ok := wish.format(part)
			part = ""
			if ok && wish.Tail > 0 && !end {
				if kept = append(kept, line); len(kept) > wish.Tail {
					kept = kept[1:]
				}
			} else if ok {
				if _, err := io.WriteString(limited, line); err != nil {
					return err
				}
			}
		case !errors.Is(err, io.EOF):
			return err
		default:
			if _, err := io.WriteString(limited, strings.Join(kept, "")); err != nil {
				return err
			}
			kept, end = nil, true
			if !wish.Follow || finished || limited.done() {
				return nil
			}
			pause(ctx, followInterval)
			if ctx.Err() != nil {
				return nil
			}
		}
	}
}

// format returns a stored line as it is wanted, and whether it is.
func (o logWish) format(stored string) (string, bool) {
	stamp, text, _ := strings.Cut(stored, " ")
	at, err := time.Parse(time.RFC3339Nano, stamp)
	if err != nil {
		return stored, true
	}
	if o.SinceSeconds > 0 && time.Since(at) > time.Duration(o.SinceSeconds)*time.Second || at.Before(o.SinceTime) {
		return "", false
	}
	if o.Timestamps {
		return stored, true
	}
	return text, true
}

// limitWriter drops what exceeds its limit.
type limitWriter struct {
	w       io.Writer
	left    int
	limited bool
}

func (l *limitWriter) done() bool { return l.limited && l.left == 0 }

func (l *limitWriter) Write(p []byte) (int, error) {
	n := len(p)
	if l.limited {
		n = min(n, l.left)
		l.left -= n
	}
	if n == 0 {
		return len(p), nil
	}
	if _, err := l.w.Write(p[:n]); err != nil {
		return 0, err
	}
	return len(p), nil
}
