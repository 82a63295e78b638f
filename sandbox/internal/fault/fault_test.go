package fault

import (
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	tests := map[string]struct {
		text    string
		off     bool
		want    Fault
		wantErr string
	}{
		"without a value":         {text: "api-down", want: Fault{Name: APIDown}},
		"with a value":            {text: "api-slow=200ms", want: Fault{Name: APISlow, Value: "200ms"}},
		"off without its value":   {text: "api-slow", off: true, want: Fault{Name: APISlow}},
		"off with its value":      {text: "api-slow=1s", off: true, want: Fault{Name: APISlow, Value: "1s"}},
		"unknown":                 {text: "api-gone", wantErr: `unknown fault "api-gone"; faults are api-down, api-unreachable, api-slow=200ms`},
		"empty":                   {text: "", wantErr: `unknown fault ""`},
		"value missing":           {text: "api-slow", wantErr: `as in api-slow=200ms; not ""`},
		"value empty":             {text: "api-slow=", wantErr: `not ""`},
		"value without unit":      {text: "api-slow=200", wantErr: `not "200"`},
		"value negative":          {text: "api-slow=-1s", wantErr: `not "-1s"`},
		"value zero":              {text: "api-slow=0s", wantErr: `not "0s"`},
		"value too long":          {text: "api-slow=61s", wantErr: `at most 1m`},
		"a share":                 {text: "packet-loss=20%", want: Fault{Name: PacketLoss, Value: "20%"}},
		"share without percent":   {text: "packet-loss=20", wantErr: `a percentage between 0% and 100%, as in packet-loss=20%; not "20"`},
		"share above all":         {text: "packet-loss=101%", wantErr: `not "101%"`},
		"share of nothing":        {text: "packet-loss=0%", wantErr: `not "0%"`},
		"share of no number":      {text: "packet-loss=NaN%", wantErr: `not "NaN%"`},
		"value where none is due": {text: "api-down=yes", wantErr: "api-down takes no value"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := Parse(tt.text, !tt.off)
			if tt.wantErr != "" {
				if err == nil || !strings.Contains(err.Error(), tt.wantErr) {
					t.Errorf("error = %v, want %q", err, tt.wantErr)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got != tt.want {
				t.Errorf("parsed %+v, want %+v", got, tt.want)
			}
		})
	}
}

// What is listed must be what can be given.
func TestUsageParses(t *testing.T) {
	for _, text := range Usage() {
		f, err := Parse(text, true)
		if err != nil || f.String() != text {
			t.Errorf("Parse(%q) = %v, %v", text, f, err)
		}
	}
}
