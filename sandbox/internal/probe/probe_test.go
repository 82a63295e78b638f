package probe

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

func TestJudge(t *testing.T) {
	const (
		u, s, f = Undecided, Success, Failure
	)
	tests := map[string]struct {
		probe   corev1.Probe
		answers []bool
		want    []Verdict
	}{
		"thresholds of the API":     {answers: []bool{true, false, false, false, true}, want: []Verdict{s, u, u, f, s}},
		"a good answer starts anew": {answers: []bool{false, false, true, false, false, false}, want: []Verdict{u, u, s, u, u, f}},
		"two successes":             {probe: corev1.Probe{SuccessThreshold: 2}, answers: []bool{true, true, false, true, true}, want: []Verdict{u, s, u, u, s}},
		"first failure":             {probe: corev1.Probe{FailureThreshold: 1}, answers: []bool{false, true, false, false}, want: []Verdict{f, s, f, f}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			judge := NewJudge(&tt.probe)
			var got []Verdict
			for _, a := range tt.answers {
				got = append(got, judge.Hear(a))
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("verdicts (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAsk(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/moved":
			http.Redirect(w, r, "/bad", http.StatusFound)
		case r.URL.Path == "/good" && r.Host == "its.name" && r.Header.Get("X") == "1", r.URL.RawQuery == "q=1":
		default:
			w.WriteHeader(http.StatusInternalServerError)
		}
	}))
	defer server.Close()
	u, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	number, err := strconv.Atoi(u.Port())
	if err != nil {
		t.Fatal(err)
	}
	target := Target{
		Address: "127.0.0.1",
		Ports:   []corev1.ContainerPort{{Name: "web", ContainerPort: int32(number)}},
		Dial:    (&net.Dialer{}).DialContext,
		Exec: func(_ context.Context, command []string) error {
			if command[0] != "true" {
				return errors.New("not true")
			}
			return nil
		},
	}
	get := func(path string, port intstr.IntOrString, headers ...corev1.HTTPHeader) corev1.ProbeHandler {
		return corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: path, Port: port, HTTPHeaders: headers}}
	}
	web := intstr.FromString("web")
	tests := map[string]struct {
		handler corev1.ProbeHandler
		want    bool
	}{
		"get":            {get("/good", web, corev1.HTTPHeader{Name: "Host", Value: "its.name"}, corev1.HTTPHeader{Name: "X", Value: "1"}), true},
		"query":          {get("any?q=1", intstr.FromInt(number)), true},
		"bad status":     {get("/bad", web), false},
		"redirect":       {get("/moved", web), true},
		"unknown port":   {get("/good", intstr.FromString("none")), false},
		"tcp":            {corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: web}}, true},
		"tcp, no server": {corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromInt(1)}}, false},
		"exec":           {corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"true"}}}, true},
		"exec fails":     {corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"false"}}}, false},
		"nothing":        {corev1.ProbeHandler{}, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if err := target.Ask(t.Context(), tt.handler); (err == nil) != tt.want {
				t.Errorf("error = %v, want success %v", err, tt.want)
			}
		})
	}
}
