package relay

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
)

// Dial connects to a unix socket, however long its path.
func Dial(ctx context.Context, socket string) (net.Conn, error) {
	var conn net.Conn
	err := throughDirectory(socket, func(short string) (err error) {
		conn, err = (&net.Dialer{}).DialContext(ctx, "unix", short)
		return err
	})
	return conn, err
}

// Reload tells the relay behind the control socket to read its configuration,
// and returns when all paths are as wanted.
func Reload(ctx context.Context, socket string) error {
	client := &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return Dial(ctx, socket)
		},
	}}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://relay/reload", nil)
	if err != nil {
		return err
	}
	response, err := client.Do(request)
	if err != nil {
		return fmt.Errorf("reaching the relay: %w", err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return fmt.Errorf("reading the relay's answer: %w", err)
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("the relay refused: %s", strings.TrimSpace(string(body)))
	}
	return nil
}
