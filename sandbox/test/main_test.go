package test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/namesake-io/namesake/sandbox/internal/cli"
	"github.com/namesake-io/namesake/sandbox/internal/fleet"
	"github.com/namesake-io/namesake/sandbox/internal/process"
)

// asSandbox in the environment makes the test binary the sandbox command, so
// that it can be killed, and can start itself as a relay, like the real one.
const asSandbox = "NAMESAKE_TEST_AS_SANDBOX"

func TestMain(m *testing.M) {
	switch name := filepath.Base(os.Args[0]); {
	case name == "namesakectl":
		os.Exit(stubCtl())
	case name == "controller-manager":
		fmt.Fprintln(os.Stderr, stubManager())
		os.Exit(1)
	case os.Getenv(asSandbox) != "", len(os.Args) > 1 && !strings.HasPrefix(os.Args[1], "-"):
		// The second is how a container begins, in an environment of its own.
		os.Exit(runSandbox())
	}
	os.Exit(m.Run())
}

func runSandbox() int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := cli.New("test").ExecuteContext(ctx); err != nil {
		return cli.Exit(err, os.Stderr)
	}
	return 0
}

// calls is the file, beside the stubs, in which they note their arguments.
func calls() string { return filepath.Join(filepath.Dir(os.Args[0]), "calls") }

func noteCall() error {
	f, err := os.OpenFile(calls(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = fmt.Fprintln(f, filepath.Base(os.Args[0]), strings.Join(os.Args[1:], " "))
	return err
}

// stubCtl stands in for namesakectl. It fails to join whom the file "refuse"
// beside it names.
func stubCtl() int {
	if err := noteCall(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	refuse, _ := os.ReadFile(filepath.Join(filepath.Dir(os.Args[0]), "refuse"))
	if len(refuse) > 0 && len(os.Args) > 2 && os.Args[2] == string(refuse) {
		fmt.Fprintln(os.Stderr, "namesakectl: stubbornly refusing")
		return 1
	}
	return 0
}

// stubManager stands in for controller-manager: it is ready until it is told to
// end.
func stubManager() error {
	if err := noteCall(); err != nil {
		return err
	}
	var address string
	for i, arg := range os.Args {
		if arg == "--health-probe-bind-address" {
			address = os.Args[i+1]
		}
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/readyz", func(http.ResponseWriter, *http.Request) {})
	return http.ListenAndServe(address, mux)
}

// binDir is where the programs are.
func binDir(t *testing.T) string {
	t.Helper()
	dir := os.Getenv("NAMESAKE_BIN")
	if dir == "" {
		dir = filepath.Join("..", "..", "bin")
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := exec.LookPath(filepath.Join(dir, "kubebox")); err != nil {
		t.Fatalf("these tests need kubebox: run `make build-kubebox` (%v)", err)
	}
	return dir
}

// output collects what a command prints while it runs.
type output struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.String()
}

// sandbox runs the command and returns what it printed.
func sandbox(t *testing.T, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	var out, errs output
	cmd := command(&out, &errs, args...)
	err = cmd.Run()
	return out.String(), errs.String(), err
}

func command(stdout, stderr *output, args ...string) *exec.Cmd {
	self, err := os.Executable()
	if err != nil {
		panic(err)
	}
	cmd := exec.Command(self, args...)
	cmd.Env = append(os.Environ(), asSandbox+"=1")
	cmd.Stdout, cmd.Stderr = stdout, stderr
	return cmd
}

// must runs the command and fails the test if it does.
func must(t *testing.T, args ...string) string {
	t.Helper()
	stdout, stderr, err := sandbox(t, args...)
	if err != nil {
		t.Fatalf("sandbox %s: %v\n%s", strings.Join(args, " "), err, stderr)
	}
	return stdout
}

// mustFail runs the command and wants it to fail with the given words.
func mustFail(t *testing.T, want string, args ...string) {
	t.Helper()
	_, stderr, err := sandbox(t, args...)
	if err == nil || !strings.Contains(stderr, want) {
		t.Errorf("sandbox %s: %v, said %q; want it to fail with %q", strings.Join(args, " "), err, stderr, want)
	}
}

// newDir returns a directory for a fleet that does not exist yet, and sees to it
// that nothing of the fleet outlives the test.
func newDir(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "fleet")
	t.Cleanup(func() {
		if t.Failed() {
			showLogs(t, dir)
		}
		if _, stderr, err := sandbox(t, "down", "--dir", dir); err != nil {
			t.Errorf("down: %v\n%s", err, stderr)
		}
		checkNothingRuns(t, dir)
	})
	return dir
}

func showLogs(t *testing.T, dir string) {
	logs, err := filepath.Glob(filepath.Join(dir, "logs", "*.log"))
	if err != nil {
		t.Error(err)
	}
	for _, path := range logs {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Error(err)
		}
		lines := strings.Split(strings.TrimSpace(string(data)), "\n")
		t.Logf("the end of %s:\n%s", path, strings.Join(lines[max(0, len(lines)-10):], "\n"))
	}
}

func marked(t *testing.T, dir string) []process.ID {
	t.Helper()
	found, err := process.Marked(dir)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func checkNothingRuns(t *testing.T, dir string) {
	t.Helper()
	if left := marked(t, dir); len(left) > 0 {
		t.Errorf("processes left: %v", left)
	}
}

// checkOnlyLogs wants nothing in the fleet's directory but logs.
func checkOnlyLogs(t *testing.T, dir string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.Name() != "logs" {
			t.Errorf("%s is left", filepath.Join(dir, e.Name()))
		}
	}
}

func status(t *testing.T, dir string) fleet.Status {
	t.Helper()
	var s fleet.Status
	if err := json.Unmarshal([]byte(must(t, "status", "--dir", dir, "-o", "json")), &s); err != nil {
		t.Fatal(err)
	}
	return s
}

func component(t *testing.T, dir, name string) fleet.ComponentStatus {
	t.Helper()
	for _, c := range status(t, dir).Components {
		if c.Name == name {
			return c
		}
	}
	t.Fatalf("no component %s", name)
	return fleet.ComponentStatus{}
}

// eventually tries until it succeeds, for at most a minute.
func eventually(t *testing.T, what string, try func() error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		err := try()
		if err == nil {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("%s: %v", what, err)
		case <-tick.C:
		}
	}
}

// listen takes a port until the test ends, one above a port that is free. Both are
// below those that the kernel gives to connections, which come and go.
func listen(t *testing.T) int {
	t.Helper()
	for range 100 {
		port := 12000 + rand.N(15000)
		l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err != nil {
			continue
		}
		below, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port-1)))
		if err != nil {
			l.Close()
			continue
		}
		below.Close()
		t.Cleanup(func() { l.Close() })
		return port
	}
	t.Fatal("a hundred ports are taken")
	return 0
}
