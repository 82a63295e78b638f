package applet

import (
	"fmt"
	"path/filepath"
	"strings"
)

// Applet is one of the programs in a binary.
type Applet struct {
	Name string
	// Run is the program. It receives its arguments as it would see them on its
	// own, args[0] being its name, and returns the exit code.
	Run func(args []string) int
}

// Choose finds the applet that the binary was started as: by its own name, else
// by the first argument. It returns the applet's arguments as well.
func Choose(applets []Applet, argv []string) (Applet, []string, error) {
	if len(argv) > 0 {
		if a, ok := find(applets, filepath.Base(argv[0])); ok {
			return a, argv, nil
		}
	}
	if len(argv) < 2 {
		return Applet{}, nil, fmt.Errorf("give an applet as the first argument, or start this program through a link of its name; applets: %s", names(applets))
	}
	if a, ok := find(applets, argv[1]); ok {
		return a, argv[1:], nil
	}
	return Applet{}, nil, fmt.Errorf("unknown applet %q; applets: %s", argv[1], names(applets))
}

func find(applets []Applet, name string) (Applet, bool) {
	for _, a := range applets {
		if a.Name == name {
			return a, true
		}
	}
	return Applet{}, false
}

func names(applets []Applet) string {
	list := make([]string, len(applets))
	for i, a := range applets {
		list[i] = a.Name
	}
	return strings.Join(list, ", ")
}
