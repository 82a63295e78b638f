package plan

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// MaxMembers is what the address plan has room for with services to spare.
const MaxMembers = 60

const (
	// EtcdPort and the following name a fleet's ports in Options.Ports. Each
	// control plane has one that is named like its API server.
	EtcdPort       = "etcd"
	EtcdPeerPort   = "etcd-peer"
	MetricsPort    = "controller-manager-metrics"
	HealthPort     = "controller-manager-health"
	WebhookPort    = "controller-manager-webhook"
	Relay          = "relay"
	ourManagerName = "controller-manager"
)

// Tiers order the end of a fleet: the highest tier is stopped first.
const (
	TierStorage = iota + 1
	TierServer
	TierClient
)

// Options is what a plan depends on.
type Options struct {
	// Dir is the fleet's directory and BinDir that of its programs.
	Dir, BinDir string
	// Sandbox is the path of the sandbox program itself.
	Sandbox string
	// Members is the number of members, 0 to MaxMembers.
	Members int
	// Pull names the members that an agent stands in for; none of a bare fleet.
	Pull []string
	// Bare leaves out everything of ours: control planes and the relay only.
	Bare bool
	// Ports has a port for each of PortNames.
	Ports map[string]int
	// ControllerManagerArgs are added to those of our controller-manager.
	ControllerManagerArgs []string
	// AgentArgs are added to those of our agents.
	AgentArgs []string
	// DataPlane adds nodes that run pods. FleetID tells its network namespaces
	// from those of other fleets, and Images may name a file with more images.
	DataPlane bool
	FleetID   string
	Images    string
}

// Plan is everything that makes a fleet. Paths are absolute if Options.Dir is.
type Plan struct {
	Authorities  []Authority
	Certificates []Certificate
	SigningKeys  []SigningKey
	Kubeconfigs  []Kubeconfig
	Links        []Link
	Texts        []Text
	// Network is nil without a data plane.
	Network    *Network
	Components []Component
	// Install prepares the hub; Manager then starts, and Joins bring in the
	// members. A bare plan has none of them.
	Install []Step
	Manager []Component
	Joins   []Step
	// Pulls bring in the members that have an agent.
	Pulls []Pull
}

// Pull registers a member, and then runs its agent.
type Pull struct {
	Register []Step
	Agent    Component
}

// Component is one process that lives as long as the fleet.
type Component struct {
	Name string   `json:"name"`
	Argv []string `json:"argv"`
	// Ports are those it listens on, the main one first.
	Ports []int  `json:"ports,omitempty"`
	Log   string `json:"log"`
	// Needs names the components that must be ready before this one starts.
	Needs []string `json:"needs,omitempty"`
	Tier  int      `json:"tier"`
	Ready Probe    `json:"ready"`
}

// Probe tells how to see that a component is ready: the URL answers 200. CA,
// Cert and Key are paths; with a Socket, the URL's host is ignored and the unix
// socket at that path is dialled.
type Probe struct {
	URL    string `json:"url"`
	CA     string `json:"ca,omitempty"`
	Cert   string `json:"cert,omitempty"`
	Key    string `json:"key,omitempty"`
	Socket string `json:"socket,omitempty"`
	// Namespace is the network namespace to ask from, by default the machine's.
	Namespace string `json:"namespace,omitempty"`
}

// Text is a file that is written as it stands here.
type Text struct {
	Path, What, Data string
}

// Step is one program that runs to its end.
type Step struct {
	Name string
	Argv []string
	Log  string
}

// Link is one path through the relay: the hub dials Listen, which leads to
// Target, the member; or the member's agent dials it, and Target is the hub.
type Link struct {
	Member         string
	Listen, Target string
}

// Members returns the names of n members.
func Members(n int) []string {
	var names []string
	for i := range n {
		names = append(names, fmt.Sprintf("member%d", i+1))
	}
	return names
}

// APIServer returns the component name of a control plane's API server.
func APIServer(controlPlane string) string { return controlPlane + "-apiserver" }

// RelayPort returns the port name of the relay's listener for a member.
func RelayPort(member string) string { return member + "-relay" }

// PortNames lists the ports that a plan needs, in a stable order.
func PortNames(members int, bare bool) []string {
	names := []string{APIServer(hubName)}
	for _, m := range Members(members) {
		names = append(names, APIServer(m))
	}
	for _, m := range Members(members) {
		names = append(names, RelayPort(m))
	}
	names = append(names, EtcdPort, EtcdPeerPort)
	if !bare {
		names = append(names, MetricsPort, HealthPort, WebhookPort)
	}
	return names
}

// AgentName returns the component name of a member's agent.
func AgentName(member string) string { return member + "-agent" }

// agentMetrics and agentHealth are the port names of a member's agent.
func agentMetrics(member string) string { return AgentName(member) + "-metrics" }
func agentHealth(member string) string  { return AgentName(member) + "-health" }

// AgentPortNames lists the ports that agents need.
func AgentPortNames(pull []string) []string {
	var names []string
	for _, m := range pull {
		names = append(names, agentMetrics(m), agentHealth(m))
	}
	return names
}

// ParsePull reads which of n members have an agent: a number of them, counted
// from the last, or their names with commas between.
func ParsePull(text string, n int) ([]string, error) {
	if text == "" {
		return nil, nil
	}
	all := Members(n)
	if count, err := strconv.Atoi(text); err == nil {
		if count < 0 || count > n {
			return nil, fmt.Errorf("%d of %d members cannot have an agent", count, n)
		}
		return all[n-count:], nil
	}
	var out []string
	for _, name := range strings.Split(text, ",") {
		if !slices.Contains(all, name) || slices.Contains(out, name) {
			return nil, fmt.Errorf("%q is no member, or named twice; members are %s", name, strings.Join(all, ", "))
		}
		out = append(out, name)
	}
	return out, nil
}

// CheckMembers tells whether a fleet can have n members.
func CheckMembers(n int) error {
	if n < 0 || n > MaxMembers {
		return fmt.Errorf("a fleet has 0 to %d members, not %d", MaxMembers, n)
	}
	return nil
}

// New makes the plan.
func New(o Options) (*Plan, error) {
	if err := CheckMembers(o.Members); err != nil {
		return nil, err
	}
	if o.Bare && len(o.Pull) > 0 {
		return nil, errors.New("a bare fleet has no agents")
	}
	names := append(PortNames(o.Members, o.Bare), AgentPortNames(o.Pull)...)
	if o.DataPlane {
		names = append(names, DataPlanePortNames(o.Members)...)
	}
	for _, name := range names {
		if o.Ports[name] == 0 {
			return nil, fmt.Errorf("no port is given for %s", name)
		}
	}
	p := &Plan{}
	p.addStorage(o)
	for i, name := range append([]string{hubName}, Members(o.Members)...) {
		p.addControlPlane(o, controlPlane{name: name, addresses: addressesOf(i, o.Members+1)})
	}
	p.addRelay(o)
	p.addKubeconfigs(o)
	if o.DataPlane {
		p.addDataPlane(o)
	}
	if !o.Bare {
		p.addNamesake(o)
	}
	return p, nil
}

func (o Options) path(elem ...string) string {
	return filepath.Join(append([]string{o.Dir}, elem...)...)
}

func (o Options) log(component string) string {
	return o.path("logs", component+".log")
}

func (o Options) loopback(port string) string {
	return fmt.Sprintf("127.0.0.1:%d", o.Ports[port])
}

func (o Options) kubebox(applet string, flags ...string) []string {
	return append([]string{filepath.Join(o.BinDir, "kubebox"), applet}, flags...)
}
