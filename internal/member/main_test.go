package member

import (
	"testing"

	"go.uber.org/goleak"
)

// TestMain fails when a goroutine of a member outlives the tests.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
