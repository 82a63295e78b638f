package state

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/namesake-io/namesake/sandbox/internal/plan"
	"github.com/namesake-io/namesake/sandbox/internal/process"
)

// File is the name of the record in the fleet's directory.
const File = "state.json"

// ErrNone says that a directory holds no fleet.
var ErrNone = errors.New("no fleet")

// Phase is how far a fleet has come.
type Phase string

const (
	// Starting is a fleet whose `up` has not finished. When nobody holds the
	// lock, that `up` was killed.
	Starting Phase = "starting"
	// Ready is a fleet that came up whole.
	Ready Phase = "ready"
)

// Fleet is everything that later commands need to know.
type Fleet struct {
	// Instance differs for each `up`, also in the same directory.
	Instance string `json:"instance"`
	Phase    Phase  `json:"phase"`
	Bare     bool   `json:"bare"`
	Members  int    `json:"members"`
	// DataPlane tells whether the members have nodes that run pods.
	DataPlane bool `json:"dataPlane,omitempty"`
	// Components stand in the order in which they were planned.
	Components []Component `json:"components"`
	// Faults holds the active faults of each member, by fault name.
	Faults map[string]map[string]string `json:"faults,omitempty"`
}

// Component is one process of the fleet: how it was planned and which one it is
// now. The pid is 0 until it is first started.
type Component struct {
	plan.Component
	process.ID
}

// Component returns the component with the name, or nil.
func (f *Fleet) Component(name string) *Component {
	i := slices.IndexFunc(f.Components, func(c Component) bool { return c.Name == name })
	if i < 0 {
		return nil
	}
	return &f.Components[i]
}

// Load reads the record in dir. The error is ErrNone when there is none.
func Load(dir string) (*Fleet, error) {
	data, err := os.ReadFile(filepath.Join(dir, File))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ErrNone
	}
	if err != nil {
		return nil, fmt.Errorf("reading the fleet's state: %w", err)
	}
	var f Fleet
	if err := json.Unmarshal(data, &f); err != nil {
		return nil, fmt.Errorf("parsing the fleet's state %s: %w", filepath.Join(dir, File), err)
	}
	return &f, nil
}

// Save writes the record into dir.
func (f *Fleet) Save(dir string) error {
	data, err := json.MarshalIndent(f, "", "  ")
	if err != nil {
		return fmt.Errorf("encoding the fleet's state: %w", err)
	}
	return WriteFile(filepath.Join(dir, File), append(data, '\n'))
}

// WriteFile writes a private file so that a reader sees the old content or the
// new one, never a part.
func WriteFile(path string, data []byte) (err error) {
	tmp, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*") // mode 0600
	if err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("writing %s: %w", path, err), os.Remove(tmp.Name()))
		}
	}()
	if _, err := tmp.Write(data); err != nil {
		return errors.Join(err, tmp.Close())
	}
	if err := tmp.Close(); err != nil {
		return err
	}
	return os.Rename(tmp.Name(), path)
}
