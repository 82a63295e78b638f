package plan

import (
	"fmt"
	"strings"
)

// NodePort returns the port name, and the component, of a member's node.
func NodePort(member string) string { return member + "-node" }

// DataPlanePortNames lists the ports that a data plane needs beyond PortNames.
func DataPlanePortNames(members int) []string {
	names := []string{FabricPort}
	for _, m := range Members(members) {
		names = append(names, NodePort(m))
	}
	return names
}

// Where programs answer whether they are ready, inside their node.
const (
	proxyHealth  = "127.0.0.1:10256"
	proxyMetrics = "127.0.0.1:10249"
	dnsReady     = "127.0.0.1:8181"
)

// addDataPlane plans what carries packets: the network, and in each member's
// node kube-proxy, CoreDNS and the agent that runs pods.
func (p *Plan) addDataPlane(o Options) {
	p.Network = newNetwork(o)
	p.Components = append(p.Components, Component{
		Name: FabricPort,
		Argv: []string{
			o.Sandbox, "fabric", "--network=" + o.path(NetworkFile),
			"--health=" + o.loopback(FabricPort),
		},
		Ports: []int{o.Ports[FabricPort]},
		Log:   o.log(FabricPort),
		Tier:  TierServer,
		Ready: Probe{URL: "http://" + o.loopback(FabricPort) + "/healthz"},
	})
	for _, m := range p.Network.Members {
		p.addNodeCredentials(o, m.Name)
		p.Texts = append(p.Texts,
			Text{Path: MemberFile(o.Dir, m.Name, "Corefile"), What: "CoreDNS of " + m.Name, Data: o.corefile(m)},
			Text{Path: MemberFile(o.Dir, m.Name, "resolv.conf"), What: "resolver of its client", Data: resolvConf(m)},
		)
		p.Components = append(p.Components, o.kubeProxy(m), o.coreDNS(m), o.node(m))
	}
}

func (o Options) nodeCert(member string) Certificate {
	return Certificate{Path: o.path("pki", NodePort(member))}
}

func (o Options) kubeletCert(member string) Certificate {
	return Certificate{Path: o.path("pki", member+"-kubelet")}
}

func (o Options) kubeletClientCert(member string) Certificate {
	return Certificate{Path: o.path("pki", member+"-kubelet-client")}
}

// addNodeCredentials plans how node and API server know each other, both ways.
func (p *Plan) addNodeCredentials(o Options, member string) {
	authority := member + "-clients"
	client := o.nodeCert(member)
	p.Certificates = append(p.Certificates,
		Certificate{Path: client.Path, Authority: authority, CommonName: "system:node:" + NodeName, Organization: "system:masters"},
		Certificate{Path: o.kubeletClientCert(member).Path, Authority: authority, CommonName: "kube-apiserver"},
		Certificate{
			Path: o.kubeletCert(member).Path, Authority: ServingAuthority, CommonName: NodePort(member),
			Hosts: []string{"127.0.0.1", "localhost"},
		},
	)
	p.Kubeconfigs = append(p.Kubeconfigs, Kubeconfig{Path: client.Path + ".kubeconfig", Contexts: []Context{
		{Name: member, Server: "https://" + o.loopback(APIServer(member)), Client: client},
	}})
}

// kubeletFlags let an API server reach its node. A node's internal addresses
// are those inside its namespace; the one that leads there from outside is its
// external one.
func (o Options) kubeletFlags(member string) []string {
	client := o.kubeletClientCert(member)
	return []string{
		"--kubelet-client-certificate=" + client.cert(), "--kubelet-client-key=" + client.key(),
		"--kubelet-certificate-authority=" + o.path("pki", "ca.crt"),
		"--kubelet-preferred-address-types=ExternalIP",
	}
}

// inside runs a program in a network namespace.
func (o Options) inside(namespace string, argv []string) []string {
	return append([]string{o.Sandbox, "inside", namespace, "--"}, argv...)
}

func (o Options) kubeProxy(m MemberNetwork) Component {
	name := m.Name + "-kube-proxy"
	return Component{
		Name: name,
		Argv: o.inside(m.Node, o.kubebox("kube-proxy",
			"--kubeconfig="+o.nodeCert(m.Name).Path+".kubeconfig",
			"--hostname-override="+NodeName,
			"--proxy-mode=nftables",
			"--cluster-cidr="+m.Pods4.String()+","+m.Pods6.String(),
			"--healthz-bind-address="+proxyHealth,
			"--metrics-bind-address="+proxyMetrics,
			// A namespace can't set the machine's limits.
			"--conntrack-max-per-core=0",
			"--conntrack-tcp-timeout-established=0s",
			"--conntrack-tcp-timeout-close-wait=0s",
		)),
		Log:   o.log(name),
		Needs: []string{FabricPort, APIServer(m.Name)},
		Tier:  TierClient,
		Ready: Probe{URL: "http://" + proxyHealth + "/healthz", Namespace: m.Node},
	}
}

func (o Options) coreDNS(m MemberNetwork) Component {
	name := m.Name + "-coredns"
	return Component{
		Name:  name,
		Argv:  o.inside(m.Node, o.kubebox("coredns", "-conf="+MemberFile(o.Dir, m.Name, "Corefile"))),
		Log:   o.log(name),
		Needs: []string{FabricPort, APIServer(m.Name)},
		Tier:  TierClient,
		Ready: Probe{URL: "http://" + dnsReady + "/ready", Namespace: m.Node},
	}
}

// corefile is what clusters usually have, with short lifetimes: a test that
// waits half a minute for a cache shows nothing more.
func (o Options) corefile(m MemberNetwork) string {
	return fmt.Sprintf(`.:53 {
    errors
    ready %s
    kubernetes cluster.local in-addr.arpa ip6.arpa {
        kubeconfig %s
        pods insecure
        ttl 1
        fallthrough in-addr.arpa ip6.arpa
    }
    cache 1
    loadbalance
}
`, dnsReady, o.nodeCert(m.Name).Path+".kubeconfig")
}

// ClusterDomain ends every name that a member's CoreDNS knows.
const ClusterDomain = "cluster.local"

// SearchPath is where a pod of the namespace looks for short names.
func SearchPath(namespace string) []string {
	return []string{namespace + ".svc." + ClusterDomain, "svc." + ClusterDomain, ClusterDomain}
}

func resolvConf(m MemberNetwork) string {
	return fmt.Sprintf("nameserver %s\nsearch %s\noptions ndots:5\n", m.Node4, strings.Join(SearchPath("default"), " "))
}

func (o Options) node(m MemberNetwork) Component {
	name := NodePort(m.Name)
	client := o.kubeletClientCert(m.Name)
	argv := []string{o.Sandbox, "node", "--dir=" + o.Dir, "--member=" + m.Name}
	if o.Images != "" {
		argv = append(argv, "--images="+o.Images)
	}
	return Component{
		Name:  name,
		Argv:  argv,
		Ports: []int{o.Ports[name]},
		Log:   o.log(name),
		Needs: []string{FabricPort, APIServer(m.Name)},
		Tier:  TierClient,
		Ready: Probe{URL: "https://" + o.loopback(name) + "/healthz", CA: o.path("pki", "ca.crt"), Cert: client.cert(), Key: client.key()},
	}
}
