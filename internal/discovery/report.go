package discovery

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	networkingv1alpha1 "github.com/namesake-io/namesake/api/networking/v1alpha1"
)

// maxNames bounds how many clusters a message names; the rest are counted.
const maxNames = 3

// lacksSlices is what is told of a cluster without EndpointSlices.
const lacksSlices = "its API server does not serve discovery.k8s.io/v1, as Kubernetes 1.21 and later do: upgrade it, or take it off the lists of spec"

// Outcome is how the last attempt to bring one consumer to a plan ended.
type Outcome struct {
	// Plan that was carried out. Another one than the current: not up to date.
	Plan *Plan
	// Reason is empty when the consumer holds what it should; else a reason of
	// the MultiClusterService's conditions, and Message explains it.
	Reason, Message string
}

// ReportInput is what a report is made of, beside the plan.
type ReportInput struct {
	// MCS that is reported on, with its status so far. Not changed.
	MCS *networkingv1alpha1.MultiClusterService
	// Template is the hub's Service, nil when there is none.
	Template *corev1.Service
	// Outcomes of the consumers that were attempted.
	Outcomes map[ClusterName]Outcome
	// Refused are the clusters in which the Service does not stand, and why.
	Refused map[ClusterName]Outcome
	// Now is the time of new transitions.
	Now time.Time
}

// Report returns the status of a MultiClusterService but for the conditions that
// others write: conditions EndpointSliceCollected, EndpointSliceDispatched and
// Ready, the reports per cluster, and the lists for people. settled is false while
// consumers are still being brought up to date, or providers are still to say what
// they have.
func (p *Plan) Report(in ReportInput) (_ networkingv1alpha1.MultiClusterServiceStatus, settled bool) {
	r := reporter{plan: p, in: in, settled: true}
	clusters := r.clusters()
	var status networkingv1alpha1.MultiClusterServiceStatus
	status.Providers = columnOf(p.Selection.Providers)
	status.Consumers = columnOf(p.Selection.Consumers)
	status.Clusters = clusters
	status.Conditions = r.conditions(clusters)
	return status, r.settled
}

// reporter gathers the parts of a report.
type reporter struct {
	plan    *Plan
	in      ReportInput
	settled bool
}

// clusters reports on each selected cluster, sorted by name.
func (r *reporter) clusters() []networkingv1alpha1.ClusterServiceStatus {
	wanted := map[ClusterName]int{}
	for _, name := range r.plan.Selection.Consumers {
		for _, d := range r.plan.Wanted(name) {
			wanted[name] += len(d.Slice.Endpoints)
		}
	}
	var out []networkingv1alpha1.ClusterServiceStatus
	for _, name := range r.plan.Selection.Members() {
		c := networkingv1alpha1.ClusterServiceStatus{Name: string(name), Reason: networkingv1alpha1.ReasonAllReady}
		if r.plan.Selection.Provides(name) {
			c.Roles = append(c.Roles, networkingv1alpha1.RoleProvider)
			state := r.plan.Provider(name)
			c.CollectedEndpoints, c.ReadyEndpoints = int32(state.Endpoints), int32(state.Ready)
			c.Reason, c.Message = r.providerState(name, state)
		}
		if r.plan.Selection.Consumes(name) {
			c.Roles = append(c.Roles, networkingv1alpha1.RoleConsumer)
			reason, message := r.consumerState(name)
			if reason == "" {
				c.DispatchedEndpoints = int32(wanted[name])
			} else if c.Reason == networkingv1alpha1.ReasonAllReady {
				c.Reason, c.Message = reason, message
			}
		}
		if refused, found := r.in.Refused[name]; found && c.Reason == networkingv1alpha1.ReasonAllReady {
			c.Reason, c.Message = refused.Reason, refused.Message
		}
		c.LastTransitionTime = r.since(c.Name, c.Reason)
		out = append(out, c)
	}
	return out
}

// providerState says whether a provider's slices are known as they are now.
func (r *reporter) providerState(name ClusterName, state ProviderState) (reason, message string) {
	switch {
	case state.LacksSlices:
		return networkingv1alpha1.ReasonAPIIncompatible, lacksSlices
	case !state.UnreachableSince.IsZero() && slices.Contains(r.plan.Retained, name):
		return networkingv1alpha1.ReasonClusterUnreachable, state.unreachableWhy() + "; most clusters are silent, so the fault may be the hub's own: its endpoints are kept as last seen"
	case !state.UnreachableSince.IsZero():
		return networkingv1alpha1.ReasonClusterUnreachable, state.unreachableWhy() + "; " + r.unreachablePolicy()
	case !state.Authoritative:
		r.settled = false
		return networkingv1alpha1.ReasonProgressing, "waiting for the cluster's own word on its endpoints; those last seen are kept"
	}
	return networkingv1alpha1.ReasonAllReady, ""
}

// unreachableWhy says what is wrong with an unreachable provider.
func (s ProviderState) unreachableWhy() string {
	return cmp.Or(s.UnreachableWhy, "the API server does not answer")
}

// unreachablePolicy says what is done with endpoints of an unreachable provider.
func (r *reporter) unreachablePolicy() string {
	if wish := r.plan.unreachable; wish.GracePeriod != nil && wish.Policy != networkingv1alpha1.UnreachableRetain {
		return fmt.Sprintf("its endpoints follow the policy %s after %s", wish.Policy, wish.GracePeriod.Duration)
	}
	return "its endpoints are kept as last seen"
}

// consumerState says whether a consumer holds what it should. An empty reason: it
// does.
func (r *reporter) consumerState(name ClusterName) (reason, message string) {
	outcome, attempted := r.in.Outcomes[name]
	switch {
	case !r.plan.dispatches:
		return "", ""
	case slices.Contains(r.plan.lacking, name):
		return networkingv1alpha1.ReasonAPIIncompatible, lacksSlices
	case attempted && outcome.Reason != "":
		return outcome.Reason, outcome.Message
	case !attempted || outcome.Plan != r.plan:
		r.settled = false
		return networkingv1alpha1.ReasonProgressing, "endpoints are on their way"
	}
	return "", ""
}

// since returns when a cluster's reason became what it is.
func (r *reporter) since(name, reason string) *metav1.Time {
	for i := range r.in.MCS.Status.Clusters {
		have := &r.in.MCS.Status.Clusters[i]
		if have.Name == name && have.Reason == reason && have.LastTransitionTime != nil {
			return have.LastTransitionTime
		}
	}
	return &metav1.Time{Time: r.in.Now.Truncate(time.Second)}
}

// conditions returns our three, transitions dated.
func (r *reporter) conditions(clusters []networkingv1alpha1.ClusterServiceStatus) []metav1.Condition {
	collected := r.roleCondition(clusters, networkingv1alpha1.RoleProvider)
	out := []metav1.Condition{collected, r.readyCondition(clusters)}
	if r.crossCluster() {
		out = append(out, r.roleCondition(clusters, networkingv1alpha1.RoleConsumer))
	}
	for i := range out {
		out[i].ObservedGeneration = r.in.MCS.Generation
		out[i].LastTransitionTime = metav1.Time{Time: r.in.Now.Truncate(time.Second)}
		if have := meta.FindStatusCondition(r.in.MCS.Status.Conditions, out[i].Type); have != nil && have.Status == out[i].Status {
			out[i].LastTransitionTime = have.LastTransitionTime
		}
	}
	return out
}

// roleCondition sums up the clusters of one role.
func (r *reporter) roleCondition(clusters []networkingv1alpha1.ClusterServiceStatus, role networkingv1alpha1.ClusterRole) metav1.Condition {
	c := metav1.Condition{
		Type: networkingv1alpha1.ConditionEndpointSliceCollected, Status: metav1.ConditionTrue,
		Reason: networkingv1alpha1.ReasonEndpointSliceCollectedSucceed,
	}
	failed, verb := networkingv1alpha1.ReasonEndpointSliceCollectedFailed, "collected from"
	if role == networkingv1alpha1.RoleConsumer {
		c.Type, c.Reason = networkingv1alpha1.ConditionEndpointSliceDispatched, networkingv1alpha1.ReasonEndpointSliceDispatchedSucceed
		failed, verb = networkingv1alpha1.ReasonEndpointSliceDispatchedFailed, "dispatched to"
	}
	var total int
	var bad []string
	for i := range clusters {
		if !slices.Contains(clusters[i].Roles, role) {
			continue
		}
		total++
		name := ClusterName(clusters[i].Name)
		if role == networkingv1alpha1.RoleProvider {
			if reason, message := r.providerState(name, r.plan.Provider(name)); reason != networkingv1alpha1.ReasonAllReady {
				bad = append(bad, clusters[i].Name+": "+message)
			}
			continue
		}
		if reason, message := r.consumerState(name); reason != "" {
			bad = append(bad, clusters[i].Name+": "+message)
		}
	}
	c.Message = fmt.Sprintf("endpoints are %s %d of %d clusters", verb, total-len(bad), total)
	problem := r.wholeProblem()
	switch {
	case problem.Reason != "":
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, failed, problem.Message
	case len(bad) > 0:
		c.Status, c.Reason = metav1.ConditionFalse, failed
		c.Message += "; " + Bounded(bad, "; ")
	}
	if missing := r.missing(); len(missing) > 0 {
		c.Message += "; not joined: " + Bounded(missing, ", ")
	}
	return c
}

// wholeProblem is what keeps the whole service from being shared.
func (r *reporter) wholeProblem() Outcome {
	switch {
	case r.plan.Hold != nil:
		return Outcome{Reason: networkingv1alpha1.ReasonServiceUnsupported, Message: r.plan.Hold.Error() + "; nothing is changed until it is corrected"}
	case r.plan.Unsupported != "":
		return Outcome{Reason: networkingv1alpha1.ReasonServiceUnsupported, Message: r.plan.Unsupported}
	}
	return Outcome{}
}

// missing are the selected clusters that have not joined.
func (r *reporter) missing() []string {
	out := make([]string, 0, len(r.plan.Selection.Missing))
	for _, name := range r.plan.Selection.Missing {
		out = append(out, string(name))
	}
	return out
}

// readyCondition names the first thing that a person should look at.
func (r *reporter) readyCondition(clusters []networkingv1alpha1.ClusterServiceStatus) metav1.Condition {
	not := func(reason, message string) metav1.Condition {
		return metav1.Condition{Type: networkingv1alpha1.ConditionReady, Status: metav1.ConditionFalse, Reason: reason, Message: message}
	}
	applied := meta.FindStatusCondition(r.in.MCS.Status.Conditions, networkingv1alpha1.ConditionServiceApplied)
	problem := r.wholeProblem()
	switch {
	case problem.Reason != "":
		return not(problem.Reason, problem.Message)
	case r.in.Template == nil:
		return not(networkingv1alpha1.ReasonServiceNotFound,
			fmt.Sprintf("the hub has no Service %s: create it there, in the same namespace", r.plan.Service))
	case len(r.plan.MissingPorts) > 0:
		return not(networkingv1alpha1.ReasonPortNotFound,
			fmt.Sprintf("spec.ports lists %s, which the Service does not have; it has %s: correct one of the two, the other ports are shared",
				Bounded(r.plan.MissingPorts, ", "), portsOf(r.in.Template)))
	case len(r.plan.Selection.Missing) > 0:
		return not(networkingv1alpha1.ReasonClusterNotFound,
			"not joined: "+Bounded(r.missing(), ", ")+": join with 'namesakectl join', or take off the lists of spec; the other clusters are served")
	case len(r.plan.Conflicts) > 0:
		return not(networkingv1alpha1.ReasonAddressConflict, conflictMessage(r.plan.Conflicts[0]))
	}
	if role := r.lackingRole(); role != "" {
		return not(networkingv1alpha1.ReasonClusterNotFound,
			fmt.Sprintf("no joined cluster is selected as a %s: join one with 'namesakectl join', or change the lists of spec", role))
	}
	var reason string
	var bad []string
	for i := range clusters {
		if clusters[i].Reason != networkingv1alpha1.ReasonAllReady {
			if reason == "" || reason == networkingv1alpha1.ReasonProgressing {
				reason = clusters[i].Reason
			}
			bad = append(bad, clusters[i].Name+": "+clusters[i].Message)
		}
	}
	switch {
	case reason != "" && reason != networkingv1alpha1.ReasonProgressing:
		// A cluster that says why comes before the Service that does not stand in it.
		return not(reason, Bounded(bad, "; "))
	case applied != nil && applied.Status == metav1.ConditionFalse:
		return not(networkingv1alpha1.ReasonServiceAppliedFailed, applied.Message)
	case reason != "":
		return not(reason, Bounded(bad, "; "))
	case applied == nil:
		// Whoever puts the Service into clusters will say so soon.
		r.settled = false
		return not(networkingv1alpha1.ReasonProgressing, "the Service is on its way to the clusters")
	}
	message := count(len(r.plan.Selection.Providers), "provider") + ", " + count(len(r.plan.Selection.Consumers), "consumer")
	if !r.crossCluster() {
		message = fmt.Sprintf("%s; a load balancer finds their endpoints in the Works labelled %s=%s, %s=%s and %s",
			count(len(r.plan.Selection.Providers), "provider"), networkingv1alpha1.NamespaceKey, r.plan.Service.Namespace,
			networkingv1alpha1.NameKey, r.plan.Service.Name, networkingv1alpha1.CollectedByLabel)
	}
	return metav1.Condition{
		Type: networkingv1alpha1.ConditionReady, Status: metav1.ConditionTrue, Reason: networkingv1alpha1.ReasonAllReady, Message: message,
	}
}

// conflictMessage names two clusters that claim one address.
func conflictMessage(c AddressConflict) string {
	what := c.Address
	if c.Count > 1 {
		what += fmt.Sprintf(" and %d more", c.Count-1)
	}
	return fmt.Sprintf("clusters %s and %s both claim %s: their pod ranges overlap; callers elsewhere get it from %s, "+
		"and the other's pod there is reached from its own cluster only: give the clusters ranges of their own", c.Kept, c.Withheld, what, c.Kept)
}

// count is a number of things.
func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// portsOf lists the ports of a Service as spec.ports would.
func portsOf(svc *corev1.Service) string {
	if len(svc.Spec.Ports) == 0 {
		return "none"
	}
	var out []string
	for _, p := range svc.Spec.Ports {
		out = append(out, portText(p.Name, p.Port))
	}
	return Bounded(out, ", ")
}

// lackingRole is the role that no cluster has, or "".
func (r *reporter) lackingRole() string {
	switch {
	case len(r.plan.Selection.Providers) == 0:
		return "provider"
	case len(r.plan.Selection.Consumers) == 0 && r.crossCluster():
		return "consumer"
	}
	return ""
}

// crossCluster says whether consumers are to hold slices at all.
func (r *reporter) crossCluster() bool {
	return slices.Contains(r.in.MCS.Spec.Types, networkingv1alpha1.ExposureTypeCrossCluster)
}

// Bounded joins the first few items and counts the rest.
func Bounded(items []string, separator string) string {
	if len(items) <= maxNames {
		return strings.Join(items, separator)
	}
	return fmt.Sprintf("%s and %d more", strings.Join(items[:maxNames], separator), len(items)-maxNames)
}

// columnOf is a list of clusters as a column of a table has it.
func columnOf(names []ClusterName) string {
	var shown []string
	for _, name := range names[:min(len(names), maxNames)] {
		shown = append(shown, string(name))
	}
	out := strings.Join(shown, ",")
	if more := len(names) - maxNames; more > 0 {
		out += fmt.Sprintf("+%d", more)
	}
	return out
}
