package plan

import (
	"slices"
	"strconv"
)

const (
	// ServingAuthority signs the certificates of all servers; its certificate
	// stands in every kubeconfig.
	ServingAuthority = "sandbox"
	// storageAuthority signs what etcd takes from its clients.
	storageAuthority = "etcd-clients"
)

// Authority is a certificate authority whose certificate stands at Path.
type Authority struct {
	Name, Path string
}

// Certificate stands at Path + ".crt", its key at Path + ".key".
type Certificate struct {
	Path         string
	Authority    string
	CommonName   string
	Organization string
	// Hosts are what a server's certificate is valid for; a client has none.
	Hosts []string
}

func (c Certificate) cert() string { return c.Path + ".crt" }
func (c Certificate) key() string  { return c.Path + ".key" }

// Files returns where certificate and key stand.
func (c Certificate) Files() (cert, key string) { return c.cert(), c.key() }

// SigningKey stands at Path + ".key", its public half at Path + ".pub".
type SigningKey struct {
	Path string
}

func (k SigningKey) private() string { return k.Path + ".key" }
func (k SigningKey) public() string  { return k.Path + ".pub" }

// Files returns where public and private key stand.
func (k SigningKey) Files() (public, private string) { return k.public(), k.private() }

// Kubeconfig holds one context or more; the first is the current one.
type Kubeconfig struct {
	Path     string
	Contexts []Context
}

// Context is one server and the certificate that is shown to it. All of them
// verify the server by the fleet's own authority.
type Context struct {
	Name   string
	Server string
	Client Certificate
}

func (p *Plan) addKubeconfigs(o Options) {
	direct := func(controlPlane string) Context {
		return Context{Name: controlPlane, Server: "https://" + o.loopback(APIServer(controlPlane)), Client: o.adminCert(controlPlane)}
	}
	names := append([]string{hubName}, Members(o.Members)...)
	all := Kubeconfig{Path: o.path("kubeconfig")}
	for _, name := range names {
		all.Contexts = append(all.Contexts, direct(name))
		p.Kubeconfigs = append(p.Kubeconfigs, Kubeconfig{Path: o.path(name + ".kubeconfig"), Contexts: []Context{direct(name)}})
	}
	p.Kubeconfigs = append(p.Kubeconfigs, all)
	for _, m := range Members(o.Members) {
		relayed := direct(m)
		if !slices.Contains(o.Pull, m) { // there is no way of the hub there
			relayed.Server = "https://" + o.loopback(RelayPort(m))
		}
		p.Kubeconfigs = append(p.Kubeconfigs, Kubeconfig{Path: o.hubPath(m), Contexts: []Context{relayed}})
	}
	for _, name := range names {
		manager := direct(name)
		manager.Client = o.managerCert(name)
		p.Kubeconfigs = append(p.Kubeconfigs, Kubeconfig{Path: manager.Client.Path + ".kubeconfig", Contexts: []Context{manager}})
	}
}

// hubPath is the kubeconfig that leads to a member the way the hub goes.
func (o Options) hubPath(member string) string {
	return o.path("hub-paths", member+".kubeconfig")
}

func port(n int) string { return strconv.Itoa(n) }
