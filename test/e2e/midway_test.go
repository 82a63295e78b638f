package e2e

import (
	"context"
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/namesake-io/namesake/api/cluster/v1alpha1"
)

// The hub is killed while it takes a provider off, lets a member go, or gets a new
// token for one. The next one ends what was begun, and nothing else goes.
func TestKilledMidway(t *testing.T) {
	f := alone(t)
	m := midway{site: f.newSite(t, nil)}
	m.all = m.serveEverywhere(0, 24)
	for _, sp := range m.all {
		m.createMCS(sp.service)
	}
	m.waitSpread(m.all...)
	t.Run("a provider is taken off", m.providerTakenOff)
	t.Run("a member leaves", m.memberLeaves)
	t.Run("a token is renewed", m.tokenRenewed)
}

// midway is a site with services that are spread everywhere.
type midway struct {
	*site
	all []spread
}

// kill kills the manager once member2 has begun to lose slices, and starts another.
func (m *midway) kill(t *testing.T, h *history) {
	t.Helper()
	h.waitState(patience, "it has begun", func(state map[string]client.Object) error {
		if len(state) == len(m.names())*len(m.all) {
			return errors.New("member2 has all its slices")
		}
		return nil
	})
	restart := m.killManager(t)
	t.Logf("killed when %d of %d slices were gone from member2", len(h.deleted()), len(m.all))
	restart()
}

func (m *midway) providerTakenOff(t *testing.T) {
	h := m.watch(m.members["member2"], &discoveryv1.EndpointSliceList{})
	var without []spread
	for _, sp := range m.all {
		m.changeMCS(sp.service, from("member1", "member2"))
		without = append(without, spread{service: sp.service, providers: []string{"member1", "member2"}, consumers: m.names()})
	}
	m.kill(t, h)
	m.waitSpread(without...)
	m.waitCollected(without...)
	for _, sp := range m.all {
		m.changeMCS(sp.service, from())
	}
	m.waitSpread(m.all...)
	m.waitCollected(m.all...)
}

func (m *midway) memberLeaves(t *testing.T) {
	comeBack(t, m.fleet, "member3")
	h := m.watch(m.members["member2"], &discoveryv1.EndpointSliceList{})
	left := make(chan error, 1)
	go func() {
		_, err := m.ctl(context.WithoutCancel(t.Context()), "unjoin", "member3", "--cluster-kubeconfig", m.hubPath("member3"))
		left <- err
	}()
	m.kill(t, h)
	m.must(<-left)
	m.must(checkClean(t.Context(), m.site, "member3"))
	waitForgotten(t, m.fleet, "member3")
	join(t, m.fleet, "member3")
	m.waitSpread(m.all...)
	m.waitCollected(m.all...)
}

func (m *midway) tokenRenewed(t *testing.T) {
	h := m.watch(m.members["member2"], &discoveryv1.EndpointSliceList{})
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: clusterv1alpha1.SystemNamespace, Name: "member1"}}
	m.must(m.hub.Get(t.Context(), client.ObjectKeyFromObject(secret), secret))
	old := secret.ResourceVersion
	renewed := make(chan error, 1)
	go func() {
		_, err := m.ctl(context.WithoutCancel(t.Context()), "join", "member1", "--cluster-kubeconfig", m.hubPath("member1"))
		renewed <- err
	}()
	within(t, patience, "the hub has another token", func(ctx context.Context) error {
		err := m.hub.Get(ctx, client.ObjectKeyFromObject(secret), secret)
		if err == nil && secret.ResourceVersion == old {
			err = errors.New("it has the old one")
		}
		return err
	})
	m.killManager(t)()
	m.must(<-renewed)
	m.changeSlice("member1", "svc00-a")
	m.waitSpread(m.all...)
	waitTold(t, m.fleet, "member1", clusterv1alpha1.ConditionReady, clusterv1alpha1.ReasonClusterReady)
	if lost := h.deleted(); len(lost) > 0 {
		t.Errorf("%v disappeared", lost)
	}
}
