package main

import (
	"encoding/xml"
	"errors"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestQuantile(t *testing.T) {
	hundred := make([]milliseconds, 100)
	for i := range hundred {
		hundred[len(hundred)-1-i] = milliseconds(i + 1)
	}
	for title, tc := range map[string]struct {
		samples []milliseconds
		share   float64
		want    milliseconds
	}{
		"of none":            {share: 0.5},
		"of one":             {samples: []milliseconds{7}, share: 0.99, want: 7},
		"median of three":    {samples: []milliseconds{3, 1, 2}, share: 0.5, want: 2},
		"median of hundred":  {samples: hundred, share: 0.5, want: 50},
		"99th of hundred":    {samples: hundred, share: 0.99, want: 99},
		"highest of hundred": {samples: hundred, share: 1, want: 100},
	} {
		t.Run(title, func(t *testing.T) {
			if got := quantile(tc.samples, tc.share); got != tc.want {
				t.Errorf("quantile %v, want %v", got, tc.want)
			}
		})
	}
}

func TestRequests(t *testing.T) {
	before := requests{"PUT works": 2, "LIST endpointslices": 1}
	after := requests{"PUT works": 5, "LIST endpointslices": 1, "POST events": 4, "GET services": 1}
	spent := after.less(before).less(requests{"POST events": 1})
	if diff := cmp.Diff(requests{"PUT works": 3, "POST events": 3, "GET services": 1}, spent); diff != "" {
		t.Errorf("spent (-want +got):\n%s", diff)
	}
	if got, want := spent.writes().String(), "3 POST events, 3 PUT works"; got != want {
		t.Errorf("writes are %q, want %q", got, want)
	}
}

// A result is the same after it was kept, and makes pictures and a table.
func TestReport(t *testing.T) {
	want := &result{
		Date: "2026-08-01", Members: 5, Endpoints: 3, Machine: machine{Cores: 2, MemoryGiB: 24},
		Measures: []measure{
			{Name: "T1", Took: []milliseconds{200, 100}, Floor: []milliseconds{50}, Operations: 2, Cost: &cost{HubWrites: requests{"POST works": 20}}},
			{Name: "T2", Took: []milliseconds{12, 14, 16}, Floor: []milliseconds{8, 9}, Operations: 3},
		},
	}
	path := filepath.Join(t.TempDir(), "result.json")
	if err := want.save(path); err != nil {
		t.Fatal(err)
	}
	got, err := load(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("kept (-want +got):\n%s", diff)
	}
	var table strings.Builder
	got.markdown(&table)
	for _, row := range []string{"| T1 | 100 ms | 200 ms | 200 ms | 50 ms | 50 ms | 2.0 | 10 |", "| T2 | 14 ms | 16 ms | 16 ms | 8.0 ms | 9.0 ms | 1.8 |"} {
		if !strings.Contains(table.String(), row) {
			t.Errorf("the table lacks %q:\n%s", row, &table)
		}
	}
	for name, p := range plotsOf([]*result{got}) {
		decoder := xml.NewDecoder(strings.NewReader(p.svg()))
		for {
			if _, err := decoder.Token(); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatalf("plot %s: %v", name, err)
			}
		}
		if !strings.Contains(p.svg(), `<path d="M`) {
			t.Errorf("plot %s has no line", name)
		}
	}
}
