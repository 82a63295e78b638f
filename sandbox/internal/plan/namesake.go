package plan

import (
	"path/filepath"
	"slices"
)

// RelayFile and RelaySocket are the relay's wishes and ear in the fleet's
// directory.
const (
	RelayFile   = "relay.json"
	RelaySocket = "relay.sock"
)

// addRelay plans the relay that stands between the hub and each member.
func (p *Plan) addRelay(o Options) {
	var ports []int
	for _, m := range Members(o.Members) {
		target := APIServer(m)
		if slices.Contains(o.Pull, m) {
			target = APIServer(hubName)
		}
		p.Links = append(p.Links, Link{Member: m, Listen: o.loopback(RelayPort(m)), Target: o.loopback(target)})
		ports = append(ports, o.Ports[RelayPort(m)])
	}
	p.Components = append(p.Components, Component{
		Name:  Relay,
		Argv:  []string{o.Sandbox, "relay", "--dir=" + o.Dir},
		Ports: ports,
		Log:   o.log(Relay),
		Tier:  TierClient,
		Ready: Probe{URL: "http://relay/healthz", Socket: o.path(RelaySocket)},
	})
}

// addNamesake plans what is ours: the hub's types, the controller-manager, and
// the members' joining over the path that the relay can cut.
func (p *Plan) addNamesake(o Options) {
	ctl := filepath.Join(o.BinDir, "namesakectl")
	hub := o.path(hubName + ".kubeconfig")
	p.Install = []Step{{
		Name: "install",
		Argv: []string{ctl, "install", "--kubeconfig", hub, "--webhook-url", "https://" + o.loopback(WebhookPort)},
		Log:  o.log("install"),
	}}
	p.Manager = []Component{{
		Name: ourManagerName,
		Argv: append([]string{
			filepath.Join(o.BinDir, "controller-manager"),
			"--kubeconfig", hub,
			"--metrics-bind-address", o.loopback(MetricsPort),
			"--health-probe-bind-address", o.loopback(HealthPort),
			"--webhook-bind-address", o.loopback(WebhookPort),
			// A fleet has one, so a killed one may take its own lease back at once.
			"--leader-elect=true", "--leader-elect-identity=" + ourManagerName,
		}, o.ControllerManagerArgs...),
		Ports: []int{o.Ports[MetricsPort], o.Ports[HealthPort], o.Ports[WebhookPort]},
		Log:   o.log(ourManagerName),
		Tier:  TierClient,
		Ready: Probe{URL: "http://" + o.loopback(HealthPort) + "/readyz"},
	}}
	for _, m := range Members(o.Members) {
		if slices.Contains(o.Pull, m) {
			p.addPull(o, m)
			continue
		}
		p.Joins = append(p.Joins, Step{
			Name: "join-" + m,
			Argv: []string{ctl, "join", m, "--kubeconfig", hub, "--cluster-kubeconfig", o.hubPath(m)},
			Log:  o.log("join-" + m),
		})
	}
}

// addPull plans the registration of a member, and its agent, which reaches the hub
// over the path that the relay can cut.
func (p *Plan) addPull(o Options, m string) {
	ctl := filepath.Join(o.BinDir, "namesakectl")
	token, agent := o.path("pki", m+"-token.kubeconfig"), o.path("pki", AgentName(m)+".kubeconfig")
	name := AgentName(m)
	p.Pulls = append(p.Pulls, Pull{
		Register: []Step{
			{
				Name: "token-" + m,
				Argv: []string{
					ctl, "token", "create", m, "--kubeconfig", o.path(hubName + ".kubeconfig"),
					"--hub-server", "https://" + o.loopback(RelayPort(m)), "--write", token,
				},
				Log: o.log("token-" + m),
			},
			{
				Name: "register-" + m,
				Argv: []string{
					ctl, "register", m, "--hub-kubeconfig", token,
					"--cluster-kubeconfig", o.path(m + ".kubeconfig"), "--agent-kubeconfig", agent,
				},
				Log: o.log("register-" + m),
			},
		},
		Agent: Component{
			Name: name,
			Argv: append([]string{
				filepath.Join(o.BinDir, "agent"),
				"--member-kubeconfig", agent,
				"--metrics-bind-address", o.loopback(agentMetrics(m)),
				"--health-probe-bind-address", o.loopback(agentHealth(m)),
			}, o.AgentArgs...),
			Ports: []int{o.Ports[agentMetrics(m)], o.Ports[agentHealth(m)]},
			Log:   o.log(name),
			Tier:  TierClient,
			Ready: Probe{URL: "http://" + o.loopback(agentHealth(m)) + "/readyz"},
		},
	})
}
