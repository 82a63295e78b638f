package process

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
)

// Marked finds the living processes that carry the mark of the fleet in dir,
// except this one. Processes of other users can't be read and are not ours.
func Marked(dir string) ([]ID, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, fmt.Errorf("listing processes: %w", err)
	}
	want := []byte(Marker + "=" + dir)
	var found []ID
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		// The start time is read first: if the pid changes hands before the
		// environment is read, the ID names the old process, which is dead.
		id, err := Identify(pid)
		if err != nil {
			continue // ended meanwhile
		}
		environ, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
		if err != nil {
			continue // ended meanwhile, or not ours
		}
		if marked(environ, want) && id.State() != Dead {
			found = append(found, id)
		}
	}
	return found, nil
}

func marked(environ, want []byte) bool {
	for variable := range bytes.SplitSeq(environ, []byte{0}) {
		if bytes.Equal(variable, want) {
			return true
		}
	}
	return false
}
