package member

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"
)

// slow makes a member answer after a while: an error, then what it has.
func (r *recorded) slow(t *testing.T, errs ...error) {
	t.Helper()
	r.listPatiently = func(ctx context.Context, _ types.NamespacedName, _ string) ([]discoveryv1.EndpointSlice, error) {
		timer := time.NewTimer(time.Second)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		if len(errs) > 0 {
			err := errs[0]
			errs = errs[1:]
			return nil, err
		}
		return r.listed, nil
	}
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	for range readers {
		go r.readMissing(ctx)
	}
}

// soon are foo's own slices, as far as they are known within moments, and how long
// it took to say so.
func (r *recorded) soon(t *testing.T) (_ []string, whole bool, took time.Duration) {
	t.Helper()
	start := time.Now()
	found, whole := r.NativeSoon(t.Context(), foo)
	return versions(found), whole, time.Since(start)
}

// A member that does not answer keeps nobody: what is not known within moments is
// told as a change when it comes.
func TestNativeSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRecorded()
		r.replace(t, "5", slice("s1", "1"), slice("s2", "2"))
		r.told = nil
		r.listed = []discoveryv1.EndpointSlice{*slice("s1", "1"), *slice("s2", "2")}
		r.slow(t, ErrUnreachable)

		_, whole, took := r.soon(t)
		expect(t, "known at once", false, whole)
		expect(t, "waited", readWait, took)
		_, whole, took = r.soon(t)
		expect(t, "known at the second look", false, whole)
		expect(t, "waited at the second look", 0, took)

		time.Sleep(3 * time.Second)
		synctest.Wait()
		expect(t, "told", 2, len(r.told))
		found, whole, took := r.soon(t)
		expect(t, "own slices", []string{"s1@1", "s2@2"}, found)
		expect(t, "known in the end", true, whole)
		expect(t, "waited in the end", 0, took)
		expect(t, "reads that are under way", 0, len(r.readings)+len(r.missing))
	})
}

// Of what comes in time nothing is told: whoever asked has it.
func TestNativeSoon_in_time(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRecorded()
		r.replace(t, "5", slice("s1", "1"))
		r.told = nil
		r.listed = []discoveryv1.EndpointSlice{*slice("s1", "1")}
		r.slow(t)
		r.mu.Lock()
		r.wanted[foo] = true
		r.ask(foo)
		r.mu.Unlock()
		time.Sleep(950 * time.Millisecond)
		r.readings[foo].began = time.Now()
		found, whole, _ := r.soon(t)
		expect(t, "own slices", []string{"s1@1"}, found)
		expect(t, "known", true, whole)
		expect(t, "told", 0, len(r.told))
	})
}

// Nobody reads on for a service that nobody wants any more, and those who wait for
// it are not kept.
func TestNativeSoon_forgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRecorded()
		r.replace(t, "5", slice("s1", "1"))
		r.told = nil
		r.listed = []discoveryv1.EndpointSlice{*slice("s1", "1")}
		r.slow(t)
		r.soon(t)
		r.Forget(foo)
		time.Sleep(2 * time.Second)
		synctest.Wait()
		expect(t, "reads that are under way", 0, len(r.readings)+len(r.missing))
		expect(t, "endpoints", 0, len(r.entries[types.NamespacedName{Namespace: "shop", Name: "s1"}].slice.Endpoints))
	})
}

// Those who wait and those who cannot get one answer: the member is asked once.
func TestNative_shares_a_read(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRecorded()
		r.replace(t, "5", slice("s1", "1"))
		r.listed = []discoveryv1.EndpointSlice{*slice("s1", "1")}
		r.slow(t)
		go r.soon(t)
		synctest.Wait()
		start := time.Now()
		expect(t, "own slices", []string{"s1@1"}, r.nativeOf(t, foo))
		expect(t, "waited for the read that was under way", time.Second, time.Since(start))
		expect(t, "lists beside it", 0, r.asked)
	})
}

// Who ends waits for no answer.
func TestNative_ends(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRecorded()
		r.replace(t, "5", slice("s1", "1"))
		r.slow(t)
		go r.soon(t)
		synctest.Wait()
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := r.Native(ctx, foo); !errors.Is(err, context.Canceled) {
			t.Errorf("error %v, want that the context has ended", err)
		}
	})
}

// What another way brought meanwhile is told to those who did not wait.
func TestNativeSoon_read_by_another(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRecorded()
		r.replace(t, "5", slice("s1", "1"))
		r.told = nil
		r.listed = []discoveryv1.EndpointSlice{*slice("s1", "1")}
		r.slow(t)
		if _, whole, _ := r.soon(t); whole {
			t.Fatal("known before it was read")
		}
		expect(t, "own slices", []string{"s1@1"}, r.nativeOf(t, foo))
		expect(t, "told", []string{"s1@1 → s1@1"}, r.told)
		time.Sleep(2 * time.Second)
		synctest.Wait()
		expect(t, "told in the end", 1, len(r.told))
	})
}
