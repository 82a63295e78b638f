package fleet

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/namesake-io/namesake/sandbox/internal/fault"
	"github.com/namesake-io/namesake/sandbox/internal/plan"
	"github.com/namesake-io/namesake/sandbox/internal/process"
	"github.com/namesake-io/namesake/sandbox/internal/state"
)

// Status is what is true of a fleet now.
type Status struct {
	Dir   string      `json:"dir"`
	Phase state.Phase `json:"phase"`
	Bare  bool        `json:"bare"`
	// Kubeconfig has a context for the hub and for each member.
	Kubeconfig string            `json:"kubeconfig"`
	Hub        HubStatus         `json:"hub"`
	Members    []MemberStatus    `json:"members"`
	Components []ComponentStatus `json:"components"`
}

// HubStatus is what is true of the hub.
type HubStatus struct {
	Kubeconfig string `json:"kubeconfig"`
}

// MemberStatus is what is true of a member.
type MemberStatus struct {
	Name       string `json:"name"`
	Kubeconfig string `json:"kubeconfig"`
	// HubPath is the kubeconfig that goes through the relay, as the hub does.
	HubPath string `json:"hubPath"`
	// Faults are the active ones, as written on the command line.
	Faults []string `json:"faults"`
}

// ComponentStatus is what is true of a component.
type ComponentStatus struct {
	Name  string        `json:"name"`
	PID   int           `json:"pid"`
	State process.State `json:"state"`
	// Port is the main one, 0 for a component that listens on none.
	Port int    `json:"port,omitempty"`
	Log  string `json:"log"`
}

// Status looks at the fleet. It takes no lock and disturbs nobody.
func (f *Fleet) Status() (Status, error) {
	st, err := f.load()
	if err != nil {
		return Status{}, err
	}
	s := Status{
		Dir: f.dir, Phase: st.Phase, Bare: st.Bare,
		Kubeconfig: f.path("kubeconfig"),
		Hub:        HubStatus{Kubeconfig: f.path("hub.kubeconfig")},
		Members:    []MemberStatus{},
		Components: []ComponentStatus{},
	}
	for _, name := range plan.Members(st.Members) {
		m := MemberStatus{
			Name:       name,
			Kubeconfig: f.path(name + ".kubeconfig"),
			HubPath:    f.path("hub-paths", name+".kubeconfig"),
			Faults:     []string{},
		}
		for _, kind := range slices.Sorted(maps.Keys(st.Faults[name])) {
			m.Faults = append(m.Faults, fault.Fault{Name: fault.Name(kind), Value: st.Faults[name][kind]}.String())
		}
		s.Members = append(s.Members, m)
	}
	for _, c := range st.Components {
		cs := ComponentStatus{Name: c.Name, PID: c.PID, State: c.State(), Log: c.Log}
		if len(c.Ports) > 0 {
			cs.Port = c.Ports[0]
		}
		s.Components = append(s.Components, cs)
	}
	return s, nil
}

// Print writes the status for a person to read.
func (s Status) Print(w io.Writer) error {
	fmt.Fprintf(w, "fleet in %s: %s\n\n", s.Dir, s.Phase)
	tw := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	fmt.Fprintln(tw, "COMPONENT\tSTATE\tPID\tPORT\tLOG")
	for _, c := range s.Components {
		fmt.Fprintf(tw, "%s\t%s\t%s\t%s\t%s\n", c.Name, c.State, dash(c.PID), dash(c.Port), c.Log)
	}
	fmt.Fprintln(tw, "\nCLUSTER\tFAULTS\tKUBECONFIG")
	fmt.Fprintf(tw, "hub\t-\t%s\n", s.Hub.Kubeconfig)
	for _, m := range s.Members {
		faults := strings.Join(m.Faults, ",")
		if faults == "" {
			faults = "-"
		}
		fmt.Fprintf(tw, "%s\t%s\t%s\n", m.Name, faults, m.Kubeconfig)
	}
	return tw.Flush()
}

func dash(n int) string {
	if n == 0 {
		return "-"
	}
	return fmt.Sprint(n)
}
