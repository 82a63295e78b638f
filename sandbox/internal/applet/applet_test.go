package applet

import (
	"slices"
	"strings"
	"testing"
)

func TestChoose(t *testing.T) {
	applets := []Applet{{Name: "etcd"}, {Name: "coredns"}}
	tests := map[string]struct {
		argv     []string
		want     string
		wantArgs []string
		wantErr  string
	}{
		"by its name":           {argv: []string{"etcd", "--version"}, want: "etcd", wantArgs: []string{"etcd", "--version"}},
		"by a link elsewhere":   {argv: []string{"/a/b/coredns"}, want: "coredns", wantArgs: []string{"/a/b/coredns"}},
		"by its argument":       {argv: []string{"/bin/box", "etcd", "-x"}, want: "etcd", wantArgs: []string{"etcd", "-x"}},
		"name before argument":  {argv: []string{"etcd", "coredns"}, want: "etcd", wantArgs: []string{"etcd", "coredns"}},
		"neither":               {argv: []string{"box"}, wantErr: "give an applet as the first argument"},
		"unknown":               {argv: []string{"box", "kubelet"}, wantErr: `unknown applet "kubelet"; applets: etcd, coredns`},
		"nothing at all":        {argv: nil, wantErr: "give an applet"},
		"a flag is no applet":   {argv: []string{"box", "--help"}, wantErr: `unknown applet "--help"`},
		"a path is no argument": {argv: []string{"box", "/bin/etcd"}, wantErr: "unknown applet"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, args, err := Choose(applets, tt.argv)
			if tt.wantErr != "" {
				if err == nil || !strings.Contains(err.Error(), tt.wantErr) {
					t.Errorf("error = %v, want %q", err, tt.wantErr)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got.Name != tt.want || !slices.Equal(args, tt.wantArgs) {
				t.Errorf("chose %s with %q, want %s with %q", got.Name, args, tt.want, tt.wantArgs)
			}
		})
	}
}
