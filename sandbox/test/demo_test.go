package test

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/namesake-io/namesake/sandbox/internal/process"
)

// demo returns the command, and the directory in which it makes its own.
func demo(t *testing.T, stdout, stderr *output) (*exec.Cmd, string) {
	t.Helper()
	bin := binDir(t)
	for _, name := range []string{"controller-manager", "namesakectl"} {
		if _, err := exec.LookPath(filepath.Join(bin, name)); err != nil {
			t.Fatalf("the demo needs %s: run `make build` (%v)", name, err)
		}
	}
	parent := t.TempDir()
	cmd := command(stdout, stderr, "demo", "--bin-dir", bin)
	cmd.Env = append(cmd.Env, "TMPDIR="+parent)
	return cmd, parent
}

// fleets returns the directories of the fleets below a directory, and sees to it
// that a test which fails leaves none of them.
func fleets(t *testing.T, parent string) []string {
	t.Helper()
	dirs, err := filepath.Glob(filepath.Join(parent, "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range dirs {
		t.Cleanup(func() {
			if _, stderr, err := sandbox(t, "down", "--dir", dir); err != nil {
				t.Errorf("down: %v\n%s", err, stderr)
			}
		})
	}
	return dirs
}

// The story holds on real control planes, and leaves nothing.
func TestDemo(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a minute")
	}
	var stdout, stderr output
	cmd, parent := demo(t, &stdout, &stderr)
	err := cmd.Run()
	t.Logf("the story:\n%s", stdout.String())
	left := fleets(t, parent)
	if err != nil || len(left) > 0 {
		t.Fatalf("demo: %v, left %v\n%s", err, left, stderr.String())
	}
	steps := "7"
	if strings.Contains(stdout.String(), "Packets") {
		steps = "8"
	}
	for _, want := range []string{"\n1/" + steps + "  ", "\n" + steps + "/" + steps + "  ", "\nWhat was measured\n", "member2  member1-echo-"} {
		if !strings.Contains(stdout.String(), want) {
			t.Errorf("the story does not say %q", want)
		}
	}
	for line := range strings.Lines(stdout.String()) {
		if len([]rune(line)) > 101 || strings.Contains(line, "\x1b") {
			t.Errorf("this line is too wide, or coloured: %q", line)
		}
	}
}

// However a demo is ended, it takes its fleet down.
func TestDemoEndedEarly(t *testing.T) {
	tests := map[string]func(t *testing.T, cmd *exec.Cmd, reader *os.File){
		"interrupted": func(t *testing.T, cmd *exec.Cmd, _ *os.File) {
			if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
				t.Fatal(err)
			}
		},
		"nobody reads": func(_ *testing.T, _ *exec.Cmd, reader *os.File) { reader.Close() },
	}
	for name, end := range tests {
		t.Run(name, func(t *testing.T) {
			var stderr output
			cmd, parent := demo(t, nil, &stderr)
			reader, writer, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer reader.Close()
			cmd.Stdout = writer
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			writer.Close() // the child has its own
			begin := make([]byte, 1<<12)
			for told := ""; !strings.Contains(told, "etcd ready"); {
				n, err := reader.Read(begin)
				if err != nil {
					t.Fatalf("the story ends with %q: %v\n%s", told, err, stderr.String())
				}
				told += string(begin[:n])
			}
			dirs := fleets(t, parent)
			if len(dirs) != 1 || len(marked(t, dirs[0])) == 0 {
				t.Errorf("fleets in %v, want one that runs", dirs)
			}
			end(t, cmd, reader)
			if err := waitReading(cmd, reader); err == nil || !strings.Contains(stderr.String(), "interrupted; the fleet is taken down") {
				t.Errorf("demo: %v, said %q", err, stderr.String())
			}
			for _, dir := range dirs {
				if found, err := process.Marked(dir); err != nil || len(found) > 0 {
					t.Errorf("processes left: %v, %v", found, err)
				}
			}
			if left := fleets(t, parent); len(left) > 0 {
				t.Errorf("left %v", left)
			}
		})
	}
}

// waitReading waits for the end of a command, and lets it say all that it wants.
func waitReading(cmd *exec.Cmd, reader *os.File) error {
	go func() { _, _ = io.Copy(io.Discard, reader) }()
	return cmd.Wait()
}
