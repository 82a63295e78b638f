package relay

import (
	"encoding/json"
	"fmt"
	"os"
	"time"

	"github.com/namesake-io/namesake/sandbox/internal/state"
)

// Config is the file that says what the relay is to do.
type Config struct {
	Paths []Path `json:"paths"`
}

// Path is one member's path and its wanted conditions.
type Path struct {
	Member string `json:"member"`
	// Listen is where the hub dials, Target where that leads to.
	Listen string `json:"listen"`
	Target string `json:"target"`
	Cut    bool   `json:"cut,omitempty"`
	// Delay is what the path adds to a round trip, as time.ParseDuration reads
	// it; empty for nothing.
	Delay string `json:"delay,omitempty"`
}

func (p Path) conditions() (Conditions, error) {
	c := Conditions{Cut: p.Cut}
	if p.Delay == "" {
		return c, nil
	}
	d, err := time.ParseDuration(p.Delay)
	if err != nil {
		return c, fmt.Errorf("parsing the delay of %s: %w", p.Member, err)
	}
	c.Delay = d
	return c, nil
}

// ReadConfig reads the file.
func ReadConfig(path string) (Config, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return Config{}, fmt.Errorf("reading the relay's configuration: %w", err)
	}
	var c Config
	if err := json.Unmarshal(data, &c); err != nil {
		return Config{}, fmt.Errorf("parsing the relay's configuration %s: %w", path, err)
	}
	return c, nil
}

// Write writes the file.
func (c Config) Write(path string) error {
	data, err := json.MarshalIndent(c, "", "  ")
	if err != nil {
		return fmt.Errorf("encoding the relay's configuration: %w", err)
	}
	return state.WriteFile(path, append(data, '\n'))
}
