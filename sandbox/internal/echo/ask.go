package echo

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"
)

// Questions say what to ask and how often.
type Questions struct {
	// Address is a host and a port.
	Address  string
	Protocol string // http, tcp or udp
	// Count is how many questions are asked; 0 asks until the context ends.
	Count    int
	Interval time.Duration
	// Timeout bounds each question, looking up the name included.
	Timeout time.Duration
}

// Answers are what came of questions.
type Answers struct {
	Asked  int `json:"asked"`
	Failed int `json:"failed"`
	// By counts answers by cluster and pod, as in member1/echo-0.
	By map[string]int `json:"by"`
	// Errors has the first few failures, each with its time.
	Errors []string `json:"errors,omitempty"`
}

const manyErrors = 20

// Ask asks, each time over a connection of its own.
func Ask(ctx context.Context, q Questions) (Answers, error) {
	var ask func(context.Context, string) (string, error)
	switch q.Protocol {
	case "http":
		ask = askHTTP
	case "tcp", "udp":
		ask = func(ctx context.Context, address string) (string, error) { return askRaw(ctx, q.Protocol, address) }
	default:
		return Answers{}, fmt.Errorf("unknown protocol %q: say http, tcp or udp", q.Protocol)
	}
	a := Answers{By: map[string]int{}}
	for ctx.Err() == nil && (q.Count == 0 || a.Asked < q.Count) {
		// A question that was begun is heard out: its end must not look like a fault.
		timed, cancel := context.WithTimeout(context.WithoutCancel(ctx), q.Timeout)
		answer, err := ask(timed, q.Address)
		cancel()
		a.Asked++
		if err != nil {
			a.Failed++
			if len(a.Errors) < manyErrors {
				a.Errors = append(a.Errors, time.Now().Format(time.TimeOnly+".000 ")+err.Error())
			}
		} else {
			a.By[whose(answer)]++
		}
		if q.Interval > 0 {
			select {
			case <-time.After(q.Interval):
			case <-ctx.Done():
			}
		}
	}
	return a, nil
}

// whose reads cluster and pod from what an echo server says.
func whose(answer string) string {
	var cluster, pod string
	for _, word := range strings.Fields(answer) {
		if v, ok := strings.CutPrefix(word, "cluster="); ok {
			cluster = v
		}
		if v, ok := strings.CutPrefix(word, "pod="); ok {
			pod = v
		}
	}
	return cluster + "/" + pod
}

func askHTTP(ctx context.Context, address string) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/", nil)
	if err != nil {
		return "", err
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return "", fmt.Errorf("answered %s", response.Status)
	}
	body, err := io.ReadAll(response.Body)
	return string(body), err
}

func askRaw(ctx context.Context, protocol, address string) (string, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, protocol, address)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	if deadline, ok := ctx.Deadline(); ok {
		if err := conn.SetDeadline(deadline); err != nil {
			return "", err
		}
	}
	if _, err := io.WriteString(conn, "who\n"); err != nil {
		return "", err
	}
	line, err := bufio.NewReader(conn).ReadString('\n')
	return line, err
}
