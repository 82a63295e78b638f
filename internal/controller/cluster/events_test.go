package cluster

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"

	clusterv1alpha1 "github.com/namesake-io/namesake/api/cluster/v1alpha1"
)

// An event marks that a member became ready or stopped being so, and nothing else.
func TestTell(t *testing.T) {
	for title, tc := range map[string]struct {
		was, is *metav1.Condition
		want    []string
	}{
		"became ready":                     {was: &wasSilent, is: &wasReady, want: []string{"Normal ClusterReady the API server answers and is ready"}},
		"was ready from the start":         {is: &wasReady, want: []string{"Normal ClusterReady the API server answers and is ready"}},
		"stopped answering":                {was: &wasReady, is: &wasSilent, want: []string{"Warning ClusterNotReachable no answer, first words"}},
		"is ready still":                   {was: &wasReady, is: &wasReady},
		"does not work, for another cause": {was: &wasNotReady, is: &wasSilent},
		"nothing is known yet":             {is: &wasConnecting},
		"nothing was told":                 {was: &wasReady},
		"its watch works from the start":   {is: &wasWatched},
		"its watch is dead":                {was: &wasWatched, is: &wasUnwatched, want: []string{"Warning WatchSilent nothing for minutes"}},
		"its watch works again":            {was: &wasUnwatched, is: &wasWatched, want: []string{"Normal WatchEstablished all is told"}},
	} {
		t.Run(title, func(t *testing.T) {
			recorder := events.NewFakeRecorder(10)
			cluster, now := &clusterv1alpha1.Cluster{}, []metav1.Condition{}
			if tc.was != nil {
				cluster.Status.Conditions = []metav1.Condition{*tc.was}
			}
			if tc.is != nil {
				now = append(now, *tc.is)
			}
			tell(recorder, cluster, now)
			close(recorder.Events)
			var got []string
			for e := range recorder.Events {
				got = append(got, e)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
		})
	}
}
