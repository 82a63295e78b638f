package console

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"
)

func TestPrintError(t *testing.T) {
	plain := errors.New("it broke")
	for name, tc := range map[string]struct {
		err      error
		want     string
		wantCode int
	}{
		"plain":             {err: plain, want: "error: it broke\n", wantCode: ExitFailed},
		"with a hint":       {err: WithHint(plain, "mend %s", "it"), want: "error: it broke\nhint:  mend it\n", wantCode: ExitFailed},
		"wrapped":           {err: fmt.Errorf("using it: %w", WithHint(plain, "mend it")), want: "error: using it: it broke\nhint:  mend it\n", wantCode: ExitFailed},
		"the nearest hint":  {err: WithHint(WithHint(plain, "near"), "far"), want: "error: it broke\nhint:  near\n", wantCode: ExitFailed},
		"usage":             {err: Usage("no %s", "way"), want: "error: no way\n", wantCode: ExitUsage},
		"usage with a hint": {err: WithHint(Usage("no way"), "try"), want: "error: no way\nhint:  try\n", wantCode: ExitUsage},
		"several lines":     {err: errors.Join(plain, plain), want: "error: it broke; it broke\n", wantCode: ExitFailed},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			PrintError(&out, tc.err)
			if out.String() != tc.want {
				t.Errorf("printed %q, want %q", out.String(), tc.want)
			}
			if got := ExitCode(tc.err); got != tc.wantCode {
				t.Errorf("exit code = %d, want %d", got, tc.wantCode)
			}
		})
	}
	if err := WithHint(nil, "none"); err != nil {
		t.Errorf("WithHint(nil) = %v, want nil", err)
	}
	if got := ExitCode(nil); got != ExitOK {
		t.Errorf("ExitCode(nil) = %d, want %d", got, ExitOK)
	}
}

func TestDuration(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0:                                     "<1ms",
		300 * time.Microsecond:                "<1ms",
		12*time.Millisecond + 345:             "12ms",
		1234 * time.Millisecond:               "1.2s",
		2*time.Minute + 4600*time.Millisecond: "2m5s",
	} {
		if got := Duration(d); got != want {
			t.Errorf("Duration(%v) = %q, want %q", d, got, want)
		}
	}
}

func TestListIsBounded(t *testing.T) {
	names := strings.Split(strings.Repeat("a", 1000), "")
	if got, want := List(names), strings.Repeat("a, ", 9)+"a and 990 more"; got != want {
		t.Errorf("List of 1000 = %q, want %q", got, want)
	}
	if got, want := List(names[:2]), "a, a"; got != want {
		t.Errorf("List of 2 = %q, want %q", got, want)
	}
}

func TestSteps(t *testing.T) {
	var out bytes.Buffer
	s := NewSteps(&out, "Doing %s", "it")
	if err := s.Do("first", func() (string, error) { return "well", nil }); err != nil {
		t.Errorf("Do = %v, want nil", err)
	}
	broken := errors.New("broken")
	if err := s.Do("second", func() (string, error) { return "", broken }); !errors.Is(err, broken) {
		t.Errorf("Do = %v, want %v", err, broken)
	}
	s.Note("by the way, %d", 1)
	s.End("Done")
	want := "Doing it\n  ✓ first: well (TIME)\n  ✗ second (TIME)\n  · by the way, 1\nDone in TIME\n"
	got := regexp.MustCompile(`<1ms|[0-9.]+m?s\b`).ReplaceAllString(out.String(), "TIME")
	if got != want {
		t.Errorf("wrote:\n%s\nwant:\n%s", got, want)
	}
}
