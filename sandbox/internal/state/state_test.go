package state

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/namesake-io/namesake/sandbox/internal/plan"
	"github.com/namesake-io/namesake/sandbox/internal/process"
)

func TestSaveAndLoad(t *testing.T) {
	dir := t.TempDir()
	if _, err := Load(dir); !errors.Is(err, ErrNone) {
		t.Fatalf("loading from an empty directory: %v, want ErrNone", err)
	}
	want := &Fleet{
		Instance: "i",
		Phase:    Starting,
		Members:  1,
		Components: []Component{{
			Component: plan.Component{Name: "etcd", Ports: []int{2379}, Log: "logs/etcd.log", Argv: []string{"etcd"}, Tier: 1},
			ID:        process.ID{PID: 7, Start: 9},
		}},
		Faults: map[string]map[string]string{"member1": {"api-slow": "200ms"}},
	}
	if err := want.Save(dir); err != nil {
		t.Fatal(err)
	}
	got, err := Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("loaded (-want +got):\n%s", diff)
	}
	info, err := os.Stat(filepath.Join(dir, File))
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm() != 0o600 {
		t.Errorf("mode = %v, want 0600", info.Mode())
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(entries) != 1 {
		t.Errorf("files left: %v", entries)
	}
	if got.Component("etcd") == nil || got.Component("nobody") != nil {
		t.Error("looking up components by name is wrong")
	}
}

func TestWriteFileFailure(t *testing.T) {
	dir := t.TempDir()
	target := filepath.Join(dir, "taken")
	if err := os.MkdirAll(filepath.Join(target, "child"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := WriteFile(target, []byte("x")); err == nil {
		t.Fatal("a directory was overwritten")
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(entries) != 1 {
		t.Errorf("a failed write left %v", entries)
	}
}

func TestLoadRubbish(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, File), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(dir); err == nil || errors.Is(err, ErrNone) {
		t.Errorf("error = %v, want a parse error", err)
	}
}

func TestLockExcludes(t *testing.T) {
	dir := t.TempDir()
	unlock, err := Lock(t.Context(), dir, func() { t.Error("waited for a free lock") })
	if err != nil {
		t.Fatal(err)
	}

	ctx, cancel := context.WithCancel(t.Context())
	if _, err := Lock(ctx, dir, cancel); !errors.Is(err, context.Canceled) {
		t.Fatalf("taking a held lock: %v, want to wait until cancelled", err)
	}

	_, err = Lock(t.Context(), dir, unlock) // the holder gives it back once we wait
	if err != nil {
		t.Errorf("taking a lock that was given back: %v", err)
	}
}
