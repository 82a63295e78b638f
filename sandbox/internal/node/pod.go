package node

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/namesake-io/namesake/sandbox/internal/fabric"
	"github.com/namesake-io/namesake/sandbox/internal/plan"
	"github.com/namesake-io/namesake/sandbox/internal/podenv"
)

// pod is one pod that this node runs.
type pod struct {
	agent     *Agent
	addresses plan.Addresses
	index     int    // of the addresses
	namespace string // network namespace
	start     metav1.Time
	// stop asks all containers to end, kill ends them.
	stop, kill context.CancelFunc
	dirty      chan struct{} // has one element when there is news
	done       chan struct{} // closed when nothing of the pod is left

	init, main []*container

	mu     sync.Mutex
	object *corev1.Pod // as last given, with the status as last reported
	joined bool        // to the network
}

func (p *pod) spec() *corev1.Pod {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.object
}

func (p *pod) member() plan.MemberNetwork { return p.agent.member }

func (p *pod) hostNetwork() bool { return p.spec().Spec.HostNetwork }

func (p *pod) ips() []string {
	if p.hostNetwork() {
		return p.agent.hostIPs()
	}
	return []string{p.addresses.V4.String(), p.addresses.V6.String()}
}

func (p *pod) hostname() string {
	o := p.spec()
	switch {
	case o.Spec.HostNetwork:
		return plan.NodeName
	case o.Spec.Hostname != "":
		return o.Spec.Hostname
	default:
		const most = 63
		return strings.TrimRight(o.Name[:min(len(o.Name), most)], "-.")
	}
}

func (p *pod) file(name string) string {
	return p.agent.podFile(string(p.spec().UID), name)
}

func (p *pod) logPath(container string, run int) string {
	return p.file(filepath.Join("logs", container, fmt.Sprintf("%d.log", run)))
}

func (p *pod) container(name string) *container {
	for _, list := range [][]*container{p.init, p.main} {
		for _, c := range list {
			if c.spec.Name == name {
				return c
			}
		}
	}
	return nil
}

// changed has the pod's status reported.
func (p *pod) changed() {
	select {
	case p.dirty <- struct{}{}:
	default: // it will be anyway
	}
}

// run lives the pod's life, from joining the network to leaving it.
func (p *pod) run(stopping, killing context.Context) {
	defer close(p.done)
	reporting := make(chan struct{})
	over := make(chan struct{})
	go func() {
		defer close(reporting)
		for {
			select {
			case <-p.dirty:
				p.agent.notify(p.current(false))
			case <-over:
				return
			}
		}
	}()
	p.changed()
	if p.join(stopping) {
		p.runContainers(stopping, killing)
		p.leave()
	}
	close(over)
	<-reporting
	ended := stopping.Err() != nil
	p.agent.notify(p.current(ended))
	if ended {
		p.agent.finish(killing, p)
	}
}

// join joins the pod to the network, and reports whether it could before the end.
func (p *pod) join(stopping context.Context) bool {
	for stopping.Err() == nil {
		err := p.prepare()
		if err == nil {
			p.mu.Lock()
			p.joined = true
			p.mu.Unlock()
			p.changed()
			return true
		}
		for _, c := range append(p.init, p.main...) {
			c.wait("CreatePodSandboxError", err.Error())
		}
		pause(stopping, retryStart)
	}
	return false
}

func (p *pod) prepare() error {
	if !p.hostNetwork() {
		if err := fabric.AddPod(p.member(), p.namespace, p.addresses); err != nil {
			return fmt.Errorf("joining the pod to the network: %w", err)
		}
	}
	if err := os.MkdirAll(p.file(""), 0o700); err != nil {
		return fmt.Errorf("making the pod's directory: %w", err)
	}
	return errors.Join(
		os.WriteFile(p.file("resolv.conf"), []byte(resolver(p.spec(), p.member())), 0o600),
		os.WriteFile(p.file("hosts"), []byte(hosts(p.spec(), p.hostname(), p.ips())), 0o600),
	)
}

// leave takes the network of a pod away whose containers have ended.
func (p *pod) leave() {
	if p.hostNetwork() {
		return
	}
	if err := fabric.RemovePod(p.member(), p.namespace, p.addresses); err != nil {
		p.agent.logger.Error("Could not remove a pod's network", "pod", p.spec().Name, "err", err)
	}
}

// runContainers returns when all containers have ended. Sidecars end last.
func (p *pod) runContainers(stopping, killing context.Context) {
	var sidecars sync.WaitGroup
	defer sidecars.Wait()
	aside, end := context.WithCancel(context.WithoutCancel(stopping))
	defer end()
	for _, c := range p.init {
		if stopping.Err() != nil {
			return
		}
		if sidecar(c.spec) {
			sidecars.Go(func() { c.run(aside, killing) })
			p.await(stopping, c)
			continue
		}
		c.run(stopping, killing)
		if t := c.snapshot().terminated; t == nil || t.ExitCode != 0 {
			return
		}
	}
	var wg sync.WaitGroup
	for _, c := range p.main {
		wg.Go(func() { c.run(stopping, killing) })
	}
	wg.Wait()
}

// await returns when a sidecar has started.
func (p *pod) await(stopping context.Context, c *container) {
	for stopping.Err() == nil && !c.snapshot().started {
		pause(stopping, followInterval)
	}
}

// current returns the pod as it is now, with ended as it is at its very end.
func (p *pod) current(ended bool) *corev1.Pod {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := podState{start: p.start, hostIPs: p.agent.hostIPs()}
	if p.joined {
		s.ips = []string{p.addresses.V4.String(), p.addresses.V6.String()}
		if p.object.Spec.HostNetwork {
			s.ips = s.hostIPs
		}
	}
	for _, c := range p.init {
		s.init = append(s.init, c.snapshot())
	}
	for _, c := range p.main {
		s.main = append(s.main, c.snapshot())
	}
	o := p.object.DeepCopy()
	now := metav1.Now()
	if ended {
		s = s.ended(now)
		o.Spec.RestartPolicy = corev1.RestartPolicyNever // nothing is started again
	}
	o.Status = statusOf(o, s, now)
	o.Spec.RestartPolicy = p.object.Spec.RestartPolicy
	p.object = o
	return o.DeepCopy()
}

// source is what the environment of the pod's containers is made of.
func (p *pod) source(ctx context.Context) podenv.Source {
	o := p.spec()
	return podenv.Source{
		Pod: o, PodIPs: p.ips(), HostIPs: p.agent.hostIPs(),
		ConfigMap: func(name string) (map[string]string, bool, error) {
			ctx, cancel := context.WithTimeout(ctx, requestTimeout)
			defer cancel()
			object, err := p.agent.client.CoreV1().ConfigMaps(o.Namespace).Get(ctx, name, metav1.GetOptions{})
			if err != nil {
				return nil, false, ignoreNotFound(err)
			}
			return object.Data, true, nil
		},
		Secret: func(name string) (map[string]string, bool, error) {
			ctx, cancel := context.WithTimeout(ctx, requestTimeout)
			defer cancel()
			object, err := p.agent.client.CoreV1().Secrets(o.Namespace).Get(ctx, name, metav1.GetOptions{})
			if err != nil {
				return nil, false, ignoreNotFound(err)
			}
			data := map[string]string{}
			for k, v := range object.Data {
				data[k] = string(v)
			}
			return data, true, nil
		},
	}
}

func ignoreNotFound(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// resolver is the pod's /etc/resolv.conf.
func resolver(o *corev1.Pod, m plan.MemberNetwork) string {
	var (
		servers = []string{m.Node4.String()}
		search  = plan.SearchPath(o.Namespace)
		options = []string{"ndots:5"}
	)
	if o.Spec.DNSPolicy == corev1.DNSNone {
		servers, search, options = nil, nil, nil
	}
	if c := o.Spec.DNSConfig; c != nil {
		servers = append(servers, c.Nameservers...)
		search = append(search, c.Searches...)
		for _, option := range c.Options {
			text := option.Name
			if option.Value != nil {
				text += ":" + *option.Value
			}
			options = append(options, text)
		}
	}
	var b strings.Builder
	for _, s := range servers {
		fmt.Fprintf(&b, "nameserver %s\n", s)
	}
	if len(search) > 0 {
		fmt.Fprintf(&b, "search %s\n", strings.Join(search, " "))
	}
	if len(options) > 0 {
		fmt.Fprintf(&b, "options %s\n", strings.Join(options, " "))
	}
	return b.String()
}

// hosts is the pod's /etc/hosts.
func hosts(o *corev1.Pod, hostname string, ips []string) string {
	var b strings.Builder
	b.WriteString("127.0.0.1\tlocalhost\n::1\tlocalhost\n")
	names := hostname
	if o.Spec.Subdomain != "" {
		names = fmt.Sprintf("%s.%s.%s.svc.%s\t%s", hostname, o.Spec.Subdomain, o.Namespace, plan.ClusterDomain, hostname)
	}
	for _, ip := range ips {
		fmt.Fprintf(&b, "%s\t%s\n", ip, names)
	}
	for _, alias := range o.Spec.HostAliases {
		fmt.Fprintf(&b, "%s\t%s\n", alias.IP, strings.Join(alias.Hostnames, "\t"))
	}
	return b.String()
}

// end tells the pod to end, within the grace period.
func (p *pod) end(grace time.Duration) {
	p.stop()
	if grace <= 0 {
		p.kill()
		return
	}
	time.AfterFunc(grace, p.kill)
}
