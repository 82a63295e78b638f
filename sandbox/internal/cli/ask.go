package cli

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/namesake-io/namesake/sandbox/internal/echo"
)

// askCommand is for client pods: many questions to echo servers from one process.
func askCommand() *cobra.Command {
	var (
		questions echo.Questions
		duration  time.Duration
	)
	cmd := &cobra.Command{
		Use:     "ask [--protocol http|tcp|udp] [--count N | --for DURATION] HOST:PORT",
		Short:   "Ask an echo server again and again, and count who answers",
		Example: "  sandbox exec --dir DIR member2 -- sandbox ask --for 1m --interval 20ms echo.demo:80",
		Args:    exactly("HOST:PORT"),
		Hidden:  true,
		RunE: func(cmd *cobra.Command, args []string) error {
			questions.Address = args[0]
			ctx := cmd.Context()
			if duration > 0 {
				questions.Count = 0
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, duration)
				defer cancel()
			} else if questions.Count <= 0 {
				return errors.New("give --count or --for")
			}
			answers, err := echo.Ask(ctx, questions)
			if err != nil {
				return err
			}
			return json.NewEncoder(cmd.OutOrStdout()).Encode(answers)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&questions.Protocol, "protocol", "http", "`protocol`: http, tcp or udp")
	flags.IntVar(&questions.Count, "count", 1, "how `many` questions")
	flags.DurationVar(&duration, "for", 0, "how `long` to ask, instead of --count")
	flags.DurationVar(&questions.Interval, "interval", 0, "`pause` between questions")
	flags.DurationVar(&questions.Timeout, "timeout", 3*time.Second, "how `long` one answer may take")
	return cmd
}
