// Package images maps image names to programs of this machine, so that other
// people's manifests run where there are no containers.
package images

import (
	"fmt"
	"os"
	"path"
	"strings"

	"sigs.k8s.io/yaml"
)

// Rule says what an image's entry point and default arguments are.
type Rule struct {
	// Image is a glob of the image's name without registry, tag or digest. It is
	// compared with as many trailing parts of the name as it has itself: curl is
	// every image called curl, curlimages/* is every image of curlimages.
	Image      string   `json:"image"`
	Entrypoint []string `json:"entrypoint,omitempty"`
	Args       []string `json:"args,omitempty"`
	// Program stands before arguments that begin with a flag, as the start
	// scripts of some images have it.
	Program string `json:"program,omitempty"`
}

// Map is a list of rules; the first that fits counts.
type Map []Rule

// Builtin returns the map that is always there. self is the sandbox program,
// which has the servers that images need.
func Builtin(self string) Map {
	shell := []string{"sh"}
	return Map{
		{Image: "echo", Entrypoint: []string{self, "echo"}},
		{Image: "nginx", Args: []string{self, "page"}},
		{Image: "nginx-unprivileged", Args: []string{self, "page", "--port=8080"}},
		{Image: "httpd", Args: []string{self, "page"}},
		{Image: "pause", Args: []string{"sleep", "infinity"}},
		{Image: "agnhost", Entrypoint: []string{self, "agnhost"}, Args: []string{"pause"}},
		{Image: "socat", Entrypoint: []string{"socat"}},
		{Image: "curl", Program: "curl", Args: []string{"curl", "--help"}},
		{Image: "busybox", Args: shell},
		{Image: "alpine", Args: shell},
		{Image: "debian", Args: []string{"bash"}},
		{Image: "ubuntu", Args: []string{"bash"}},
		{Image: "netshoot", Args: []string{"bash"}},
		{Image: "dnsutils", Args: []string{"sleep", "infinity"}},
	}
}

// Load reads more rules from a YAML file: a list of them.
func Load(file string) (Map, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("reading the image map: %w", err)
	}
	var m Map
	if err := yaml.UnmarshalStrict(data, &m); err != nil {
		return nil, fmt.Errorf("parsing the image map %s: %w", file, err)
	}
	for i, r := range m {
		if _, err := path.Match(r.Image, ""); err != nil || r.Image == "" {
			return nil, fmt.Errorf("parsing the image map %s: entry %d: image %q is not a glob", file, i+1, r.Image)
		}
		if len(r.Entrypoint)+len(r.Args) == 0 && r.Program == "" {
			return nil, fmt.Errorf("parsing the image map %s: image %q has neither entrypoint nor args", file, r.Image)
		}
	}
	return m, nil
}

// UnknownError says that no rule fits an image.
type UnknownError struct {
	Image string
}

func (e *UnknownError) Error() string {
	return fmt.Sprintf("image %q stands for no program of this machine: give it a command, or an entry in the file of `sandbox up --images`", e.Image)
}

// Argv returns what a container of the image executes. As with real images, a
// command replaces entry point and default arguments, arguments the latter only.
func (m Map) Argv(image string, command, args []string) ([]string, error) {
	if len(command) > 0 {
		return append(append([]string{}, command...), args...), nil
	}
	rule, ok := m.find(image)
	if !ok {
		return nil, &UnknownError{Image: image}
	}
	argv := append([]string{}, rule.Entrypoint...)
	switch {
	case len(args) == 0:
		argv = append(argv, rule.Args...)
	case rule.Program != "" && strings.HasPrefix(args[0], "-"):
		argv = append(append(argv, rule.Program), args...)
	default:
		argv = append(argv, args...)
	}
	return argv, nil
}

func (m Map) find(image string) (Rule, bool) {
	parts := strings.Split(repository(image), "/")
	for _, r := range m {
		n := strings.Count(r.Image, "/") + 1
		if n > len(parts) {
			continue
		}
		if fits, _ := path.Match(r.Image, strings.Join(parts[len(parts)-n:], "/")); fits {
			return r, true
		}
	}
	return Rule{}, false
}

// repository takes digest and tag off. A colon before a slash is a registry's port.
func repository(image string) string {
	image, _, _ = strings.Cut(image, "@")
	if i := strings.LastIndexByte(image, ':'); i > strings.LastIndexByte(image, '/') {
		image = image[:i]
	}
	return image
}
