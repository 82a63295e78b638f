package images

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestArgv(t *testing.T) {
	more := Map{
		{Image: "team/*", Entrypoint: []string{"team"}, Args: []string{"--default"}},
		{Image: "echo", Entrypoint: []string{"other-echo"}},
	}
	tests := map[string]struct {
		rules         Map
		image         string
		command, args []string
		want          []string
		wantUnknown   bool
	}{
		"name alone":               {image: "echo", want: []string{"SELF", "echo"}},
		"tag":                      {image: "echo:v1", want: []string{"SELF", "echo"}},
		"registry with port":       {image: "localhost:5000/a/echo", want: []string{"SELF", "echo"}},
		"digest":                   {image: "echo:v1@sha256:abc", want: []string{"SELF", "echo"}},
		"args replace defaults":    {image: "nginx", args: []string{"nginx", "-t"}, want: []string{"nginx", "-t"}},
		"args after entrypoint":    {image: "echo", args: []string{"--http=81"}, want: []string{"SELF", "echo", "--http=81"}},
		"command as given":         {image: "echo", command: []string{"sleep"}, args: []string{"1"}, want: []string{"sleep", "1"}},
		"command of unknown image": {image: "nobody/knows", command: []string{"true"}, want: []string{"true"}},
		"unknown":                  {image: "nobody/knows:v1", wantUnknown: true},
		"part of a name":           {image: "myecho", wantUnknown: true},
		"curl with a flag":         {image: "curlimages/curl", args: []string{"-s", "x"}, want: []string{"curl", "-s", "x"}},
		"curl with a program":      {image: "curlimages/curl", args: []string{"sleep", "1"}, want: []string{"sleep", "1"}},
		"agnhost":                  {image: "registry.k8s.io/e2e-test-images/agnhost:2.40", args: []string{"netexec"}, want: []string{"SELF", "agnhost", "netexec"}},
		"of a file":                {rules: more, image: "docker.io/team/thing", want: []string{"team", "--default"}},
		"a file's rule comes first": {
			rules: more, image: "echo", want: []string{"other-echo"},
		},
		"more parts than the name": {rules: more, image: "team", wantUnknown: true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := append(tt.rules, Builtin("SELF")...).Argv(tt.image, tt.command, tt.args)
			var unknown *UnknownError
			if errors.As(err, &unknown) != tt.wantUnknown {
				t.Fatalf("error = %v", err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("argv (-want +got):\n%s", diff)
			}
		})
	}
}

func TestLoad(t *testing.T) {
	tests := map[string]struct {
		text, wantErr string
		want          Map
	}{
		"rules": {
			text: "- image: web/*\n  entrypoint: [python3, -m, http.server]\n  args: ['80']\n",
			want: Map{{Image: "web/*", Entrypoint: []string{"python3", "-m", "http.server"}, Args: []string{"80"}}},
		},
		"bad glob":    {text: "- image: '['\n  args: [x]\n", wantErr: `image "[" is not a glob`},
		"no image":    {text: "- args: [x]\n", wantErr: "entry 1"},
		"no program":  {text: "- image: x\n", wantErr: "neither entrypoint nor args"},
		"other field": {text: "- image: x\n  cmd: [y]\n", wantErr: "unknown field"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "images.yaml")
			if err := os.WriteFile(file, []byte(tt.text), 0o600); err != nil {
				t.Fatal(err)
			}
			got, err := Load(file)
			if tt.wantErr != "" {
				if err == nil || !strings.Contains(err.Error(), tt.wantErr) {
					t.Errorf("error = %v, want %q", err, tt.wantErr)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("map (-want +got):\n%s", diff)
			}
		})
	}
}
