package member

import (
	"testing"

	"go.uber.org/goleak"
)

// TestMain fails when a goroutine of a member outlives the tests.
func TestMain(m *testing.M) { goleak.VerifyTestMain(tests{m}) }

// tests ends the API server, where one was started, before goroutines are counted.
type tests struct{ *testing.M }

func (m tests) Run() int {
	code := m.M.Run()
	stopServer()
	return code
}
