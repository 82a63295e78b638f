package test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// start begins an up and returns when it has said the given words.
func start(t *testing.T, words string, args ...string) (stderr *output, signal func(syscall.Signal), wait func() error) {
	t.Helper()
	stderr = &output{}
	cmd := command(&output{}, stderr, args...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	var result error
	go func() {
		result = cmd.Wait()
		close(ended)
	}()
	wait = func() error {
		<-ended
		return result
	}
	signal = func(s syscall.Signal) {
		t.Helper()
		if err := cmd.Process.Signal(s); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // has ended already, if all went well
		<-ended
	})
	eventually(t, "waiting for "+words, func() error {
		if strings.Contains(stderr.String(), words) {
			return nil
		}
		return fmt.Errorf("it said %q", stderr.String())
	})
	return stderr, signal, wait
}

// An up that is killed leaves processes; the next down or up finds them all.
func TestKilledHalfWay(t *testing.T) {
	dir, bin := newDir(t), binDir(t)
	up := []string{"up", "--bare", "--dir", dir, "--members", "0", "--bin-dir", bin}

	_, signal, wait := start(t, "etcd ready", up...)
	signal(syscall.SIGKILL)
	if err := wait(); err == nil {
		t.Fatal("up ended well before it could be killed")
	}
	left := marked(t, dir)
	if len(left) == 0 {
		t.Fatal("nothing was left, so nothing is tested")
	}
	mustFail(t, "never came up whole", "kill", "--dir", dir, "etcd")
	must(t, "down", "--dir", dir)
	checkNothingRuns(t, dir)
	checkOnlyLogs(t, dir)

	// The same, but with a record that knows nothing of the processes.
	_, signal, wait = start(t, "etcd ready", up...)
	signal(syscall.SIGKILL)
	if err := wait(); err == nil {
		t.Fatal("up ended well before it could be killed")
	}
	left = marked(t, dir)
	if err := os.WriteFile(filepath.Join(dir, "state.json"), []byte(`{"phase":`), 0o600); err != nil {
		t.Fatal(err)
	}
	_, stderr, err := sandbox(t, up...)
	if err != nil || !strings.Contains(stderr, "cleaning up") {
		t.Fatalf("up after a killed up: %v, said %q", err, stderr)
	}
	for _, id := range left {
		if slices.Contains(marked(t, dir), id) {
			t.Errorf("process %d of the killed fleet lives on", id.PID)
		}
	}

	// A fleet whose processes have all died makes room as well.
	for _, c := range status(t, dir).Components {
		must(t, "kill", "--dir", dir, c.Name)
	}
	checkNothingRuns(t, dir)
	if _, stderr, err := sandbox(t, up...); err != nil || !strings.Contains(stderr, "cleaning up") {
		t.Errorf("up over a dead fleet: %v, said %q", err, stderr)
	}
}

func TestInterruptedUp(t *testing.T) {
	dir := newDir(t)
	stderr, signal, wait := start(t, "etcd ready", "up", "--bare", "--dir", dir, "--members", "1", "--bin-dir", binDir(t))
	signal(syscall.SIGINT)
	if err := wait(); err == nil {
		t.Error("an interrupted up says that all is well")
	}
	if !strings.Contains(stderr.String(), "interrupted") {
		t.Errorf("it said %q", stderr)
	}
	checkNothingRuns(t, dir)
	checkOnlyLogs(t, dir)
}

// Two fleets side by side: one in the foreground, which ends with its command,
// and one that is not touched by that.
func TestTwoFleets(t *testing.T) {
	first, second, bin := newDir(t), newDir(t), binDir(t)
	_, signal, wait := start(t, "Ctrl-C takes it down", "up", "--bare", "--foreground", "--dir", first, "--members", "0", "--bin-dir", bin)
	must(t, "up", "--bare", "--dir", second, "--members", "0", "--bin-dir", bin)
	signal(syscall.SIGTERM)
	if err := wait(); err != nil {
		t.Errorf("up in the foreground: %v", err)
	}
	checkNothingRuns(t, first)
	checkOnlyLogs(t, first)
	for _, c := range status(t, second).Components {
		if c.State != "running" {
			t.Errorf("%s of the other fleet is %s", c.Name, c.State)
		}
	}
}

// stubs makes a directory of programs with the real kubebox and our stand-ins.
func stubs(t *testing.T) string {
	t.Helper()
	bin := t.TempDir()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for name, target := range map[string]string{
		"kubebox": filepath.Join(binDir(t), "kubebox"), "namesakectl": self, "controller-manager": self,
	} {
		if err := os.Symlink(target, filepath.Join(bin, name)); err != nil {
			t.Fatal(err)
		}
	}
	return bin
}

// TestPlainUp checks what is asked of our own programs, with stand-ins for them.
func TestPlainUp(t *testing.T) {
	dir, bin := newDir(t), stubs(t)
	must(t, "up", "--dir", dir, "--members", "1", "--bin-dir", bin, "--controller-manager-arg", "--v=4")

	data, err := os.ReadFile(filepath.Join(bin, "calls"))
	if err != nil {
		t.Fatal(err)
	}
	hub := filepath.Join(dir, "hub.kubeconfig")
	want := []string{
		"namesakectl install --kubeconfig " + hub,
		"controller-manager --kubeconfig " + hub + " --metrics-bind-address 127.0.0.1:",
		"namesakectl join member1 --kubeconfig " + hub + " --cluster-kubeconfig " + filepath.Join(dir, "hub-paths", "member1.kubeconfig"),
	}
	got := strings.Split(strings.TrimSpace(string(data)), "\n")
	if len(got) != len(want) {
		t.Fatalf("calls:\n%s", data)
	}
	for i := range want {
		if !strings.HasPrefix(got[i], want[i]) {
			t.Errorf("call %d is %q, want %q", i, got[i], want[i])
		}
	}
	if !strings.HasSuffix(got[1], " --leader-elect-identity=controller-manager --v=4") {
		t.Errorf("controller-manager's arguments are %q", got[1])
	}

	before := component(t, dir, "controller-manager")
	must(t, "restart", "--dir", dir, "controller-manager")
	after := component(t, dir, "controller-manager")
	if before.PID == after.PID || after.State != "running" {
		t.Errorf("was %+v, is %+v after a restart", before, after)
	}
	must(t, "down", "--dir", dir)
	checkNothingRuns(t, dir)

	if err := os.WriteFile(filepath.Join(bin, "refuse"), []byte("member1"), 0o600); err != nil {
		t.Fatal(err)
	}
	mustFail(t, "namesakectl: stubbornly refusing", "up", "--dir", dir, "--members", "1", "--bin-dir", bin)
	checkNothingRuns(t, dir)
	checkOnlyLogs(t, dir)
}

func TestFailedStart(t *testing.T) {
	broken := t.TempDir()
	script := "#!/bin/sh\necho \"$1 has no wish to live\"\nexit 3\n"
	if err := os.WriteFile(filepath.Join(broken, "kubebox"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	foreign := t.TempDir()
	if err := os.WriteFile(filepath.Join(foreign, "kubeconfig"), []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	empty, port, bin := t.TempDir(), listen(t), binDir(t)

	tests := map[string]struct {
		args []string
		want string
	}{
		"program fails": {
			[]string{"--bin-dir", broken},
			"etcd ended before it was ready: exit status 3\nthe end of DIR/logs/etcd.log:\n    etcd has no wish to live",
		},
		"program is missing": {[]string{"--bin-dir", empty}, "kubebox is missing in " + empty + ": run `make build`"},
		"port is taken": {
			[]string{"--bin-dir", bin, "--port-base", strconv.Itoa(port)},
			fmt.Sprintf("port %d (for hub-apiserver) is taken by another program: choose another --port-base", port),
		},
		"a later port is taken": {
			[]string{"--bin-dir", bin, "--port-base", strconv.Itoa(port - 1)},
			fmt.Sprintf("port %d (for member1-apiserver) is taken", port),
		},
		"port is impossible": {[]string{"--bin-dir", bin, "--port-base", "65535"}, "port 65536 (for member1-apiserver) is not a port"},
		"too many members":   {[]string{"--bin-dir", bin, "--members", "61"}, "0 to 60 members, not 61"},
		"too few members":    {[]string{"--bin-dir", bin, "--members", "-1"}, "0 to 60 members, not -1"},
		"a useless argument": {[]string{"--bin-dir", bin, "--controller-manager-arg", "x"}, "a bare fleet has no controller-manager"},
		"directory is file":  {[]string{"--bin-dir", bin, "--dir", file}, file + " is not a directory"},
		"directory can't be": {[]string{"--bin-dir", bin, "--dir", filepath.Join(file, "x")}, "not a directory"},
		"directory is not empty": {
			[]string{"--bin-dir", bin, "--dir", foreign},
			filepath.Join(foreign, "kubeconfig") + " exists and was not made by a sandbox",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			dir := newDir(t)
			_, stderr, err := sandbox(t, append([]string{"up", "--bare", "--members", "1", "--dir", dir}, tt.args...)...)
			if err == nil {
				t.Error("it came up")
			}
			if want := strings.ReplaceAll(tt.want, "DIR", dir); !strings.Contains(stderr, want) {
				t.Errorf("it said %q, want %q", stderr, want)
			}
			checkNothingRuns(t, dir)
			checkOnlyLogs(t, dir)
		})
	}
	if data, err := os.ReadFile(filepath.Join(foreign, "kubeconfig")); err != nil || string(data) != "mine" {
		t.Errorf("somebody's file is %q, %v after a refused up", data, err)
	}
}

func TestDryRun(t *testing.T) {
	dir := newDir(t)
	plan := must(t, "up", "--dry-run", "--dir", dir, "--members", "2", "--bin-dir", "/nowhere", "--port-base", "11000")
	for _, want := range []string{"member2-apiserver", "--secure-port=11002", filepath.Join(dir, "hub-paths", "member2.kubeconfig"), "/nowhere/namesakectl"} {
		if !strings.Contains(plan, want) {
			t.Errorf("the plan lacks %q:\n%s", want, plan)
		}
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("a dry run made %s", dir)
	}
}
