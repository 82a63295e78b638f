package plan

import (
	"fmt"
	"path/filepath"
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
	// Bare leaves out everything of ours: control planes and the relay only.
	Bare bool
	// Ports has a port for each of PortNames.
	Ports map[string]int
	// ControllerManagerArgs are added to those of our controller-manager.
	ControllerManagerArgs []string
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
// Target.
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
	names := PortNames(o.Members, o.Bare)
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
