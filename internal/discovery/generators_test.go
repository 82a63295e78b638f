package discovery_test

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	networkingv1alpha1 "github.com/namesake-io/namesake/api/networking/v1alpha1"
	"github.com/namesake-io/namesake/internal/discovery"
)

// Small pools, so that names, addresses and ports meet often.
var (
	somePorts = rapid.SampledFrom([][]discoveryv1.EndpointPort{
		nil,
		{},
		{port("http", 8080)},
		{port("http", 9090)},
		{port("http", 8080), port("web", 8080)},
		{port("dns", 53), udp(port("dns-udp", 53))},
		{{Port: ptr(int32(8080))}},
		{{Name: ptr("any")}},
	})
	someAddresses = map[discoveryv1.AddressType][]string{
		discoveryv1.AddressTypeIPv4: {"10.0.0.1", "10.0.0.2", "10.0.0.3"},
		discoveryv1.AddressTypeIPv6: {"fd00::1", "fd00:0::1", "fd00::2"},
		discoveryv1.AddressTypeFQDN: {"db.example.com", "db2.example.com"},
	}
	maybe   = rapid.SampledFrom([]*bool{nil, ptr(true), ptr(false)})
	rarely  = rapid.Map(rapid.IntRange(0, 5), func(n int) bool { return n == 5 })
	mostly  = rapid.Map(rarely, func(b bool) bool { return !b })
	someAge = rapid.SampledFrom([]time.Duration{0, 0, 0, time.Second, time.Minute, time.Hour})
	// Slice names that make spellings meet, see DispatchedName.
	localNames = rapid.SampledFrom([]string{"s", "t", "b-s", "a-s", "b-a-s", "s--xchyhscavpsydpog"})
)

func someEndpoint(t *rapid.T, addressType discoveryv1.AddressType) discoveryv1.Endpoint {
	e := discoveryv1.Endpoint{
		Addresses:  []string{rapid.SampledFrom(someAddresses[addressType]).Draw(t, "address")},
		Conditions: discoveryv1.EndpointConditions{Ready: maybe.Draw(t, "ready"), Serving: maybe.Draw(t, "serving"), Terminating: maybe.Draw(t, "terminating")},
	}
	if rapid.Bool().Draw(t, "ofPod") {
		e.NodeName, e.Zone = ptr("node-1"), ptr("zone-1")
		e.TargetRef = &corev1.ObjectReference{Kind: "Pod", Name: "foo-0"}
		e.Hostname = ptr("foo-0")
	}
	if rapid.Bool().Draw(t, "hinted") {
		e.Hints = &discoveryv1.EndpointHints{ForZones: []discoveryv1.ForZone{{Name: "zone-1"}}, ForNodes: []discoveryv1.ForNode{{Name: "node-1"}}}
	}
	return e
}

func someSlice(t *rapid.T, name string) *discoveryv1.EndpointSlice {
	s := slice(name,
		addressType(rapid.SampledFrom([]discoveryv1.AddressType{"IPv4", "IPv4", "IPv6", "FQDN"}).Draw(t, "addressType")),
		generation(rapid.Int64Range(1, 3).Draw(t, "generation")),
		ports(somePorts.Draw(t, "ports")...))
	for range rapid.IntRange(0, 3).Draw(t, "endpoints") {
		s.Endpoints = append(s.Endpoints, someEndpoint(t, s.AddressType))
	}
	switch rapid.IntRange(0, 9).Draw(t, "kind") {
	case 7:
		label(corev1.IsHeadlessService, "")(s)
	case 8:
		label(discoveryv1.LabelServiceName, "bar")(s)
	case 9:
		annotation(networkingv1alpha1.ProvisionClusterAnnotation, "elsewhere")(s)
	}
	if rarely.Draw(t, "triggered") {
		annotation(lastChange, "2026-08-01T11:59:59Z")(s)
	}
	return s
}

func someCluster(t *rapid.T, name clusterName) discovery.Cluster {
	c := discovery.Cluster{
		Name:          name,
		Labels:        map[string]string{"region": rapid.SampledFrom([]string{"eu", "us"}).Draw(t, "region")},
		Leaving:       rarely.Draw(t, "leaving"),
		LacksSlices:   rarely.Draw(t, "lacksSlices"),
		Authoritative: mostly.Draw(t, "authoritative"),
	}
	if age := someAge.Draw(t, "silent"); age > 0 {
		c.UnreachableSince = now.Add(-age)
	}
	for _, local := range rapid.SliceOfNDistinct(localNames, 0, 4, rapid.ID[string]).Draw(t, "slices") {
		c.Slices = append(c.Slices, someSlice(t, local))
	}
	return c
}

func someSelectors(t *rapid.T, clusters []clusterName) (out []clusterSelector) {
	switch rapid.IntRange(0, 3).Draw(t, "selectors") {
	case 2:
		return []clusterSelector{inRegion("eu")}
	case 3:
		for _, c := range rapid.SliceOfN(rapid.SampledFrom(append(clusters, "zz")), 1, 3).Draw(t, "names") {
			out = append(out, clusterSelector{Name: networkingv1alpha1.ClusterName(c)})
		}
	}
	return out
}

func someWish(t *rapid.T, clusters []clusterName) *wish {
	if rarely.Draw(t, "noWish") {
		return nil
	}
	m := crossCluster()
	m.Spec.ProviderClusters = someSelectors(t, clusters)
	m.Spec.ConsumerClusters = someSelectors(t, clusters)
	m.Spec.Ports = rapid.SampledFrom([][]exposurePort{nil, nil, nil, {{Name: "http", Port: 80}}, {{Port: 80}}, {{Name: "gone", Port: 7}}}).Draw(t, "exposed")
	if policy := rapid.SampledFrom([]networkingv1alpha1.UnreachablePolicy{"none", "", "Retain", "MarkNotReady", "Withdraw"}).Draw(t, "policy"); policy != "none" {
		whenUnreachable(policy, time.Minute)(m)
	}
	m.Spec.DiscoveryStrategy = rapid.SampledFrom([]networkingv1alpha1.DiscoveryStrategy{
		"", networkingv1alpha1.DiscoveryRemoteAndLocal, networkingv1alpha1.DiscoveryLocalFirst,
	}).Draw(t, "strategy")
	switch rapid.IntRange(0, 9).Draw(t, "wish") {
	case 7:
		m.DeletionTimestamp = &metav1.Time{Time: now}
	case 8:
		m.Spec.Types = []networkingv1alpha1.ExposureType{networkingv1alpha1.ExposureTypeLoadBalancer}
	case 9:
		m.Spec.ConsumerClusters = []clusterSelector{inRegion("not valid!")}
	}
	return m
}

func someTemplate(t *rapid.T) *corev1.Service {
	switch rapid.IntRange(0, 6).Draw(t, "template") {
	case 3:
		return nil
	case 4:
		return template(headless)
	case 5:
		return template(func(s *corev1.Service) {
			s.Spec.TrafficDistribution = ptr(corev1.ServiceTrafficDistributionPreferSameNode)
		})
	case 6:
		return template(func(s *corev1.Service) { s.Spec.Type = corev1.ServiceTypeExternalName })
	default:
		return template()
	}
}

func someSnapshot(t *rapid.T) discovery.Snapshot {
	return someSnapshotOf(t, clusterNames.Draw(t, "clusters"))
}

// someLater is another state of the same fleet, some members of which left.
func someLater(t *rapid.T, before discovery.Snapshot) discovery.Snapshot {
	var names []clusterName
	for i := range before.Clusters {
		names = append(names, before.Clusters[i].Name)
	}
	return someSnapshotOf(t, rapid.Permutation(names).Draw(t, "clusters")[:rapid.IntRange(1, len(names)).Draw(t, "stay")])
}

func someSnapshotOf(t *rapid.T, names []clusterName) discovery.Snapshot {
	s := snapshot(someWish(t, slices.Clone(names)))
	s.Template = someTemplate(t)
	for _, name := range names {
		s.Clusters = append(s.Clusters, someCluster(t, name))
	}
	return s
}

// clone copies a snapshot so that nothing is shared.
func clone(s discovery.Snapshot) discovery.Snapshot {
	s.MCS, s.Template = s.MCS.DeepCopy(), s.Template.DeepCopy()
	s.Clusters = slices.Clone(s.Clusters)
	for i := range s.Clusters {
		s.Clusters[i].Slices = cloneAll(s.Clusters[i].Slices)
	}
	return s
}

func cloneAll(list []*discoveryv1.EndpointSlice) []*discoveryv1.EndpointSlice {
	list = slices.Clone(list)
	for i := range list {
		list[i] = list[i].DeepCopy()
	}
	return list
}

// shuffle is the snapshot with its lists in another order.
func shuffle(t *rapid.T, s discovery.Snapshot) discovery.Snapshot {
	s = clone(s)
	s.Clusters = rapid.Permutation(s.Clusters).Draw(t, "order")
	for i := range s.Clusters {
		s.Clusters[i].Slices = rapid.Permutation(s.Clusters[i].Slices).Draw(t, "order of slices")
	}
	return s
}

// tamper is somebody who edits what stands in a consumer.
func tamper(t *rapid.T, c *consumer) {
	for _, name := range c.names() {
		s := c.slices[name]
		switch rapid.IntRange(0, 9).Draw(t, "edit") {
		case 1:
			delete(c.slices, name)
		case 2:
			s.Labels = nil
		case 3:
			s.Annotations = nil
		case 4:
			s.Labels, s.Annotations = nil, nil
		case 5:
			s.Endpoints = nil
		case 6:
			s.Labels[discoveryv1.LabelServiceName] = "bar"
		case 7:
			s.Annotations[networkingv1alpha1.SliceGenerationAnnotation] = fmt.Sprint(rapid.IntRange(0, 9).Draw(t, "number"))
		case 8:
			s.Labels["example.com/note"] = "x"
		}
	}
	if rarely.Draw(t, "native") {
		name := string(clusterNames.Draw(t, "native")[0]) + "-" + localNames.Draw(t, "native")
		c.slices[name] = slice(name, pod("10.9.0.1"))
	}
}
