package process

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestParseStat(t *testing.T) {
	const tail = " S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 4242 20 21"
	tests := map[string]struct {
		line      string
		wantState string
		wantStart uint64
		wantErr   bool
	}{
		"plain":                {line: "12 (etcd)" + tail, wantState: "S", wantStart: 4242},
		"parentheses in name":  {line: "12 (a) R 1 (b)" + tail, wantState: "S", wantStart: 4242},
		"cut short":            {line: "12 (etcd) S 1 2", wantErr: true},
		"no name":              {line: "12", wantErr: true},
		"start is not a count": {line: "12 (etcd)" + strings.Replace(tail, "4242", "x", 1), wantErr: true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			state, start, err := parseStat(tt.line)
			if (err != nil) != tt.wantErr {
				t.Fatalf("error = %v, want one: %t", err, tt.wantErr)
			}
			if state != tt.wantState || start != tt.wantStart {
				t.Errorf("parsed %q, %d; want %q, %d", state, start, tt.wantState, tt.wantStart)
			}
		})
	}
}

func spawnSleep(t *testing.T, dir string) *Child {
	t.Helper()
	child, err := Spawn(dir, filepath.Join(t.TempDir(), "log"), []string{"/bin/sleep", "600"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := child.ID.End(context.Background(), 0); err != nil {
			t.Error(err)
		}
	})
	return child
}

func TestLifeOfAChild(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	child := spawnSleep(t, t.TempDir())
	if got := child.ID.State(); got != Running {
		t.Fatalf("state = %s after start", got)
	}

	if err := child.ID.Signal(unix.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	waitFor(ctx, t, child.ID, Stopped)

	// SIGTERM alone would wait for ever on a stopped process.
	if err := child.ID.End(ctx, time.Minute); err != nil {
		t.Fatal(err)
	}
	if got := child.ID.State(); got != Dead {
		t.Errorf("state = %s after the end", got)
	}
	<-child.Exited
	if child.Err() == nil || !strings.Contains(child.Err().Error(), "terminated") {
		t.Errorf("ended with %v, want SIGTERM", child.Err())
	}
	if err := child.ID.Signal(unix.SIGTERM); err != nil {
		t.Errorf("signalling a dead process: %v", err)
	}
}

func waitFor(ctx context.Context, t *testing.T, id ID, want State) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for id.State() != want {
		select {
		case <-ctx.Done():
			t.Fatalf("process %d is %s, want %s", id.PID, id.State(), want)
		case <-tick.C:
		}
	}
}

func TestReusedPIDIsNotSignalled(t *testing.T) {
	child := spawnSleep(t, t.TempDir())
	former := ID{PID: child.ID.PID, Start: child.ID.Start - 1}
	if got := former.State(); got != Dead {
		t.Errorf("former owner of the pid is %s", got)
	}
	if err := former.End(t.Context(), time.Second); err != nil {
		t.Fatal(err)
	}
	if got := child.ID.State(); got != Running {
		t.Errorf("the pid's new owner is %s, want it left alone", got)
	}
}

func TestMarked(t *testing.T) {
	dir, other := t.TempDir(), t.TempDir()
	child := spawnSleep(t, dir)
	spawnSleep(t, other)

	found, err := Marked(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(found) != 1 || found[0] != child.ID {
		t.Errorf("found %v, want %v alone", found, child.ID)
	}
	if err := child.ID.End(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	if found, err = Marked(dir); err != nil || len(found) != 0 {
		t.Errorf("found %v, %v after the end", found, err)
	}
}
