package demo

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/namesake-io/namesake/sandbox/internal/fleet"
)

// Bounds: a demo in which something takes longer than these has failed. What it
// took is printed.
const (
	// spreadLimit is for a new Namespace or MultiClusterService.
	spreadLimit = 10 * time.Second
	// changeLimit is for one change, from the provider's slice to the last
	// consumer, when all is well.
	changeLimit = 2 * time.Second
	// ownLimit is for Kubernetes' own controller, which makes the provider's
	// slices. It takes its time when its view of them is behind.
	ownLimit = time.Minute
	// slow is what a change of a provider's slice takes when its controller finds
	// that it has not yet seen its own last write, and tries again a second later.
	slow = 500 * time.Millisecond
	// changeInterval is the pause between two changes.
	changeInterval = 200 * time.Millisecond
	// statusLimit is for a status on the hub, which is written at most once a
	// second.
	statusLimit = 10 * time.Second
	// recoverLimit is for what has to find out first that a server is back.
	recoverLimit = time.Minute
	// stepLimit is for a whole step.
	stepLimit = 3 * time.Minute
)

// story is what the steps share.
type story struct {
	*output
	world *world
	// fleet does what is asked without a word.
	fleet  *fleet.Fleet
	binDir string
	// dir is the fleet's directory, sandbox this program.
	dir, sandbox string
	hub          string // path of the hub's kubeconfig
	// measured is the table at the end.
	measured []measure
}

type measure struct {
	what   string
	figure string
}

// step is one part of the story. Its error says what did not hold.
type step struct {
	title string
	tell  func(*story, context.Context) error
}

// steps come after the fleet has come up, which is the first one.
func steps(withPackets bool) []step {
	list := []step{
		{"One name, everywhere", (*story).spread},
		{"Changes arrive", (*story).changes},
		{"A member's API server stops", (*story).memberDown},
		{"And comes back", (*story).memberBack},
		{"The hub is killed", (*story).hubDown},
		{"The wish is withdrawn", (*story).withdraw},
	}
	if withPackets {
		list = append(list, step{"Packets: curl in another cluster", (*story).packets})
	}
	return list
}

func (s *story) measure(what, figure string) {
	s.measured = append(s.measured, measure{what, figure})
}

// provider is the member with the pods that the story is about.
func (s *story) provider() *cluster { return s.world.members[0] }

// neighbour is the member that gets a pod while the provider is down.
func (s *story) neighbour() *cluster { return s.world.members[1] }

// spread makes the service known everywhere.
func (s *story) spread(ctx context.Context) error {
	w, provider := s.world, s.provider()
	consumers := w.others(provider)
	if err := s.prepare(ctx); err != nil {
		return err
	}
	var arrivals []*wait
	for _, c := range w.members { // the provider too: its watch may be the last to tell
		arrivals = append(arrivals, c.book.expect(time.Now(), provider.name, provider.pods))
	}
	began := time.Now()
	if err := w.createMultiClusterService(ctx); err != nil {
		return err
	}
	last, err := w.await(ctx, spreadLimit, arrivals...)
	if err != nil {
		return err
	}
	s.say("On the hub: a Service %s, and a MultiClusterService that wants it in every cluster.", serviceName)
	s.fact(fmt.Sprintf("%s has its slice, and %s have it too, after", provider.name, namesOf(consumers)), last.Sub(began))
	s.measure("MultiClusterService made, until all consumers have all slices", words(last.Sub(began)))
	for _, c := range consumers {
		c.book.keep(provider.name, provider.pods)
	}
	if err := s.checkSlices(); err != nil {
		return err
	}
	return s.showServices(ctx)
}

// prepare makes the namespace, the pods and the Service.
func (s *story) prepare(ctx context.Context) error {
	w, provider := s.world, s.provider()
	began := time.Now()
	if err := w.createNamespace(ctx); err != nil {
		return err
	}
	for _, m := range w.members {
		if err := poll(ctx, spreadLimit, func(ctx context.Context) error {
			_, err := m.get(ctx, namespaces, "", namespace)
			return err
		}); err != nil {
			return fmt.Errorf("waiting for namespace %s in %s: %w", namespace, m.name, err)
		}
	}
	s.fact(fmt.Sprintf("On the hub: a namespace %s. Every member has it after", namespace), time.Since(began))
	for _, m := range w.members[:2] {
		if err := m.createNode(ctx); err != nil {
			return err
		}
	}
	for n := 1; n <= 2; n++ {
		if err := errors.Join(provider.createPod(ctx, n), provider.reportPod(ctx, n, true)); err != nil {
			return err
		}
		provider.pods[provider.podAddress(n)] = true
	}
	s.say("In %s: pods %s and %s, Ready. They are objects without a process: no packet", provider.name, provider.podName(1), provider.podName(2))
	s.say("flows yet. The slices are real: Kubernetes' own controller makes them of the pods.")
	return w.createService(ctx)
}

// checkSlices shows the provider's slices in each consumer, and checks that they
// are its own under a name that tells where they are from.
func (s *story) checkSlices() error {
	provider := s.provider()
	own := map[string]slice{}
	for _, o := range provider.book.list(provider.name) {
		own[provider.name+"-"+o.name] = o
	}
	for i, c := range s.world.others(provider) {
		list := c.book.list(provider.name)
		if len(list) != len(own) {
			return fmt.Errorf("%s has %d slices of %s, want %d", c.name, len(list), provider.name, len(own))
		}
		for _, got := range list {
			want, ok := own[got.name]
			if !ok || !maps.Equal(got.endpoints, want.endpoints) || got.port != want.port {
				return fmt.Errorf("%s has a slice %s (%s, port %d) that %s has not", c.name, got.name, got.endpoints, got.port, provider.name)
			}
			if i < 3 {
				s.quote(fmt.Sprintf("  %-8s %s   %s   port %d", c.name, got.name, got.endpoints, got.port))
			}
		}
	}
	return nil
}

// showServices shows what a person sees on the hub, once it says that all is
// well.
func (s *story) showServices(ctx context.Context) error {
	if err := poll(ctx, statusLimit, s.hubIsContent); err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, filepath.Join(s.binDir, "namesakectl"), "--kubeconfig", s.hub, "get", "services", "--namespace", namespace)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("running namesakectl get services: %w\n%s", err, out)
	}
	s.quote("$ namesakectl get services -n " + namespace + "\n" + string(out))
	return nil
}

// hubIsContent is an error as long as the MultiClusterService is not Ready.
func (s *story) hubIsContent(ctx context.Context) error {
	mcs, err := s.world.hub.get(ctx, multiClusterServices, namespace, serviceName)
	if err != nil {
		return err
	}
	if status, reason := condition(mcs.Object, "Ready"); status != "True" {
		return fmt.Errorf("condition Ready of MultiClusterService %s is %q (%s)", serviceName, status, reason)
	}
	return nil
}

// changes makes changes in the provider, one after the other, and takes their
// times.
func (s *story) changes(ctx context.Context) error {
	provider := s.provider()
	consumers := s.world.others(provider)
	list := []struct {
		pod  int
		what podState
	}{
		{1, podNotReady},
		{1, podReady},
		{2, podNotReady},
		{2, podReady},
		{3, podReady},
		{3, podGone},
		{2, podNotReady},
		{2, podReady},
		{1, podNotReady},
		{1, podReady},
	}
	var all, own, carried []time.Duration
	for _, l := range list {
		if err := pause(ctx, changeInterval); err != nil {
			return err
		}
		t, err := s.world.travel(ctx, change{provider, l.pod, l.what, consumers}, changeLimit)
		if err != nil {
			return err
		}
		all, own, carried = append(all, t.last), append(own, t.own), append(carried, t.carried)
	}
	s.say("%s changes in %s, one by one: pods turn not ready and ready again, one comes, one goes.", capital(number(len(list))), provider.name)
	s.figure(fmt.Sprintf("From a pod's new status to the last slice in %s, median", namesOf(consumers)), summarize(all).String())
	s.figure(fmt.Sprintf("of that Namesake's part, from the slice in %s to the last copy", provider.name), summarize(carried).String())
	if worst := summarize(own).worst; worst > slow {
		s.fact(fmt.Sprintf("The worst waited for Kubernetes' own controller in %s to change the slice, for", provider.name), worst)
	}
	s.measure("A pod changes, until the last consumer knows (median)", summarize(all).String())
	s.measure("A slice changes, until its last copy does (median)", summarize(carried).String())
	return nil
}
