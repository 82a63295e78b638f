package plan

import (
	"slices"
	"strings"
)

const hubName = "hub"

type controlPlane struct {
	name      string
	addresses addresses
}

// Controllers of kube-controller-manager. A member has what makes slices and
// what people's manifests need; the hub has no pods and must make no slices.
var (
	hubControllers = []string{
		"garbage-collector-controller",
		"namespace-controller",
		"serviceaccount-controller",
		"serviceaccount-token-controller",
	}
	memberControllers = append([]string{
		"deployment-controller",
		"endpoints-controller",
		"endpointslice-controller",
		"endpointslice-mirroring-controller",
		"replicaset-controller",
		"statefulset-controller",
	}, hubControllers...)
	// podControllers are those of use only where pods run.
	podControllers = []string{"cronjob-controller", "daemonset-controller", "job-controller"}
)

// addStorage plans the one etcd. It speaks TLS and knows its clients: without
// that, every user of the machine could read the Secrets of all clusters.
func (p *Plan) addStorage(o Options) {
	p.Authorities = append(p.Authorities,
		Authority{Name: ServingAuthority, Path: o.path("pki", "ca.crt")},
		Authority{Name: storageAuthority, Path: o.path("pki", "etcd-ca.crt")},
	)
	server := Certificate{Path: o.path("pki", "etcd"), Authority: ServingAuthority, CommonName: "etcd", Hosts: []string{"127.0.0.1", "localhost"}}
	client := Certificate{Path: o.path("pki", "etcd-client"), Authority: storageAuthority, CommonName: "kube-apiserver"}
	p.Certificates = append(p.Certificates, server, client)

	clientURL, peerURL := "https://"+o.loopback(EtcdPort), "https://"+o.loopback(EtcdPeerPort)
	p.Components = append(p.Components, Component{
		Name: "etcd",
		Argv: o.kubebox("etcd",
			"--name=sandbox",
			"--data-dir="+o.path("etcd"),
			"--listen-client-urls="+clientURL,
			"--advertise-client-urls="+clientURL,
			"--listen-peer-urls="+peerURL,
			"--initial-advertise-peer-urls="+peerURL,
			"--initial-cluster=sandbox="+peerURL,
			"--cert-file="+server.cert(), "--key-file="+server.key(),
			"--client-cert-auth", "--trusted-ca-file="+o.path("pki", "etcd-ca.crt"),
			"--peer-cert-file="+server.cert(), "--peer-key-file="+server.key(),
			"--peer-client-cert-auth", "--peer-trusted-ca-file="+o.path("pki", "etcd-ca.crt"),
			"--enable-grpc-gateway=false",
			"--unsafe-no-fsync", // a sandbox outlives its processes, not its machine
			"--log-level=warn",
		),
		Ports: []int{o.Ports[EtcdPort], o.Ports[EtcdPeerPort]},
		Log:   o.log("etcd"),
		Tier:  TierStorage,
		Ready: Probe{URL: clientURL + "/health", CA: o.path("pki", "ca.crt"), Cert: client.cert(), Key: client.key()},
	})
}

// addControlPlane plans an API server and its kube-controller-manager. What the
// members must not share, they don't: the keys that sign tokens and the
// authority of client certificates differ, so that a credential for one cluster
// is refused by every other.
func (p *Plan) addControlPlane(o Options, c controlPlane) {
	authority := c.name + "-clients"
	p.Authorities = append(p.Authorities, Authority{Name: authority, Path: o.path("pki", authority+".crt")})
	p.SigningKeys = append(p.SigningKeys, SigningKey{Path: o.path("pki", c.name+"-service-accounts")})
	p.Certificates = append(p.Certificates,
		Certificate{
			Path:       o.path("pki", APIServer(c.name)),
			Authority:  ServingAuthority,
			CommonName: APIServer(c.name),
			Hosts: []string{
				"127.0.0.1", "localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc",
				"kubernetes.default.svc.cluster.local", first(c.addresses.services4), first(c.addresses.services6),
			},
		},
		Certificate{Path: o.adminCert(c.name).Path, Authority: authority, CommonName: "admin", Organization: "system:masters"},
		Certificate{Path: o.managerCert(c.name).Path, Authority: authority, CommonName: "system:kube-controller-manager", Organization: "system:masters"},
	)
	p.Components = append(p.Components, o.apiServer(c), o.kubeControllerManager(c))
}

func (o Options) adminCert(controlPlane string) Certificate {
	return Certificate{Path: o.path("pki", controlPlane+"-admin")}
}

func (o Options) managerCert(controlPlane string) Certificate {
	return Certificate{Path: o.path("pki", controlPlane+"-kube-controller-manager")}
}

func (o Options) apiServer(c controlPlane) Component {
	name := APIServer(c.name)
	serving := Certificate{Path: o.path("pki", name)}
	etcd := Certificate{Path: o.path("pki", "etcd-client")}
	signing := SigningKey{Path: o.path("pki", c.name+"-service-accounts")}
	var kubelet []string
	if o.DataPlane && c.name != hubName {
		kubelet = o.kubeletFlags(c.name)
	}
	return Component{
		Name: name,
		Argv: append(o.kubebox("kube-apiserver",
			"--bind-address=127.0.0.1",
			"--secure-port="+port(o.Ports[name]),
			// Left out, it would be the address of the machine's default route,
			// and the server would not start on a machine that has none.
			"--advertise-address="+first(c.addresses.pods4),
			"--tls-cert-file="+serving.cert(), "--tls-private-key-file="+serving.key(),
			"--client-ca-file="+o.path("pki", c.name+"-clients.crt"),
			"--etcd-servers=https://"+o.loopback(EtcdPort),
			"--etcd-prefix=/"+c.name,
			"--etcd-cafile="+o.path("pki", "ca.crt"),
			"--etcd-certfile="+etcd.cert(), "--etcd-keyfile="+etcd.key(),
			"--service-account-issuer=https://kubernetes.default.svc",
			"--service-account-key-file="+signing.public(),
			"--service-account-signing-key-file="+signing.private(),
			"--service-cluster-ip-range="+c.addresses.services4.String()+","+c.addresses.services6.String(),
			"--authorization-mode=RBAC",
			// Pods of a sandbox get no token: they don't call their API server.
			"--disable-admission-plugins=ServiceAccount",
			"--endpoint-reconciler-type=none",
			"--allow-privileged",
			"--profiling=false",
		), kubelet...),
		Ports: []int{o.Ports[name]},
		Log:   o.log(name),
		Needs: []string{"etcd"},
		Tier:  TierServer,
		Ready: o.adminProbe(c.name, "/readyz"),
	}
}

func (o Options) kubeControllerManager(c controlPlane) Component {
	controllers := memberControllers
	if o.DataPlane {
		controllers = slices.Concat(memberControllers, podControllers)
	}
	if c.name == hubName {
		controllers = hubControllers
	}
	name := c.name + "-kube-controller-manager"
	return Component{
		Name: name,
		Argv: o.kubebox("kube-controller-manager",
			"--kubeconfig="+o.managerCert(c.name).Path+".kubeconfig",
			"--controllers="+strings.Join(controllers, ","),
			"--service-account-private-key-file="+SigningKey{Path: o.path("pki", c.name+"-service-accounts")}.private(),
			"--root-ca-file="+o.path("pki", "ca.crt"),
			"--leader-elect=false",
			"--secure-port=0",
			// The defaults (20 and 30) would be what every measurement measures.
			"--kube-api-qps=1000", "--kube-api-burst=2000",
			"--profiling=false",
		),
		Log:   o.log(name),
		Needs: []string{APIServer(c.name)},
		Tier:  TierClient,
		// It serves nothing, but its first work shows that it works.
		Ready: o.adminProbe(c.name, "/api/v1/namespaces/default/serviceaccounts/default"),
	}
}

func (o Options) adminProbe(controlPlane, path string) Probe {
	admin := o.adminCert(controlPlane)
	return Probe{
		URL:  "https://" + o.loopback(APIServer(controlPlane)) + path,
		CA:   o.path("pki", "ca.crt"),
		Cert: admin.cert(),
		Key:  admin.key(),
	}
}
