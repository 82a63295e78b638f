package fleet

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
	clientcmdv1 "k8s.io/client-go/tools/clientcmd/api/v1"
	"sigs.k8s.io/yaml"

	"github.com/namesake-io/namesake/sandbox/internal/pki"
	"github.com/namesake-io/namesake/sandbox/internal/plan"
	"github.com/namesake-io/namesake/sandbox/internal/relay"
	"github.com/namesake-io/namesake/sandbox/internal/state"
)

const (
	logsDir = "logs"
	mib     = 1 << 20
	// baseDisk is what etcd takes before anything is stored, memberDisk what a
	// control plane and its logs come to in a short life.
	baseDisk   = 192 * mib
	memberDisk = 16 * mib
)

// owned lists what a fleet leaves in its directory besides logs, in the order
// in which it is removed. The record goes last: while it is there, the rest is
// known to be ours.
func owned() []string {
	names := []string{"etcd", "pki", "hub-paths", plan.RelaySocket, plan.RelayFile, "dataplane", "pods", plan.NetworkFile, "kubeconfig", "hub.kubeconfig"}
	for _, m := range plan.Members(plan.MaxMembers) {
		names = append(names, m+".kubeconfig")
	}
	return append(names, state.File)
}

// checkForeign refuses a directory that holds files with our names but no
// record: they are somebody else's, and would be overwritten and later removed.
func (f *Fleet) checkForeign() error {
	for _, name := range owned() {
		if _, err := os.Lstat(f.path(name)); err == nil {
			return fmt.Errorf("%s exists and was not made by a sandbox: choose another directory", f.path(name))
		}
	}
	return nil
}

// removeFiles removes what a fleet left, except logs.
func (f *Fleet) removeFiles() error {
	var errs []error
	for _, pattern := range []string{"." + state.File + ".*", "." + plan.RelayFile + ".*"} { // of interrupted writes
		leftovers, err := filepath.Glob(f.path(pattern))
		errs = append(errs, err)
		for _, path := range leftovers {
			errs = append(errs, os.Remove(path))
		}
	}
	for _, name := range owned() {
		errs = append(errs, os.RemoveAll(f.path(name)))
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("removing the fleet's files: %w", err)
	}
	return nil
}

// checkDisk tells early, and with figures, what would else end as an obscure
// failure of etcd.
func checkDisk(dir string, need uint64) error {
	var fs unix.Statfs_t
	if err := unix.Statfs(dir, &fs); err != nil {
		return fmt.Errorf("looking for disk space in %s: %w", dir, err)
	}
	if free := fs.Bavail * uint64(fs.Bsize); free < need {
		return fmt.Errorf("not enough disk space: %s has %d MiB free, the fleet needs about %d MiB", dir, free/mib, need/mib)
	}
	return nil
}

// writeFiles makes everything that the plan's processes read.
func (f *Fleet) writeFiles(p *plan.Plan) error {
	if err := os.MkdirAll(f.path(logsDir), 0o700); err != nil {
		return fmt.Errorf("making the log directory: %w", err)
	}
	clients, serving, err := writeCredentials(p)
	if err != nil {
		return err
	}
	for _, k := range p.Kubeconfigs {
		data, err := renderKubeconfig(k, serving, clients)
		if err != nil {
			return err
		}
		if err := writePrivate(k.Path, data); err != nil {
			return err
		}
	}
	config := relay.Config{Paths: []relay.Path{}}
	for _, l := range p.Links {
		config.Paths = append(config.Paths, relay.Path{Member: l.Member, Listen: l.Listen, Target: l.Target})
	}
	return errors.Join(config.Write(f.path(plan.RelayFile)), f.writeDataPlane(p))
}

// writeCredentials makes all keys and certificates. It returns the pairs by
// path, and the authority that servers are verified by.
func writeCredentials(p *plan.Plan) (pairs map[string]pki.Pair, serving []byte, err error) {
	authorities := map[string]*pki.Authority{}
	for _, a := range p.Authorities {
		authority, err := pki.NewAuthority(a.Name)
		if err != nil {
			return nil, nil, err
		}
		authorities[a.Name] = authority
		if err := writePrivate(a.Path, authority.Certificate()); err != nil {
			return nil, nil, err
		}
	}
	pairs = map[string]pki.Pair{}
	for _, c := range p.Certificates {
		pair, err := authorities[c.Authority].Issue(pki.Request{CommonName: c.CommonName, Organization: c.Organization, Hosts: c.Hosts})
		if err != nil {
			return nil, nil, err
		}
		pairs[c.Path] = pair
		cert, key := c.Files()
		if err := errors.Join(writePrivate(cert, pair.Public), writePrivate(key, pair.Private)); err != nil {
			return nil, nil, err
		}
	}
	for _, k := range p.SigningKeys {
		pair, err := pki.NewSigningKey()
		if err != nil {
			return nil, nil, err
		}
		public, private := k.Files()
		if err := errors.Join(writePrivate(public, pair.Public), writePrivate(private, pair.Private)); err != nil {
			return nil, nil, err
		}
	}
	return pairs, authorities[plan.ServingAuthority].Certificate(), nil
}

// renderKubeconfig makes a kubeconfig that holds everything it refers to, so
// that it works when it is copied elsewhere.
func renderKubeconfig(k plan.Kubeconfig, serving []byte, clients map[string]pki.Pair) ([]byte, error) {
	config := clientcmdv1.Config{APIVersion: "v1", Kind: "Config", CurrentContext: k.Contexts[0].Name}
	for _, c := range k.Contexts {
		pair, ok := clients[c.Client.Path]
		if !ok {
			return nil, fmt.Errorf("kubeconfig %s shows a certificate %s that is not planned", k.Path, c.Client.Path)
		}
		config.Clusters = append(config.Clusters, clientcmdv1.NamedCluster{
			Name:    c.Name,
			Cluster: clientcmdv1.Cluster{Server: c.Server, CertificateAuthorityData: serving},
		})
		config.AuthInfos = append(config.AuthInfos, clientcmdv1.NamedAuthInfo{
			Name:     c.Name + "-admin",
			AuthInfo: clientcmdv1.AuthInfo{ClientCertificateData: pair.Public, ClientKeyData: pair.Private},
		})
		config.Contexts = append(config.Contexts, clientcmdv1.NamedContext{
			Name:    c.Name,
			Context: clientcmdv1.Context{Cluster: c.Name, AuthInfo: c.Name + "-admin"},
		})
	}
	// By way of JSON, which knows how keys are spelled and bytes encoded.
	data, err := json.Marshal(config)
	if err != nil {
		return nil, fmt.Errorf("encoding kubeconfig %s: %w", k.Path, err)
	}
	return yaml.JSONToYAML(data)
}

// writePrivate writes a file that only its owner can read, in a directory that
// only its owner can enter.
func writePrivate(path string, data []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("making the directory of %s: %w", path, err)
	}
	if err := os.WriteFile(path, data, 0o600); err != nil {
		return fmt.Errorf("writing: %w", err)
	}
	return nil
}

// makeDir makes the fleet's directory and reports whether it was not there.
func (f *Fleet) makeDir() (made bool, err error) {
	info, err := os.Stat(f.dir)
	switch {
	case err == nil && !info.IsDir():
		return false, fmt.Errorf("%s is not a directory", f.dir)
	case err == nil:
		if err := unix.Access(f.dir, unix.W_OK|unix.X_OK); err != nil {
			return false, fmt.Errorf("%s is not writable: %w", f.dir, err)
		}
		return false, nil
	case !errors.Is(err, fs.ErrNotExist):
		return false, fmt.Errorf("finding %s: %w", f.dir, err)
	}
	if err := os.MkdirAll(f.dir, 0o700); err != nil {
		return false, fmt.Errorf("making the fleet's directory: %w", err)
	}
	return true, f.resolve()
}
