package register

import (
	"context"
	"errors"
	"fmt"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/namesake-io/namesake/api/cluster/v1alpha1"
	"github.com/namesake-io/namesake/internal/cli/console"
	"github.com/namesake-io/namesake/internal/cli/membership"
	"github.com/namesake-io/namesake/internal/cli/target"
)

// accountPatience is how long the account that the token speaks for, and its
// rights, may take to be known everywhere.
const accountPatience = 30 * time.Second

// registering is one run of the command.
type registering struct {
	Options

	program     string
	way         way
	hub, member *target.Target
	steps       *console.Steps

	// hubID, memberID and marker are set by look, before anything is written.
	hubID, memberID string
	marker          *membership.Marker
	// credential is the agent's, set by issue.
	credential *authenticationv1.TokenRequest
}

// Run registers a cluster and tells what it does.
func Run(ctx context.Context, f *target.Factory, o Options) error {
	r := &registering{Options: o, program: f.Program}
	var err error
	if r.way, err = o.way(f.In); err != nil {
		return err
	}
	if r.hub, err = target.Remote(r.way.config(), f.ErrOut); err != nil {
		return err
	}
	if r.member, err = target.Member(o.Kubeconfig, o.Context, f.ErrOut); err != nil {
		return console.WithHint(err, "--cluster-kubeconfig names the kubeconfig of the cluster to register, --cluster-context one of its contexts")
	}
	r.steps = console.NewSteps(f.Out, "Registering %s (%s) with the hub %s", o.Name, r.member.URL(), r.hub.URL())
	for _, s := range []struct {
		what string
		in   *target.Target
		do   func(context.Context) (string, error)
	}{
		{"hub takes the token", r.hub, r.lookAtHub},
		{"member answers", r.member, r.lookAtMember},
		{"account in the member", r.member, r.writeAccount},
		{"registration on the hub", r.hub, r.writeCluster},
		{"the agent's credential", r.hub, r.issue},
		{"credential in the member", r.member, r.writeCredential},
		{"agent", r.member, r.startAgent},
		{"the token is used up", r.hub, r.useUp},
	} {
		if err := r.step(ctx, s.what, s.in, s.do); err != nil {
			return err
		}
	}
	r.steps.End("%s is registered; it becomes Ready when its agent runs,", o.Name)
	return nil
}

// step runs one step against t and explains its error.
func (r *registering) step(ctx context.Context, what string, t *target.Target, do func(context.Context) (string, error)) error {
	return r.steps.Do(what, func() (string, error) {
		result, err := do(ctx)
		return result, t.Explain(r.program, err)
	})
}

// config is how to call the hub with the token.
func (w way) config() *rest.Config {
	return &rest.Config{Host: w.server, BearerToken: w.token, TLSClientConfig: rest.TLSClientConfig{CAData: w.ca}}
}

// lookAtHub refuses a name that another cluster has.
func (r *registering) lookAtHub(ctx context.Context) (string, error) {
	cluster := &clusterv1alpha1.Cluster{}
	err := target.Await(ctx, accountPatience, func(ctx context.Context) (bool, error) {
		err := r.hub.Client.Get(ctx, client.ObjectKey{Name: r.Name}, cluster)
		if apierrors.IsNotFound(err) {
			cluster.Name, err = "", nil
		}
		return err == nil, err
	})
	switch {
	case apierrors.IsUnauthorized(err):
		return "", console.WithHint(errors.New("the hub does not take the token: it has been used, has ended, or is another hub's"),
			"make a new one: %s token create %s", r.program, r.Name)
	case apierrors.IsForbidden(err):
		return "", console.WithHint(fmt.Errorf("the token is for another name than %q", r.Name),
			"make one for this name: %s token create %s", r.program, r.Name)
	case err != nil:
		return "", fmt.Errorf("reading Cluster %s: %w", r.Name, err)
	}
	if r.hubID, err = r.hub.ID(ctx); err != nil {
		return "", err
	}
	if cluster.Name == "" {
		return "the name is free", nil
	}
	switch {
	case cluster.DeletionTimestamp != nil:
		return "", console.WithHint(fmt.Errorf("the cluster %q is being unjoined from the hub", r.Name), "wait until that is done, then run this again")
	case cluster.Spec.SyncMode != clusterv1alpha1.Pull:
		return "", console.WithHint(fmt.Errorf("the cluster %q has joined in Push mode, where the hub needs no agent", r.Name),
			"to change the mode, run first: %s unjoin %s", r.program, r.Name)
	}
	id, err := r.member.ID(ctx)
	if err == nil && cluster.Spec.ID != id {
		err = console.WithHint(fmt.Errorf("the name %q is taken on the hub by another cluster (id %s)", r.Name, cluster.Spec.ID),
			"choose another name, or run first: %s unjoin %s", r.program, r.Name)
	}
	return "the cluster is registered: its credential is renewed", err
}

func (r *registering) lookAtMember(ctx context.Context) (_ string, err error) {
	if r.memberID, err = r.member.ID(ctx); err != nil {
		return "", err
	}
	if r.marker, err = membership.ReadMarker(ctx, r.member.Client); err != nil {
		return "", err
	}
	if r.marker != nil && !r.Force && (r.marker.HubID != r.hubID || r.marker.Cluster != r.Name) {
		return "", console.WithHint(
			fmt.Errorf("this cluster has already joined the hub %s, as %q", r.marker.HubURL, r.marker.Cluster),
			"run there: %s unjoin %s --cluster-kubeconfig %s; or, if that hub is gone, register with --force", r.program, r.marker.Cluster, r.Kubeconfig)
	}
	return "id " + r.memberID, nil
}

// writeCluster registers the cluster. By server-side apply, which is granted for
// this one name.
func (r *registering) writeCluster(ctx context.Context) (string, error) {
	spec := map[string]any{"syncMode": string(clusterv1alpha1.Pull), "id": r.memberID}
	if r.Provider != "" {
		spec["provider"] = r.Provider
	}
	if r.Region != "" {
		spec["region"] = r.Region
	}
	if len(r.Zones) > 0 {
		zones := make([]any, 0, len(r.Zones))
		for _, zone := range r.Zones {
			zones = append(zones, zone)
		}
		spec["zones"] = zones
	}
	cluster := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	cluster.SetGroupVersionKind(clusterv1alpha1.GroupVersion.WithKind("Cluster"))
	cluster.SetName(r.Name)
	err := r.hub.Client.Apply(ctx, client.ApplyConfigurationFromUnstructured(cluster), client.FieldOwner(target.FieldManager), client.ForceOwnership)
	if err != nil {
		return "", fmt.Errorf("writing Cluster %s: %w", r.Name, err)
	}
	return "Cluster " + r.Name, nil
}

// issue gets the agent's own credential.
func (r *registering) issue(ctx context.Context) (string, error) {
	seconds := int64(r.CredentialTTL.Seconds())
	r.credential = &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &seconds}}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{
		Namespace: clusterv1alpha1.ExecutionNamespace(r.Name), Name: membership.Agent,
	}}
	if err := r.hub.Client.SubResource("token").Create(ctx, account, r.credential); err != nil {
		return "", fmt.Errorf("asking for the agent's credential: %w", err)
	}
	if r.credential.Status.Token == "" {
		return "", errors.New("the hub gave an empty credential")
	}
	return "until " + r.credential.Status.ExpirationTimestamp.UTC().Format(time.RFC3339) + ", renewed by the agent", nil
}

// useUp ends the token. That it cannot be ended is no failure: it soon ends itself.
func (r *registering) useUp(ctx context.Context) (string, error) {
	if err := client.IgnoreNotFound(r.hub.Client.Delete(ctx, membership.RegistrarSecret(r.Name))); err != nil {
		return fmt.Sprintf("no, it ends by itself (%v)", err), nil
	}
	return "", nil
}
