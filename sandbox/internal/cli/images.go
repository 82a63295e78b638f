package cli

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/namesake-io/namesake/sandbox/internal/echo"
)

// echoCommand is the image echo.
func echoCommand() *cobra.Command {
	var options echo.Options
	cmd := &cobra.Command{
		Use:    "echo [--http PORTS] [--tcp PORTS] [--udp PORTS]",
		Short:  "Answer with cluster, pod and address (the image echo)",
		Args:   cobra.NoArgs,
		Hidden: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return echo.Serve(cmd.Context(), options)
		},
	}
	flags := cmd.Flags()
	flags.IntSliceVar(&options.HTTP, "http", []int{80, 8080}, "`ports` for HTTP")
	flags.IntSliceVar(&options.TCP, "tcp", []int{7000}, "`ports` for TCP")
	flags.IntSliceVar(&options.UDP, "udp", []int{7000}, "`ports` for UDP")
	flags.DurationVar(&options.Linger, "linger", 0, "how `long` to go on serving after SIGTERM")
	return cmd
}

// pageCommand is the images of web servers.
func pageCommand() *cobra.Command {
	var port int
	cmd := &cobra.Command{
		Use:    "page [--port PORT]",
		Short:  "Serve a static page (the image nginx)",
		Args:   cobra.NoArgs,
		Hidden: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return echo.ServePage(cmd.Context(), port)
		},
	}
	cmd.Flags().IntVar(&port, "port", 80, "`port` to serve on")
	return cmd
}

// agnhostCommand is what manifests use of the image agnhost.
func agnhostCommand() *cobra.Command {
	root := &cobra.Command{
		Use:    "agnhost",
		Short:  "The parts of the image agnhost that manifests use",
		Hidden: true,
	}
	pause := &cobra.Command{Use: "pause", Short: "Do nothing", RunE: func(cmd *cobra.Command, _ []string) error {
		<-cmd.Context().Done()
		return nil
	}}
	var hostnamePort, httpPort, udpPort int
	hostname := &cobra.Command{Use: "serve-hostname", Short: "Answer with the pod's name", RunE: func(cmd *cobra.Command, _ []string) error {
		return echo.ServeHostname(cmd.Context(), hostnamePort)
	}}
	hostname.Flags().IntVar(&hostnamePort, "port", 9376, "`port` to serve on")
	hostname.Flags().Bool("http", true, "serve HTTP, which is always so")
	netexec := &cobra.Command{Use: "netexec", Short: "Answer over HTTP and UDP", RunE: func(cmd *cobra.Command, _ []string) error {
		return echo.ServeNetexec(cmd.Context(), httpPort, udpPort)
	}}
	netexec.Flags().IntVar(&httpPort, "http-port", 8080, "`port` for HTTP")
	netexec.Flags().IntVar(&udpPort, "udp-port", 8081, "`port` for UDP, -1 for none")
	var timeout time.Duration
	connect := &cobra.Command{
		Use: "connect ADDRESS", Short: "Fail unless a TCP connection can be made", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return echo.Connect(cmd.Context(), args[0], timeout)
		},
	}
	connect.Flags().DurationVar(&timeout, "timeout", 30*time.Second, "how `long` it may take")
	root.AddCommand(pause, hostname, netexec, connect)
	return root
}
