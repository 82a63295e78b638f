package demo

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/namesake-io/namesake/sandbox/internal/fault"
)

const (
	// holdTime is how long the world is watched while something is down.
	holdTime = 3 * time.Second

	manager      = "controller-manager"
	hubAPIServer = "hub-apiserver"
)

// memberDown stops the provider's API server: its pods may be well, so nothing
// that is known of them may change.
func (s *story) memberDown(ctx context.Context) error {
	w, provider, neighbour := s.world, s.provider(), s.neighbour()
	consumers := w.others(provider)
	before := w.counts(provider)
	if err := s.fleet.SetFault(ctx, provider.name, fault.Fault{Name: fault.APIDown}, true); err != nil {
		return err
	}
	s.say("The API server of %s is stopped. That says nothing of its pods, so they stay known.", provider.name)
	if err := pause(ctx, holdTime); err != nil {
		return err
	}
	if err := w.unchanged(provider, before); err != nil {
		return err
	}
	s.figure(fmt.Sprintf("%s, watched for %s: slices of %s that changed or went", namesOf(consumers), words(holdTime), provider.name), "none")
	reached := without(w.others(neighbour), provider)
	t, err := w.travel(ctx, change{neighbour, 1, podReady, reached}, changeLimit)
	if err != nil {
		return err
	}
	s.fact(fmt.Sprintf("Nobody else waits for it: a new pod in %s is known in %s after", neighbour.name, namesOf(reached)), t.last)
	s.measure("A pod changes while another member is down, until it is known", words(t.last))
	return w.unchanged(provider, before)
}

// memberBack starts the provider's API server again.
func (s *story) memberBack(ctx context.Context) error {
	w, provider, neighbour := s.world, s.provider(), s.neighbour()
	began := time.Now()
	missed := provider.book.expect(began, neighbour.name, neighbour.pods)
	if err := s.fleet.SetFault(ctx, provider.name, fault.Fault{Name: fault.APIDown}, false); err != nil {
		return err
	}
	back := time.Now()
	s.fact(fmt.Sprintf("The API server of %s starts, and answers after", provider.name), back.Sub(began))
	t, err := w.travel(ctx, change{provider, 1, podNotReady, w.others(provider)}, recoverLimit)
	if err != nil {
		return err
	}
	caughtUp, err := w.await(ctx, recoverLimit, missed)
	if err != nil {
		return err
	}
	provider.book.keep(neighbour.name, neighbour.pods)
	s.figure(fmt.Sprintf("It missed the new pod of %s. From then on, it knows it", neighbour.name), later(caughtUp.Sub(back)))
	s.fact("Its pod turns not ready. Kubernetes' own controller, back as well, notices after", t.own)
	s.fact(fmt.Sprintf("and %s know after another", namesOf(w.others(provider))), t.carried)
	s.measure("A member is back, until it has what it missed", soon(caughtUp.Sub(back)))
	s.measure("A member is back, until a change in it is known everywhere", words(t.last))
	return nil
}

// hubDown kills the hub, and makes a change that the hub can't see.
func (s *story) hubDown(ctx context.Context) error {
	w, provider := s.world, s.provider()
	consumers := w.others(provider)
	before := w.counts(provider)
	for _, component := range []string{manager, hubAPIServer} {
		if err := s.fleet.Kill(ctx, component); err != nil {
			return err
		}
	}
	s.say("SIGKILL to its API server and to the controller-manager. Then a pod of %s turns ready.", provider.name)
	j, err := w.setOut(ctx, change{provider, 1, podReady, consumers})
	if err != nil {
		return err
	}
	if _, err := w.await(ctx, ownLimit, j.own); err != nil {
		return err
	}
	if err := pause(ctx, holdTime); err != nil {
		return err
	}
	if err := w.unchanged(provider, before); err != nil {
		return err
	}
	s.figure(fmt.Sprintf("%s, watched for %s: slices that changed or went", namesOf(consumers), words(holdTime)), "none")

	began := time.Now()
	if err := s.fleet.Restart(ctx, hubAPIServer); err != nil {
		return err
	}
	s.fact("The hub's API server starts, and answers after", time.Since(began))
	began = time.Now()
	if err := s.fleet.Restart(ctx, manager); err != nil {
		return err
	}
	last, err := w.await(ctx, recoverLimit, j.arrivals...)
	if err != nil {
		return err
	}
	s.fact("The controller-manager starts. Everybody knows the change that it missed after", last.Sub(began))
	s.measure("A killed hub starts, until what it missed is known everywhere", words(last.Sub(began)))
	return nil
}

// withdraw deletes the MultiClusterService. Its finalizer goes last, so when it
// is gone, all of it must be gone.
func (s *story) withdraw(ctx context.Context) error {
	w := s.world
	for _, m := range w.members {
		m.book.release()
	}
	began := time.Now()
	err := w.hub.client.Resource(multiClusterServices).Namespace(namespace).Delete(ctx, serviceName, metav1.DeleteOptions{})
	if err != nil {
		return fmt.Errorf("deleting the MultiClusterService: %w", err)
	}
	if err := poll(ctx, spreadLimit, func(ctx context.Context) error {
		return w.hub.mustBeGone(ctx, multiClusterServices, serviceName)
	}); err != nil {
		return err
	}
	took := time.Since(began)
	if err := w.nothingLeft(ctx); err != nil {
		return fmt.Errorf("the MultiClusterService is gone, but %w", err)
	}
	s.fact("The MultiClusterService is deleted. All of it is gone, everywhere, after", took)
	s.say("Looked for and not found: dispatched slices and Services in the members, Works on the hub.")
	s.measure("MultiClusterService deleted, until nothing of it is left anywhere", words(took))
	return nil
}

// nothingLeft looks for what a MultiClusterService makes.
func (w *world) nothingLeft(ctx context.Context) error {
	for _, m := range w.members {
		list, err := m.client.Resource(endpointSlices).Namespace(namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return fmt.Errorf("the slices of %s can't be listed: %w", m.name, err)
		}
		for _, item := range list.Items {
			if provider := item.GetAnnotations()[provisionCluster]; provider != "" {
				return fmt.Errorf("%s still has slice %s", m.name, item.GetName())
			}
		}
		if err := m.mustBeGone(ctx, services, serviceName); err != nil {
			return err
		}
	}
	list, err := w.hub.client.Resource(works).List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("the hub's Works can't be listed: %w", err)
	}
	for _, item := range list.Items {
		if kind := workKind(item.Object); kind == "EndpointSlice" || kind == "Service" {
			return fmt.Errorf("the hub still has Work %s/%s of a %s", item.GetNamespace(), item.GetName(), kind)
		}
	}
	return nil
}

// counts tells how many events each consumer saw for a provider's slices.
func (w *world) counts(provider *cluster) map[string]int {
	counts := map[string]int{}
	for _, c := range w.others(provider) {
		counts[c.name] = c.book.count(provider.name)
	}
	return counts
}

// unchanged wants that there were no more events since counts.
func (w *world) unchanged(provider *cluster, counts map[string]int) error {
	for _, c := range w.others(provider) {
		if n := c.book.count(provider.name) - counts[c.name]; n > 0 {
			return fmt.Errorf("slices of %s changed in %s (%d events), though nothing is known that is new", provider.name, c.name, n)
		}
	}
	return w.losses()
}
