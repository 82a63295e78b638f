package plan

import "path/filepath"

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
		p.Links = append(p.Links, Link{Member: m, Listen: o.loopback(RelayPort(m)), Target: o.loopback(APIServer(m))})
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
		p.Joins = append(p.Joins, Step{
			Name: "join-" + m,
			Argv: []string{ctl, "join", m, "--kubeconfig", hub, "--cluster-kubeconfig", o.hubPath(m)},
			Log:  o.log("join-" + m),
		})
	}
}
