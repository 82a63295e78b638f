package unjoin

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/namesake-io/namesake/api/cluster/v1alpha1"
	networkingv1alpha1 "github.com/namesake-io/namesake/api/networking/v1alpha1"
	workv1alpha1 "github.com/namesake-io/namesake/api/work/v1alpha1"
	"github.com/namesake-io/namesake/internal/cli/target"
)

// reportWait is how long an event may take to come after what it tells of.
const reportWait = 3 * time.Second

// leftBehind returns what the hub says that stays in a member that it has given up.
// Empty: it has not given it up, or has not said so in time.
func (u *unjoining) leftBehind(ctx context.Context, uid types.UID) (note string) {
	// Events are for people: without them, the unjoin is no less done.
	_ = target.Await(ctx, reportWait, func(ctx context.Context) (bool, error) {
		list := &corev1.EventList{}
		err := u.hub.Client.List(ctx, list, client.InNamespace(metav1.NamespaceDefault),
			client.MatchingFields{"involvedObject.uid": string(uid)})
		for i := range list.Items {
			switch list.Items[i].Reason {
			case clusterv1alpha1.EventLeftUnclean:
				note = list.Items[i].Message
				return true, nil
			case clusterv1alpha1.EventLeft:
				return true, nil
			}
		}
		return false, err
	})
	return note
}

// commands are what a person runs in the member to remove what was put there.
func commands() []string {
	return []string{
		fmt.Sprintf("kubectl delete endpointslices -A -l %s=%s", discoveryv1.LabelManagedBy, networkingv1alpha1.DispatchedManagedBy),
		fmt.Sprintf("kubectl delete services -A -l %s=%s", workv1alpha1.ManagedLabel, workv1alpha1.ManagedValue),
	}
}
