package discovery_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/validation"
	"pgregory.net/rapid"

	"github.com/namesake-io/namesake/internal/discovery"
)

type (
	clusterName = discovery.ClusterName
	sliceName   = discovery.SliceName
)

func TestDispatchedName(t *testing.T) {
	long := strings.Repeat("s", 245)
	tests := map[string]struct {
		provider clusterName
		slice    sliceName
		clusters []clusterName
		want     sliceName
	}{
		"plain": {
			provider: "member1", slice: "foo-x7k2p", clusters: []clusterName{"member1", "member2"},
			want: "member1-foo-x7k2p",
		},
		"C9_the_longer_cluster_keeps_the_spelling": {
			provider: "a-b", slice: "c", clusters: []clusterName{"a", "a-b"},
			want: "a-b-c",
		},
		"C9_the_shorter_one_is_hashed": {
			provider: "a", slice: "b-c", clusters: []clusterName{"a", "a-b"},
			want: "a-b-c--xchyhscavpsydpog",
		},
		"a_longer_cluster_that_does_not_fit_changes_nothing": {
			provider: "a", slice: "b-c", clusters: []clusterName{"a", "a-bb", "a-b-c", "a-b-c-d"},
			want: "a-b-c",
		},
		"the_whole_name_of_another_cluster_is_not_its_front": {
			provider: "a", slice: "b", clusters: []clusterName{"a", "a-b"},
			want: "a-b",
		},
		"253_characters_fit": {
			provider: "member1", slice: sliceName(long), clusters: []clusterName{"member1"},
			want: sliceName("member1-" + long),
		},
		"C8_254_do_not": {
			provider: "member1", slice: sliceName(long + "t"), clusters: []clusterName{"member1"},
			want: sliceName("member1-" + long[:227] + "--zpwfoemx44vtm3io"),
		},
		"a_cut_before_a_dot_leaves_no_dot_behind": {
			provider: "member1", slice: sliceName(long[:226] + "." + long), clusters: []clusterName{"member1"},
			want: sliceName("member1-" + long[:226] + "--bdc33dofdfzpjtwg"),
		},
		"what_looks_hashed_is_hashed": {
			provider: "a-b", slice: "c--xchyhscavpsydpog", clusters: []clusterName{"a", "a-b"},
			want: "a-b-c--xchyhscavpsydpog--tsmlgsq5syyziqq6",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := discovery.DispatchedName(tt.provider, tt.slice, tt.clusters); got != tt.want {
				t.Errorf("DispatchedName(%q, %q) = %q, want %q", tt.provider, tt.slice, got, tt.want)
			}
		})
	}
}

// C8: 48 characters of provider and 253 of slice, many of each that differ in the
// last character only.
func TestDispatchedName_C8_longest(t *testing.T) {
	var clusters []clusterName
	for _, end := range "abcdefghij" {
		clusters = append(clusters, clusterName(strings.Repeat("m", 47)+string(end)))
	}
	names := map[sliceName]bool{}
	for _, c := range clusters {
		for _, end := range "abcdefghij" {
			name := discovery.DispatchedName(c, sliceName(strings.Repeat("s", 252)+string(end)), clusters)
			if errs := validation.NameIsDNSSubdomain(string(name), false); len(errs) > 0 {
				t.Errorf("%q: %v", name, errs)
			}
			names[name] = true
		}
	}
	if len(names) != 100 {
		t.Errorf("100 slices have %d names", len(names))
	}
}

// clusterNames draws names that are fronts of each other.
var clusterNames = rapid.SliceOfNDistinct(
	rapid.Map(rapid.StringMatching(`[ab]([ab-]{0,4}[ab])?`), func(s string) clusterName { return clusterName(s) }),
	1, 6, rapid.ID[clusterName])

// pair is a slice of a provider.
type pair struct {
	provider clusterName
	slice    sliceName
}

// Names of two pairs never meet, not even when a slice is given the very name
// that another pair has in consumers.
func TestDispatchedName_C9_never_meet(t *testing.T) {
	rapid.Check(t, neverMeet)
}

func neverMeet(t *rapid.T) {
	clusters := clusterNames.Draw(t, "clusters")
	local := rapid.StringMatching(`[ab]([ab.-]{0,5}[ab])?`).Filter(func(s string) bool {
		return len(validation.NameIsDNSSubdomain(s, false)) == 0
	})
	pairs := map[pair]bool{}
	for range rapid.IntRange(1, 12).Draw(t, "slices") {
		pairs[pair{rapid.SampledFrom(clusters).Draw(t, "provider"), sliceName(local.Draw(t, "slice"))}] = true
	}

	names := map[sliceName]pair{}
	meet := func(p pair) sliceName {
		name := discovery.DispatchedName(p.provider, p.slice, clusters)
		if errs := validation.NameIsDNSSubdomain(string(name), false); len(errs) > 0 {
			t.Fatalf("%v is named %q: %v", p, name, errs)
		}
		if other, taken := names[name]; taken && other != p {
			t.Fatalf("%v and %v are both named %q (clusters %q)", other, p, name, clusters)
		}
		names[name] = p
		return name
	}
	for p := range pairs {
		name := meet(p)
		for _, c := range clusters {
			if rest, found := strings.CutPrefix(string(name), string(c)+"-"); found {
				meet(pair{c, sliceName(rest)})
			}
		}
	}
}

func FuzzDispatchedName(f *testing.F) {
	f.Add("a", "b-c", "a-b", "c")
	f.Add("a", "b-c", "a-b", "c--xchyhscavpsydpog")
	f.Add("member1", strings.Repeat("s", 253), "member2", strings.Repeat("s", 253))
	f.Add(strings.Repeat("m", 48), strings.Repeat("s.", 126)+"s", strings.Repeat("m", 47)+"n", "s")
	f.Fuzz(func(t *testing.T, provider1, slice1, provider2, slice2 string) {
		p1, p2 := pair{clusterName(provider1), sliceName(slice1)}, pair{clusterName(provider2), sliceName(slice2)}
		for _, p := range []pair{p1, p2} {
			if len(p.provider) > 48 || len(validation.NameIsDNSLabel(string(p.provider), false)) > 0 ||
				len(validation.NameIsDNSSubdomain(string(p.slice), false)) > 0 {
				return
			}
		}
		clusters := []clusterName{p1.provider, p2.provider}
		name1 := discovery.DispatchedName(p1.provider, p1.slice, clusters)
		name2 := discovery.DispatchedName(p2.provider, p2.slice, clusters)
		for _, name := range []sliceName{name1, name2} {
			if errs := validation.NameIsDNSSubdomain(string(name), false); len(errs) > 0 {
				t.Errorf("%q: %v", name, errs)
			}
		}
		if name1 == name2 && p1 != p2 {
			t.Errorf("%v and %v are both named %q", p1, p2, name1)
		}
		if again := discovery.DispatchedName(p1.provider, p1.slice, []clusterName{p2.provider, p1.provider}); again != name1 {
			t.Errorf("%v is named %q and, with the clusters in another order, %q", p1, name1, again)
		}
	})
}
