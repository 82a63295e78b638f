package member

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	clusterv1alpha1 "github.com/namesake-io/namesake/api/cluster/v1alpha1"
)

// readyz is a member whose /readyz is scripted.
type readyz struct {
	status int
	body   string
	err    error
	asked  int
}

func (r *readyz) RoundTrip(*http.Request) (*http.Response, error) {
	r.asked++
	if r.err != nil {
		return nil, r.err
	}
	return &http.Response{StatusCode: r.status, Status: http.StatusText(r.status), Body: io.NopCloser(strings.NewReader(r.body))}, nil
}

func newProber(member *readyz, report func(Health)) *prober {
	return &prober{
		endpoint: "https://member", client: &http.Client{Transport: member}, interval: 10 * time.Second,
		failed: make(chan struct{}, 1), report: report,
	}
}

func TestProbe(t *testing.T) {
	const failedCheck = "[+]ping ok\n[-]etcd failed: reason withheld\nreadyz check failed\n"
	for title, tc := range map[string]struct {
		member       readyz
		want         Health
		wantHiccup   bool
		wantMessages []string
	}{
		"ready": {
			member: readyz{status: http.StatusOK, body: "ok"},
			want:   Health{Reachable: true, Ready: true, Reason: clusterv1alpha1.ReasonClusterReady},
		},
		"not ready": {
			member:       readyz{status: http.StatusInternalServerError, body: failedCheck},
			want:         Health{Reachable: true, Reason: clusterv1alpha1.ReasonClusterNotReady},
			wantMessages: []string{"https://member", "[-]etcd failed"},
		},
		"not ready, in other words": {
			member:       readyz{status: http.StatusServiceUnavailable, body: "\nstarting\nmore"},
			want:         Health{Reachable: true, Reason: clusterv1alpha1.ReasonClusterNotReady},
			wantMessages: []string{"starting"},
		},
		"unauthorized": {
			member:       readyz{status: http.StatusUnauthorized},
			want:         Health{Reason: clusterv1alpha1.ReasonCredentialRejected},
			wantMessages: []string{"https://member", "join the cluster again"},
		},
		"forbidden": {
			member: readyz{status: http.StatusForbidden}, want: Health{Reason: clusterv1alpha1.ReasonCredentialRejected},
		},
		"no answer": {
			member: readyz{err: errors.New("EOF")}, want: Health{Reason: clusterv1alpha1.ReasonClusterNotReachable},
			wantHiccup: true, wantMessages: []string{"https://member does not answer: EOF"},
		},
		"refused": {
			member: readyz{err: syscall.ECONNREFUSED}, want: Health{Reason: clusterv1alpha1.ReasonClusterNotReachable},
			wantMessages: []string{"connection refused"},
		},
	} {
		t.Run(title, func(t *testing.T) {
			p := newProber(&tc.member, nil)
			got, settled := p.probe(t.Context())
			if !got.Known || got.Reachable != tc.want.Reachable || got.Ready != tc.want.Ready || got.Reason != tc.want.Reason {
				t.Errorf("%+v, want %+v", got, tc.want)
			}
			for _, part := range tc.wantMessages {
				if !strings.Contains(got.Message, part) {
					t.Errorf("message %q, want %q in it", got.Message, part)
				}
			}
			if settled == tc.wantHiccup {
				t.Errorf("settled %v after one try", settled)
			}
			if _, settled = p.probe(t.Context()); !settled {
				t.Error("not settled after two tries")
			}
		})
	}
}

// How often a member is asked: seldom while it is ready, each second while it is
// not, and at once when a request got no answer.
func TestProberPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		member := &readyz{status: http.StatusOK}
		var told []Health
		p := newProber(member, func(h Health) { told = append(told, h) })
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { p.run(ctx); close(ended) }()
		last := func() Health { return told[len(told)-1] }

		synctest.Wait()
		start := time.Now()
		if len(told) != 1 || !last().Ready || !last().Since.Equal(start) {
			t.Fatalf("told %+v, want ready at once", told)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if member.asked != 7 || !last().Since.Equal(start) {
			t.Errorf("asked %d times in a minute, ready since %s, want 7 and since the start", member.asked, last().Since)
		}

		member.err = errors.New("EOF")
		p.hurry()
		synctest.Wait()
		if !last().Ready {
			t.Error("one failure closed it")
		}
		failedAt := time.Now()
		time.Sleep(time.Second)
		synctest.Wait()
		if last().Reachable || last().Since.Sub(failedAt) != time.Second {
			t.Errorf("%+v, want unreachable after a second", last())
		}
		asked := member.asked
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if member.asked != asked+10 {
			t.Errorf("asked %d times in ten seconds, want 10", member.asked-asked)
		}
		member.err = nil
		time.Sleep(time.Second)
		synctest.Wait()
		if !last().Ready || time.Since(last().Since) > time.Second {
			t.Errorf("%+v, want ready within a second", last())
		}
		p.hurry()
		p.hurry()
		cancel()
		<-ended
	})
}
