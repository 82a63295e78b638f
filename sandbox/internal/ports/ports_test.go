package ports

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestChooseFree(t *testing.T) {
	var names []string
	for i := range 50 {
		names = append(names, fmt.Sprint("name", i))
	}
	held, err := Choose(names, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer held.ReleaseAll()
	seen := map[int]bool{}
	for _, name := range names {
		port := held.Numbers[name]
		if port < lowest || port >= top() || seen[port] {
			t.Errorf("%s has port %d (range %d to %d, repeated: %t)", name, port, lowest, top(), seen[port])
		}
		seen[port] = true
	}

	port := []int{held.Numbers["name7"]}
	var taken *TakenError
	if err := Check(t.Context(), port); !errors.As(err, &taken) || taken.Port != port[0] || !errors.Is(err, unix.EADDRINUSE) {
		t.Errorf("checking a held port: %v, want it taken", err)
	}
	held.Release(port)
	if err := Check(t.Context(), port); err != nil {
		t.Errorf("checking a released port: %v", err)
	}
}

func TestChooseFromBase(t *testing.T) {
	// Somebody has a port; a base just below it must fail and name it.
	other, err := Choose([]string{"other"}, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer other.ReleaseAll()
	taken := other.Numbers["other"]
	_, err = Choose([]string{"etcd"}, taken)
	want := fmt.Sprintf("port %d (for etcd) is taken by another program: choose another --port-base", taken)
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("error = %v, want %q", err, want)
	}

	if _, err := Choose([]string{"a", "b"}, 65535); err == nil || !strings.Contains(err.Error(), "port 65536 (for b) is not a port") {
		t.Errorf("error = %v", err)
	}
	if err := Check(t.Context(), []int{65535}); err != nil {
		t.Errorf("a failed choice kept a port: %v", err)
	}
}

func TestParseTop(t *testing.T) {
	tests := map[string]int{
		"32768\t60999\n": 32768,
		"15000 60999":    15000,
		"1024 65535":     fallbackTop,
		"":               fallbackTop,
		"x y":            fallbackTop,
	}
	for line, want := range tests {
		if got := parseTop(line); got != want {
			t.Errorf("parseTop(%q) = %d, want %d", line, got, want)
		}
	}
}
