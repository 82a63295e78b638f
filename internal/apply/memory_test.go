package apply

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

var key = types.NamespacedName{Namespace: "shop", Name: "foo"}

// at is the object at a version.
func at(version string, edits ...func(*corev1.ConfigMap)) *corev1.ConfigMap {
	o := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name, UID: "1", ResourceVersion: version}}
	for _, edit := range edits {
		edit(o)
	}
	return o
}

func anew(o *corev1.ConfigMap) { o.UID = "2" }

func going(o *corev1.ConfigMap) { o.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)} }

func TestMemory(t *testing.T) {
	wrote := func(version string) func(*Memory) { return func(m *Memory) { m.Wrote(at(version)) } }
	deleted := func(m *Memory) { m.Deleted(at("5")) }
	for title, tc := range map[string]struct {
		did    func(*Memory)
		cached client.Object
		after  time.Duration
		want   time.Duration
	}{
		"nothing was written":                    {did: func(*Memory) {}},
		"written, the cache has nothing":         {did: wrote("5"), want: lookAgain},
		"written, the cache has what was":        {did: wrote("5"), cached: at("4"), want: lookAgain},
		"written a while ago":                    {did: wrote("5"), cached: at("4"), after: 2 * time.Second, want: lookAgain},
		"written, nearly given up":               {did: wrote("5"), cached: at("4"), after: memorySpan - time.Millisecond, want: time.Millisecond},
		"written, and never shown":               {did: wrote("5"), cached: at("4"), after: memorySpan},
		"written, the cache has it":              {did: wrote("5"), cached: at("5")},
		"written, the cache has something newer": {did: wrote("9"), cached: at("10")},
		"a version that is none":                 {did: wrote("x"), cached: at("4")},
		"deleted, the cache has it":              {did: deleted, cached: at("5"), want: lookAgain},
		"deleted, the cache has nothing":         {did: deleted},
		"deleted, the cache has another":         {did: deleted, cached: at("7", anew)},
		"deleted, the cache shows it going":      {did: deleted, cached: at("6", going)},
		"written, then deleted":                  {did: func(m *Memory) { wrote("5")(m); deleted(m) }},
	} {
		t.Run(title, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := NewMemory()
				tc.did(m)
				time.Sleep(tc.after)
				if got := m.Behind(key, tc.cached); got != tc.want {
					t.Errorf("behind by %s, want %s", got, tc.want)
				}
				if again := m.Behind(key, tc.cached); again != tc.want {
					t.Errorf("asked again: behind by %s, want %s", again, tc.want)
				}
				other := types.NamespacedName{Name: "other"}
				if got := m.BehindAny(map[types.NamespacedName]client.Object{key: tc.cached, other: nil}); got != tc.want {
					t.Errorf("of two: behind by %s, want %s", got, tc.want)
				}
			})
		})
	}
}

// What nobody asks for again is not remembered for ever.
func TestMemoryIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := NewMemory()
		for i := range 10000 {
			m.Deleted(at("5", func(o *corev1.ConfigMap) { o.Name = fmt.Sprint(i) }))
			time.Sleep(memorySpan / 10)
		}
		if n := len(m.writes); n > firstSweep {
			t.Errorf("%d writes are remembered, want at most %d", n, firstSweep)
		}
	})
}
