package discovery_test

import (
	"flag"
	"os"
	"testing"
)

// TestMain asks for more checks per property than rapid does by itself: one is
// cheap, and what goes wrong needs several things to meet. -rapid.checks changes
// it.
func TestMain(m *testing.M) {
	if err := flag.Set("rapid.checks", "1000"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}
