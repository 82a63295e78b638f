package discovery_test

import (
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	networkingv1alpha1 "github.com/namesake-io/namesake/api/networking/v1alpha1"
	"github.com/namesake-io/namesake/internal/discovery"
)

// held is what consumer c holds of a wish of all for all over clusters.
func held(t *testing.T, clusters ...discovery.Cluster) *consumer {
	t.Helper()
	return newConsumer("c").dispatch(t, discovery.NewPlan(snapshot(crossCluster(), append(clusters, member("c"))...)))
}

// What is changed in consumer c when the world goes from one state to another.
func TestChanges(t *testing.T) {
	a := member("a", slice("s", pod("10.0.0.1")), slice("t", pod("10.0.0.2")))
	b := member("b", slice("s", pod("10.1.0.1")))
	c := member("c")
	hashed := "a-b-c--xchyhscavpsydpog"

	tests := map[string]struct {
		before   []discovery.Cluster // with c, all for all
		wish     *wish               // after; nil: as before
		template *corev1.Service     // after; nil: as before
		after    []discovery.Cluster
		want     []string
	}{
		"D3_nothing": {before: []discovery.Cluster{a, b}, after: []discovery.Cluster{b, a}},
		"C27_a_member_joins": {
			before: []discovery.Cluster{a}, after: []discovery.Cluster{a, b},
			want: []string{"create b-s"},
		},
		"C4_a_pod_turns_not_ready": {
			before: []discovery.Cluster{a, b},
			after:  []discovery.Cluster{member("a", slice("s", generation(2), pod("10.0.0.1", notReady)), a.Slices[1]), b},
			want:   []string{"update a-s"},
		},
		"C6_a_slice_vanishes": {
			before: []discovery.Cluster{member("a", slice("s"), slice("t"), slice("u")), b},
			after:  []discovery.Cluster{member("a", slice("s"), slice("u")), b},
			want:   []string{"delete a-t"},
		},
		"C15_a_slice_changes_its_service": {
			before: []discovery.Cluster{a},
			after:  []discovery.Cluster{member("a", slice("s", label(discoveryv1.LabelServiceName, "bar"), pod("10.0.0.1")), a.Slices[1])},
			want:   []string{"delete a-s"},
		},
		"C33_off_the_provider_list": {
			before: []discovery.Cluster{a, b}, wish: crossCluster(providers("b")), after: []discovery.Cluster{a, b},
			want: []string{"delete a-s", "delete a-t"},
		},
		"C33_off_the_provider_list_while_it_is_silent": {
			before: []discovery.Cluster{a, b}, wish: crossCluster(providers("b")), after: []discovery.Cluster{rememberedMember("a"), b},
			want: []string{"delete a-s", "delete a-t"},
		},
		"C33_off_the_consumer_list": {
			before: []discovery.Cluster{a, b}, wish: crossCluster(consumers("a", "b")), after: []discovery.Cluster{rememberedMember("a"), b},
			want: []string{"delete a-s", "delete a-t", "delete b-s"},
		},
		"C29_a_provider_leaves": {
			before: []discovery.Cluster{a, b}, after: []discovery.Cluster{b},
			want: []string{"delete a-s", "delete a-t"},
		},
		"C11_the_ports_are_narrowed": {
			before: []discovery.Cluster{member("a", slice("s", ports(port("http", 8080), port("admin", 8081))), slice("t", ports(port("admin", 8081))))},
			wish:   crossCluster(exposing(exposurePort{Name: "http", Port: 80})),
			after:  []discovery.Cluster{member("a", slice("s", ports(port("http", 8080), port("admin", 8081))), slice("t", ports(port("admin", 8081))))},
			want:   []string{"update a-s", "delete a-t"},
		},
		"C11_also_for_a_provider_that_cannot_be_asked": {
			before: []discovery.Cluster{member("a", slice("s", ports(port("http", 8080), port("admin", 8081))), slice("t", ports(port("admin", 8081))))},
			wish:   crossCluster(exposing(exposurePort{Name: "http", Port: 80})),
			after:  []discovery.Cluster{rememberedMember("a")},
			want:   []string{"update a-s", "delete a-t"},
		},
		"the_address_type_changes": {
			before: []discovery.Cluster{a},
			after:  []discovery.Cluster{member("a", slice("s", addressType(discoveryv1.AddressTypeIPv6), pod("fd00::1")), a.Slices[1])},
			want:   []string{"delete a-s"}, // and then it is created
		},
		"D8_a_member_joins_that_takes_a_name": {
			before: []discovery.Cluster{member("a", slice("b-c", pod("10.0.0.1")))},
			after:  []discovery.Cluster{member("a", slice("b-c", pod("10.0.0.1"))), member("a-b")},
			want:   []string{"create " + hashed, "delete a-b-c after " + hashed},
		},
		"D8_and_uses_it": {
			before: []discovery.Cluster{member("a", slice("b-c", pod("10.0.0.1")))},
			after:  []discovery.Cluster{member("a", slice("b-c", pod("10.0.0.1"))), member("a-b", slice("c", pod("10.1.0.1")))},
			want:   []string{"create " + hashed, "update a-b-c"},
		},
		"D8_it_leaves_again": {
			before: []discovery.Cluster{member("a", slice("b-c", pod("10.0.0.1"))), member("a-b")},
			after:  []discovery.Cluster{member("a", slice("b-c", pod("10.0.0.1")))},
			want:   []string{"create a-b-c", "delete " + hashed + " after a-b-c"},
		},
		"D8_also_for_a_provider_that_cannot_be_asked": {
			before: []discovery.Cluster{member("a", slice("b-c", pod("10.0.0.1")))},
			after:  []discovery.Cluster{rememberedMember("a", slice("b-c", pod("10.0.0.1"))), member("a-b")},
			want:   []string{"create " + hashed, "delete a-b-c after " + hashed},
		},
		"D8_the_name_is_another_slices_and_that_may_still_exist": {
			before: []discovery.Cluster{member("a", slice("b-c", pod("10.0.0.1"))), member("a-b", slice("c", pod("10.1.0.1")))},
			after:  []discovery.Cluster{member("a", slice("b-c", pod("10.0.0.1"))), rememberedMember("a-b")},
		},
		"C24_gone_while_the_hub_was_down_but_not_yet_known": {
			before: []discovery.Cluster{a, b}, after: []discovery.Cluster{rememberedMember("a", a.Slices...), rememberedMember("b", b.Slices...)},
		},
		"C24_gone_and_known": {
			before: []discovery.Cluster{a, b}, after: []discovery.Cluster{member("a", a.Slices[1]), rememberedMember("b", b.Slices...)},
			want: []string{"delete a-s"},
		},
		"C25_a_silent_member_of_which_nothing_is_remembered": {
			before: []discovery.Cluster{a, b}, after: []discovery.Cluster{rememberedMember("a"), member("b")},
			want: []string{"delete b-s"},
		},
		"C25_a_silent_member_and_a_new_slice_of_another": {
			before: []discovery.Cluster{a, b}, after: []discovery.Cluster{rememberedMember("a", a.Slices...), member("b", b.Slices[0], slice("t"))},
			want: []string{"create b-t"},
		},
		"C26_remembered_slices_are_given_to_new_consumers": {
			after: []discovery.Cluster{rememberedMember("a", a.Slices...)},
			want:  []string{"create a-s", "create a-t"},
		},
		"C26_memory_is_older_than_what_stands": {
			before: []discovery.Cluster{member("a", slice("s", generation(3), pod("10.0.0.1"), pod("10.0.0.2")))},
			after:  []discovery.Cluster{rememberedMember("a", slice("s", generation(2), pod("10.0.0.1")))},
		},
		"C26_memory_is_newer": {
			before: []discovery.Cluster{member("a", slice("s", generation(3), pod("10.0.0.1")))},
			after:  []discovery.Cluster{rememberedMember("a", slice("s", generation(4), pod("10.0.0.1"), pod("10.0.0.2")))},
			want:   []string{"update a-s"},
		},
		"C26_the_provider_itself_is_always_right": {
			before: []discovery.Cluster{member("a", slice("s", generation(3), pod("10.0.0.1"), pod("10.0.0.2")))},
			after:  []discovery.Cluster{member("a", slice("s", generation(1), pod("10.0.0.1")))},
			want:   []string{"update a-s"},
		},
		"C26_memory_is_of_another_address_type": {
			before: []discovery.Cluster{member("a", slice("s", generation(1), addressType(discoveryv1.AddressTypeIPv6), pod("fd00::1")))},
			after:  []discovery.Cluster{rememberedMember("a", slice("s", generation(9), pod("10.0.0.1")))},
		},
		"C21_it_becomes_an_alias": {
			before: []discovery.Cluster{a}, after: []discovery.Cluster{rememberedMember("a", a.Slices...)},
			template: template(func(s *corev1.Service) { s.Spec.Type = corev1.ServiceTypeExternalName }),
			want:     []string{"delete a-s", "delete a-t"},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			consumer := held(t, tt.before...)
			m := tt.wish
			if m == nil {
				m = crossCluster()
			}
			s := snapshot(m, append(tt.after, c)...)
			if tt.template != nil {
				s.Template = tt.template
			}
			p := discovery.NewPlan(s)
			if diff := cmp.Diff(tt.want, tell(consumer.changes(p))); diff != "" {
				t.Errorf("changes (-want +got):\n%s", diff)
			}
			consumer.dispatch(t, p)
		})
	}
}

// C32: whatever is edited or deleted in the consumer is set right, and what is
// not ours is left alone.
func TestChanges_C32(t *testing.T) {
	strip := func(s *discoveryv1.EndpointSlice) { s.Labels, s.Annotations = nil, nil }
	tests := map[string]struct {
		edit func(c *consumer)
		want []string
	}{
		"nothing": {edit: func(*consumer) {}},
		"deleted": {
			edit: func(c *consumer) { delete(c.slices, "a-s") },
			want: []string{"create a-s"},
		},
		"endpoints": {
			edit: func(c *consumer) { c.slices["a-s"].Endpoints = nil },
			want: []string{"update a-s"},
		},
		"managed-by": {
			edit: func(c *consumer) { delete(c.slices["a-s"].Labels, discoveryv1.LabelManagedBy) },
			want: []string{"update a-s"},
		},
		"service-name": {
			edit: func(c *consumer) { delete(c.slices["a-s"].Labels, discoveryv1.LabelServiceName) },
			want: []string{"update a-s"},
		},
		"another_service-name": {
			edit: func(c *consumer) { c.slices["a-s"].Labels[discoveryv1.LabelServiceName] = "bar" },
			want: []string{"update a-s"},
		},
		"provision-cluster": {
			edit: func(c *consumer) { delete(c.slices["a-s"].Annotations, networkingv1alpha1.ProvisionClusterAnnotation) },
			want: []string{"update a-s"},
		},
		"all_labels_and_annotations": {
			edit: func(c *consumer) { strip(c.slices["a-s"]) },
			want: []string{"update a-s"},
		},
		"a_copy_under_another_name": {
			edit: func(c *consumer) {
				again := c.slices["a-s"].DeepCopy()
				again.Name = "mine"
				c.slices["mine"] = again
			},
			want: []string{"delete mine"},
		},
		"the_consumers_own_slice_comes_back_to_it": {
			edit: func(c *consumer) {
				c.slices["c-s"] = slice("c-s", annotation(networkingv1alpha1.ProvisionClusterAnnotation, "c"))
			},
			want: []string{"delete c-s"},
		},
		"what_others_annotated_stays": {
			edit: func(c *consumer) {
				c.slices["a-s"].Annotations["example.com/note"] = "x"
			},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			a := member("a", slice("s", pod("10.0.0.1")))
			consumer := held(t, a)
			before := consumer.slices["a-s"].DeepCopy()
			native := slice("foo-own", pod("10.2.0.1"))
			consumer.slices[native.Name] = native.DeepCopy()
			tt.edit(consumer)

			p := discovery.NewPlan(snapshot(crossCluster(), a, member("c", native)))
			if diff := cmp.Diff(tt.want, tell(consumer.changes(p))); diff != "" {
				t.Errorf("changes (-want +got):\n%s", diff)
			}
			consumer.dispatch(t, p)
			delete(consumer.slices["a-s"].Annotations, "example.com/note")
			want := map[string]*discoveryv1.EndpointSlice{"a-s": before, native.Name: native}
			if diff := cmp.Diff(want, consumer.slices); diff != "" {
				t.Errorf("c holds (-want +got):\n%s", diff)
			}
		})
	}
}

// C32 while memory is older than what stands: the marks come back, the
// endpoints stay.
func TestChanges_C32_C26_marks_of_a_newer_slice(t *testing.T) {
	consumer := held(t, member("a", slice("s", generation(3), pod("10.0.0.1"), pod("10.0.0.2"))))
	want := consumer.slices["a-s"].DeepCopy()
	delete(consumer.slices["a-s"].Labels, discoveryv1.LabelServiceName)
	consumer.slices["a-s"].Endpoints[0].NodeName = ptr("node-1")

	consumer.dispatch(t, discovery.NewPlan(snapshot(crossCluster(),
		rememberedMember("a", slice("s", generation(2), pod("10.0.0.1"))), member("c"))))
	if diff := cmp.Diff(want, consumer.slices["a-s"]); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// C32 while a silent provider's slices are only remembered, or not even that.
func TestChanges_C32_C25_of_a_silent_provider(t *testing.T) {
	a := member("a", slice("s", generation(3), pod("10.0.0.1")))
	loses := func(c *consumer) { delete(c.slices["a-s"].Annotations, networkingv1alpha1.ProvisionClusterAnnotation) }
	tests := map[string]struct {
		edit  func(c *consumer)
		after discovery.Cluster
		want  []string
	}{
		"endpoints_as_remembered": {
			edit:  func(c *consumer) { c.slices["a-s"].Endpoints = nil },
			after: rememberedMember("a", a.Slices...), want: []string{"update a-s"},
		},
		"the_provider_as_remembered":             {edit: loses, after: rememberedMember("a", a.Slices...), want: []string{"update a-s"}},
		"the_provider_and_nothing_is_remembered": {edit: loses, after: rememberedMember("a")},
		"marks_and_nothing_is_remembered": {
			edit:  func(c *consumer) { delete(c.slices["a-s"].Labels, discoveryv1.LabelManagedBy) },
			after: rememberedMember("a"), want: []string{"update a-s"},
		},
		"a_slice_that_claims_to_be_the_consumers_own": {
			edit: func(c *consumer) {
				c.slices["c-s"] = slice("c-s", annotation(networkingv1alpha1.ProvisionClusterAnnotation, "c"))
			},
			after: rememberedMember("a"), want: []string{"delete c-s"},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			consumer := held(t, a)
			tt.edit(consumer)
			p := discovery.NewPlan(snapshot(crossCluster(), tt.after, rememberedMember("c")))
			if diff := cmp.Diff(tt.want, tell(consumer.changes(p))); diff != "" {
				t.Errorf("changes (-want +got):\n%s", diff)
			}
			consumer.dispatch(t, p)
		})
	}
}

// C26: a slice that takes over the name of another one has its own endpoints,
// whatever the other one's generation was.
func TestChanges_C26_generations_of_two_slices_are_not_compared(t *testing.T) {
	a := member("a", slice("b-c", generation(9), pod("10.0.0.1")))
	consumer := held(t, a)
	consumer.dispatch(t, discovery.NewPlan(snapshot(crossCluster(),
		a, rememberedMember("a-b", slice("c", generation(2), pod("10.1.0.1"))), member("c"))))
	if diff := cmp.Diff([]string{"10.1.0.1"}, endpoints(consumer.slices["a-b-c"])); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A slice of the consumer's own has the name: it stays, ours gets another.
func TestChanges_a_native_slice_has_the_name(t *testing.T) {
	const hashed = "a-s--vkdfajsvooa7dtjl"
	native := slice("a-s", pod("10.2.0.1"))
	p := discovery.NewPlan(snapshot(crossCluster(), member("a", slice("s", pod("10.0.0.1"))), member("c")))
	consumer := newConsumer("c", native.DeepCopy())

	if diff := cmp.Diff([]string{"create " + hashed}, tell(consumer.changes(p))); diff != "" {
		t.Fatalf("changes (-want +got):\n%s", diff)
	}
	consumer.dispatch(t, p)
	if diff := cmp.Diff(native, consumer.slices["a-s"]); diff != "" {
		t.Errorf("the native slice is changed (-want +got):\n%s", diff)
	}

	taken := slice(hashed, pod("10.2.0.2"))
	other := newConsumer("c", native.DeepCopy(), taken).dispatch(t, p)
	if len(other.slices) != 3 {
		t.Errorf("with two names taken c holds %q, want a third", other.names())
	}

	delete(consumer.slices, "a-s")
	if diff := cmp.Diff([]string{"create a-s", "delete " + hashed + " after a-s"}, tell(consumer.changes(p))); diff != "" {
		t.Errorf("changes once the name is free (-want +got):\n%s", diff)
	}
}

// C15, C33: another service's slices are not touched, neither by deletion nor by
// an old memory, even where they bear a name of this plan.
func TestChanges_C33_nothing_of_others(t *testing.T) {
	a := member("a", slice("s", generation(2), pod("10.0.0.1")), slice("t", pod("10.0.0.2")))
	tests := map[string]discovery.Snapshot{
		"no_wish":                  snapshot(nil, a, member("c")),
		"no_consumer":              snapshot(crossCluster(consumers("b")), a, member("c")),
		"an_old_memory_of_a_slice": snapshot(crossCluster(), rememberedMember("a", slice("s", generation(1), pod("10.0.0.1"))), member("c")),
		"no_such_slice_any_more":   snapshot(crossCluster(), member("a"), member("c")),
	}
	for name, after := range tests {
		t.Run(name, func(t *testing.T) {
			consumer := held(t, a)
			// The slice has gone over to another service since.
			consumer.slices["a-s"].Labels[discoveryv1.LabelServiceName] = "bar"
			want := consumer.slices["a-s"].DeepCopy()
			ours := maps.Clone(consumer.slices)
			delete(ours, "a-s")

			p := discovery.NewPlan(after)
			standing := consumer.standing(p)
			standing.Dispatched = nil
			for _, s := range consumer.slices {
				standing.Dispatched = append(standing.Dispatched, s)
			}
			if err := consumer.apply(p.For("c", standing)); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, consumer.slices["a-s"]); diff != "" {
				t.Errorf("the other service's slice is changed (-want +got):\n%s", diff)
			}
			kept := name == "an_old_memory_of_a_slice"
			for n := range ours {
				if _, stands := consumer.slices[n]; stands != kept {
					t.Errorf("%s stands: %t, want %t", n, stands, kept)
				}
			}
		})
	}
}

// kube-proxy counts from the trigger time how long a change took; an old one
// must not be taken for that of the next change.
func TestChanges_the_trigger_time_goes_with_the_change(t *testing.T) {
	consumer := held(t, member("a", slice("s", annotation(lastChange, "2026-08-01T11:59:59Z"), pod("10.0.0.1"))))
	consumer.slices["a-s"].Annotations["example.com/note"] = "x"
	consumer.dispatch(t, discovery.NewPlan(snapshot(crossCluster(), member("a", slice("s", pod("10.0.0.2"))), member("c"))))

	got := consumer.slices["a-s"].Annotations
	if value, found := got[lastChange]; found {
		t.Errorf("trigger time %s is left", value)
	}
	if got["example.com/note"] != "x" {
		t.Error("the annotation of another is gone")
	}
}

// An update leaves alone what the server keeps.
func TestChanges_an_update_is_of_the_standing_object(t *testing.T) {
	consumer := held(t, member("a", slice("s", pod("10.0.0.1"))))
	have := consumer.slices["a-s"]
	have.UID, have.ResourceVersion, have.Generation = "uid", "42", 7
	p := discovery.NewPlan(snapshot(crossCluster(), member("a", slice("s", pod("10.0.0.2"))), member("c")))
	update := consumer.changes(p).Update[0]
	if update.UID != "uid" || update.ResourceVersion != "42" || len(update.ManagedFields) != 0 {
		t.Errorf("uid %q, resourceVersion %q, managedFields %v", update.UID, update.ResourceVersion, update.ManagedFields)
	}

	update.Endpoints[0].Addresses[0] = "changed"
	update.Labels["changed"] = "yes"
	if diff := cmp.Diff([]string{"10.0.0.2"}, endpoints(p.Slices[0].Slice)); diff != "" || p.Slices[0].Slice.Labels["changed"] != "" {
		t.Error("a change to the update changes the plan")
	}
	if have.Labels["changed"] != "" {
		t.Error("a change to the update changes the standing object")
	}
}
