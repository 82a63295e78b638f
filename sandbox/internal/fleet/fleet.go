package fleet

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/namesake-io/namesake/sandbox/internal/state"
)

// Fleet is what stands, or will stand, in one directory.
type Fleet struct {
	dir      string
	progress *Progress
}

// Open names the fleet in dir, which need not exist.
func Open(dir string, progress *Progress) (*Fleet, error) {
	path, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("finding %s: %w", dir, err)
	}
	f := &Fleet{dir: path, progress: progress}
	return f, f.resolve()
}

// resolve follows links, so that one directory has one mark and one lock.
func (f *Fleet) resolve() error {
	path, err := filepath.EvalSymlinks(f.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("finding %s: %w", f.dir, err)
	}
	f.dir = path
	return nil
}

func (f *Fleet) path(elem ...string) string {
	return filepath.Join(append([]string{f.dir}, elem...)...)
}

// lock takes the fleet's lock, and says so if it has to wait.
func (f *Fleet) lock(ctx context.Context) (func(), error) {
	return state.Lock(ctx, f.dir, func() {
		f.progress.Say("waiting for another command that is busy in %s", f.dir)
	})
}

// change runs fn on a fleet that is ready, under its lock.
func (f *Fleet) change(ctx context.Context, fn func(*state.Fleet) error) error {
	if _, err := os.Stat(f.dir); err != nil {
		return f.none()
	}
	unlock, err := f.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	st, err := f.load()
	if err != nil {
		return err
	}
	if st.Phase != state.Ready {
		return fmt.Errorf("the fleet in %s never came up whole: take it down with `sandbox down --dir %s`", f.dir, f.dir)
	}
	return fn(st)
}

func (f *Fleet) load() (*state.Fleet, error) {
	st, err := state.Load(f.dir)
	if errors.Is(err, state.ErrNone) {
		return nil, f.none()
	}
	return st, err
}

func (f *Fleet) none() error {
	return fmt.Errorf("%w in %s: start one with `sandbox up --dir %s`", state.ErrNone, f.dir, f.dir)
}

// Progress tells a person what happens and when. It may be used concurrently.
type Progress struct {
	mu    sync.Mutex
	w     io.Writer
	start time.Time
}

// NewProgress writes to w, with times counted from now.
func NewProgress(w io.Writer) *Progress {
	return &Progress{w: w, start: time.Now()}
}

// Say writes one line. A terminal that went away is no reason to fail.
func (p *Progress) Say(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	text := strings.TrimRight(fmt.Sprintf(format, args...), "\n")
	_, _ = fmt.Fprintf(p.w, "%6.1fs  %s\n", time.Since(p.start).Seconds(), text)
}
