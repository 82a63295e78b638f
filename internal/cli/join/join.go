package join

import (
	"context"
	"errors"
	"fmt"
	"net/url"

	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/json"

	clusterv1alpha1 "github.com/namesake-io/namesake/api/cluster/v1alpha1"
	"github.com/namesake-io/namesake/internal/cli/console"
	"github.com/namesake-io/namesake/internal/cli/membership"
	"github.com/namesake-io/namesake/internal/cli/target"
)

// joining is one run of the command.
type joining struct {
	Options

	program     string
	hub, member *target.Target
	steps       *console.Steps
	undo        undo

	// found is set by look, before anything is written.
	found findings
	// credential is set by issue.
	credential credential
}

// Run joins a cluster and tells what it does.
func Run(ctx context.Context, f *target.Factory, o Options) error {
	j := &joining{Options: o, program: f.Program}
	var err error
	if j.member, err = target.Member(o.Kubeconfig, o.Context, f.ErrOut); err != nil {
		return console.WithHint(err, "--cluster-kubeconfig names the kubeconfig of the cluster to join, --cluster-context one of its contexts")
	}
	if err := j.checkKubeconfig(); err != nil {
		return err
	}
	if j.hub, err = f.Hub(); err != nil {
		return err
	}

	j.steps = console.NewSteps(f.Out, "Joining %s (%s) to the hub %s", o.Name, j.endpoint(), j.hub.URL())
	if err := j.untilCluster(ctx); err != nil {
		return j.takeBack(ctx, err)
	}
	j.retireOldToken(ctx)
	if o.WaitTimeout == 0 {
		j.steps.End("%s has joined; not waiting until it is Ready,", o.Name)
		return nil
	}
	if err := j.step("Ready", j.hub, func() (string, error) { return j.waitReady(ctx) }); err != nil {
		return err
	}
	j.steps.End("%s has joined", o.Name)
	return nil
}

// untilCluster does everything up to the point from which on the hub knows of
// the member.
func (j *joining) untilCluster(ctx context.Context) error {
	if err := j.look(ctx); err != nil {
		return err
	}
	stages := []struct {
		what string
		in   *target.Target
		do   func(context.Context) (string, error)
	}{
		{"permissions in the member", j.member, j.checkMemberPermissions},
		{"permissions on the hub", j.hub, j.checkHubPermissions},
		{"account in the member", j.member, j.writeAccount},
		{"credential", j.member, j.issue},
		{"credential works", j.member, j.tryCredential},
		{"registration on the hub", j.hub, j.register},
	}
	for _, s := range stages {
		if err := j.step(s.what, s.in, func() (string, error) { return s.do(ctx) }); err != nil {
			return err
		}
	}
	return nil
}

// step runs one step against t and explains its error.
func (j *joining) step(what string, t *target.Target, do func() (string, error)) error {
	return j.steps.Do(what, func() (string, error) {
		result, err := do()
		return result, t.Explain(j.program, err)
	})
}

// takeBack undoes what this call created and returns the error that made it
// necessary, with what could not be undone.
func (j *joining) takeBack(ctx context.Context, cause error) error {
	count := len(j.undo.created)
	if count == 0 {
		return cause
	}
	if err := j.undo.run(ctx); err != nil {
		return fmt.Errorf("%w (and on the way back: %w)", cause, err)
	}
	j.steps.Note("took back what this call had made (%d objects)", count)
	return cause
}

// endpoint is the URL under which the hub will call the member.
func (j *joining) endpoint() string {
	if j.APIEndpoint != "" {
		return j.APIEndpoint
	}
	return j.member.URL()
}

// checkKubeconfig finds what a Cluster can't express, before anything is asked.
func (j *joining) checkKubeconfig() error {
	cluster := j.member.Cluster
	if cluster.TLSServerName != "" {
		return console.WithHint(
			fmt.Errorf("kubeconfig %s sets tls-server-name %q, which a Cluster cannot express", j.Kubeconfig, cluster.TLSServerName),
			"use an address that the API server's certificate names, and remove tls-server-name")
	}
	if u, err := url.Parse(j.member.URL()); err != nil || u.Scheme != "https" {
		return console.WithHint(
			fmt.Errorf("kubeconfig %s names the API server %q, which is no https URL", j.Kubeconfig, j.member.URL()),
			"the hub sends a token to the member and does so through TLS only")
	}
	return nil
}

// look gathers what is there, and refuses when it stands in the way.
func (j *joining) look(ctx context.Context) error {
	if err := j.step("hub answers", j.hub, func() (string, error) { return j.lookAtHub(ctx) }); err != nil {
		return err
	}
	if err := j.step("member answers", j.member, func() (string, error) { return j.lookAtMember(ctx) }); err != nil {
		return err
	}
	return j.found.conflict(j.Options, j.program)
}

func (j *joining) lookAtHub(ctx context.Context) (_ string, err error) {
	j.found.hubURL = j.hub.URL()
	// The Clusters first: without their kind there is nothing to join to.
	var clusters clusterv1alpha1.ClusterList
	if err := j.hub.Client.List(ctx, &clusters); err != nil {
		return "", fmt.Errorf("listing the hub's Clusters: %w", err)
	}
	j.found.clusters = clusters.Items
	if j.found.hubID, err = j.hub.ID(ctx); err != nil {
		return "", err
	}
	return fmt.Sprintf("%d joined", len(clusters.Items)), nil
}

func (j *joining) lookAtMember(ctx context.Context) (_ string, err error) {
	info, err := serverVersion(ctx, j.member)
	if err != nil {
		return "", err
	}
	if j.found.memberID, err = j.member.ID(ctx); err != nil {
		return "", err
	}
	if j.found.marker, err = membership.ReadMarker(ctx, j.member.Client); err != nil {
		return "", err
	}
	return fmt.Sprintf("%s, id %s", info.GitVersion, j.found.memberID), nil
}

func serverVersion(ctx context.Context, t *target.Target) (version.Info, error) {
	var info version.Info
	d, err := t.Discovery()
	if err != nil {
		return info, err
	}
	raw, err := d.RESTClient().Get().AbsPath("/version").Do(ctx).Raw()
	if err != nil {
		return info, fmt.Errorf("asking for the version: %w", err)
	}
	if err := json.UnmarshalCaseSensitivePreserveInts(raw, &info); err != nil {
		return info, fmt.Errorf("reading the version: %w", err)
	}
	return info, nil
}

// authenticateAs returns a client of the member that has the token and nothing
// else of the kubeconfig's credentials.
func authenticateAs(token string, member *target.Target) (client.Client, error) {
	config := rest.AnonymousClientConfig(member.Config)
	config.BearerToken = token
	return client.New(config, client.Options{Scheme: member.Client.Scheme()})
}

// isRejected tells answers that a credential gets, be it for a moment only while
// the API server has not heard of it everywhere.
func isRejected(err error) bool {
	return apierrors.IsUnauthorized(err) || apierrors.IsForbidden(err)
}

// tokenRequest asks for a token that lives for many years, unless the API
// server caps it, and dies with the named Secret.
func tokenRequest(secret client.Object) *authenticationv1.TokenRequest {
	const tenYears = int64(10 * 365 * 24 * 60 * 60)
	seconds := tenYears
	return &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
		ExpirationSeconds: &seconds,
		BoundObjectRef: &authenticationv1.BoundObjectReference{
			APIVersion: "v1", Kind: "Secret", Name: secret.GetName(), UID: secret.GetUID(),
		},
	}}
}

var errNotAccepted = errors.New("the member does not accept the credential that it issued")
