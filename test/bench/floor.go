package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// floorLabel marks the slices of the floor, which go with it.
const floorLabel = "bench.namesake.io/floor"

// floor makes the same writes in members as any control plane must, and no other:
// one worker for each member, over protobuf. What it takes is seen by the same
// watches.
type floor struct {
	*site
	mu sync.Mutex
	// made holds its slices by member and name.
	made map[string]map[string]*discoveryv1.EndpointSlice
	// samples by the name of the measure that they are the floor of.
	samples map[string][]milliseconds
}

// measureFloor measures the floor of every measure that has one.
func (s *site) measureFloor(ctx context.Context) (map[string][]milliseconds, error) {
	f := &floor{site: s, made: map[string]map[string]*discoveryv1.EndpointSlice{}, samples: map[string][]milliseconds{}}
	for _, m := range s.members {
		f.made[m.name] = map[string]*discoveryv1.EndpointSlice{}
	}
	services := names("floor-", s.opts.repetitions)
	for _, service := range services {
		if err := f.spread(ctx, "T1", []string{service}); err != nil {
			return nil, err
		}
	}
	if err := f.single(ctx, services[0]); err != nil {
		return nil, err
	}
	if err := f.withdraw(ctx, services[0]); err != nil {
		return nil, err
	}
	burst := names("floor-burst-", s.opts.burst)
	if err := f.spread(ctx, "", burst); err != nil {
		return nil, err
	}
	if err := f.together(ctx, burst); err != nil {
		return nil, err
	}
	for _, count := range s.opts.many {
		if err := f.spread(ctx, fmt.Sprintf("T3-%d", count), names(fmt.Sprintf("floor-many%d-", count), count)); err != nil {
			return nil, err
		}
	}
	for _, m := range s.members {
		err := m.kube.DiscoveryV1().EndpointSlices(s.ns).DeleteCollection(ctx, deleteOptions, metav1.ListOptions{LabelSelector: floorLabel})
		if err != nil {
			return nil, fmt.Errorf("clearing the floor in %s: %w", m.name, err)
		}
	}
	return f.samples, nil
}

// foreignName is the name of a provider's slice in another member.
func foreignName(provider, service string) string { return provider + "-" + service + "-x" }

// spread makes every foreign slice of services in every member.
func (f *floor) spread(ctx context.Context, name string, services []string) error {
	n := len(f.members)
	prepared := map[string][]*discoveryv1.EndpointSlice{}
	for _, m := range f.members {
		for _, service := range services {
			for _, provider := range f.members {
				if provider != m {
					slice := f.newSlice(service, foreignName(provider.name, service))
					slice.Labels[floorLabel] = service
					prepared[m.name] = append(prepared[m.name], slice)
				}
			}
		}
	}
	wanted := map[string]bool{}
	for _, service := range services {
		wanted[service] = true
	}
	expected := f.expect(len(services)*n*(n-1), func(seen sighting) string {
		if !wanted[seen.slice.Labels[floorLabel]] || seen.gone {
			return ""
		}
		return seen.member + "/" + seen.slice.Name
	})
	start := time.Now()
	err := each(ctx, n, f.members, func(ctx context.Context, m *cluster) error {
		for _, slice := range prepared[m.name] {
			made, err := m.kube.DiscoveryV1().EndpointSlices(f.ns).Create(ctx, slice, createOptions)
			if err != nil {
				return fmt.Errorf("making a slice in %s: %w", m.name, err)
			}
			f.keep(m, made)
		}
		return nil
	})
	if err != nil {
		return err
	}
	seen, err := expected.wait(ctx, f.opts.patience)
	if err != nil {
		return err
	}
	if _, last := since(start, seen); name != "" {
		f.samples[name] = append(f.samples[name], last)
	}
	return nil
}

// keep keeps what a member returned for a write.
func (f *floor) keep(m *cluster, slice *discoveryv1.EndpointSlice) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.made[m.name][slice.Name] = slice
}

// update writes one endpoint's address.
func (f *floor) update(ctx context.Context, m *cluster, name, address string) error {
	f.mu.Lock()
	slice := f.made[m.name][name].DeepCopy()
	f.mu.Unlock()
	slice.Endpoints[0].Addresses = []string{address}
	made, err := m.kube.DiscoveryV1().EndpointSlices(f.ns).Update(ctx, slice, updateOptions)
	if err != nil {
		return fmt.Errorf("changing a slice in %s: %w", m.name, err)
	}
	f.keep(m, made)
	return nil
}

// own makes the provider's own slices, whose changes are part of the floor as
// they are part of what is measured.
func (f *floor) own(ctx context.Context, services []string) error {
	for _, service := range services {
		slice := f.newSlice(service, service+"-x")
		slice.Labels[floorLabel] = service
		made, err := f.members[0].kube.DiscoveryV1().EndpointSlices(f.ns).Create(ctx, slice, createOptions)
		if err != nil {
			return fmt.Errorf("making a slice: %w", err)
		}
		f.keep(f.members[0], made)
	}
	return nil
}

// single writes each change to the provider, then to all consumers.
func (f *floor) single(ctx context.Context, service string) error {
	provider, consumers := f.members[0], f.members[1:]
	if err := f.own(ctx, []string{service}); err != nil {
		return err
	}
	for range f.opts.changes {
		if err := pause(ctx, f.opts.pause); err != nil {
			return err
		}
		address := f.newAddress()
		expected := f.expectChange(provider.name, service, address)
		start := time.Now()
		if err := f.update(ctx, provider, service+"-x", address); err != nil {
			return err
		}
		err := each(ctx, len(consumers), consumers, func(ctx context.Context, m *cluster) error {
			return f.update(ctx, m, foreignName(provider.name, service), address)
		})
		if err != nil {
			return err
		}
		seen, err := expected.wait(ctx, f.opts.patience)
		if err != nil {
			return err
		}
		_, last := since(start, seen)
		f.samples["T2"] = append(f.samples["T2"], last)
	}
	return nil
}

// together writes many changes to the provider at once, and each to all consumers.
func (f *floor) together(ctx context.Context, services []string) error {
	provider, consumers := f.members[0], f.members[1:]
	if err := f.own(ctx, services); err != nil {
		return err
	}
	type job struct{ service, address string }
	queues := map[string]chan job{}
	for _, m := range consumers {
		queues[m.name] = make(chan job, len(services))
	}
	workers := make(chan error, 1)
	go func() {
		workers <- each(ctx, len(consumers), consumers, func(ctx context.Context, m *cluster) error {
			for range services {
				j := <-queues[m.name]
				if err := f.update(ctx, m, foreignName(provider.name, j.service), j.address); err != nil {
					return err
				}
			}
			return nil
		})
	}()
	err := each(ctx, len(services), services, func(ctx context.Context, service string) error {
		address := f.newAddress()
		expected := f.expectChange(provider.name, service, address)
		start := time.Now()
		// What fails here must not keep the workers waiting.
		err := f.update(ctx, provider, service+"-x", address)
		for _, m := range consumers {
			queues[m.name] <- job{service, address}
		}
		if err != nil {
			return err
		}
		seen, err := expected.wait(ctx, f.opts.patience)
		if err != nil {
			return err
		}
		_, last := since(start, seen)
		f.mu.Lock()
		defer f.mu.Unlock()
		f.samples["T2-burst"] = append(f.samples["T2-burst"], last)
		return nil
	})
	if err != nil {
		return err
	}
	return <-workers
}

// withdraw deletes every foreign slice of a service.
func (f *floor) withdraw(ctx context.Context, service string) error {
	n := len(f.members)
	expected := f.expect(n*(n-1), func(seen sighting) string {
		if !seen.gone || seen.slice.Labels[floorLabel] != service {
			return ""
		}
		return seen.member + "/" + seen.slice.Name
	})
	start := time.Now()
	err := each(ctx, n, f.members, func(ctx context.Context, m *cluster) error {
		for _, provider := range f.members {
			if provider == m {
				continue
			}
			if err := m.kube.DiscoveryV1().EndpointSlices(f.ns).Delete(ctx, foreignName(provider.name, service), deleteOptions); err != nil {
				return fmt.Errorf("deleting a slice in %s: %w", m.name, err)
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	seen, err := expected.wait(ctx, f.opts.patience)
	if err != nil {
		return err
	}
	_, last := since(start, seen)
	f.samples["T5"] = append(f.samples["T5"], last)
	return nil
}
