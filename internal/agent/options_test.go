package agent

import (
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

func TestOptions(t *testing.T) {
	for args, want := range map[string]string{
		"":                                      "",
		"--credential=ns/name":                  "",
		"--credential=name":                     `--credential: "name" is not namespace/name`,
		"--credential=/name":                    "--credential",
		"--credential-ttl=9m":                   "--credential-ttl: 9m0s is too short: at least 10m0s",
		"--cluster-lease-renew-interval=0":      "--cluster-lease-renew-interval",
		"--cluster-failure-threshold=-1s":       "--cluster-failure-threshold: -1s is too short: at least 0s",
		"--cluster-failure-threshold=0":         "",
		"--cluster-status-update-frequency=1ms": "--cluster-status-update-frequency",
	} {
		t.Run(args, func(t *testing.T) {
			o := NewOptions()
			fs := pflag.NewFlagSet("agent", pflag.ContinueOnError)
			o.AddFlags(fs)
			if err := fs.Parse(strings.Fields(args)); err != nil {
				t.Fatal(err)
			}
			err := o.Validate()
			if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
				t.Errorf("Validate() = %v, want %q", err, want)
			}
		})
	}
}
