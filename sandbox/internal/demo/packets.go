package demo

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/namesake-io/namesake/sandbox/internal/fault"
	"github.com/namesake-io/namesake/sandbox/internal/plan"
)

var deployments = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}

const (
	// answerLimit is for pods to start, and for what they are called by to be
	// known to the last kube-proxy and CoreDNS.
	answerLimit = time.Minute
	// questions are enough for each of a few pods to be asked.
	questions = 12
	longName  = "http://" + serviceName + "." + namespace + ".svc.cluster.local"
	shortName = "http://" + serviceName + "." + namespace
)

// canSendPackets tells whether this machine can have a data plane.
func canSendPackets() bool {
	if os.Geteuid() != 0 {
		return false
	}
	for _, program := range []string{"nft", "curl"} {
		if _, err := exec.LookPath(program); err != nil {
			return false
		}
	}
	return true
}

// packets shows that all of this is for: callers and answers.
func (s *story) packets(ctx context.Context) error {
	provider, neighbour := s.provider(), s.neighbour()
	if err := s.startPods(ctx); err != nil {
		return err
	}
	for _, url := range []string{longName, shortName} {
		if err := s.answered(ctx, url, provider.name); err != nil {
			return err
		}
	}
	out, err := s.curl(ctx, shortName)
	if err != nil {
		return err
	}
	s.say("%s has no pods of it. In a pod of %s:", neighbour.name, neighbour.name)
	s.quote("$ curl " + shortName + "\n" + out)

	if err := neighbour.deploy(ctx, 2); err != nil {
		return err
	}
	if err := s.answered(ctx, shortName, provider.name, neighbour.name); err != nil {
		return err
	}
	s.say("Two pods in %s as well: both clusters answer.", neighbour.name)
	if err := provider.scale(ctx, 0); err != nil {
		return err
	}
	if err := s.answered(ctx, shortName, neighbour.name); err != nil {
		return err
	}
	s.say("None left in %s: %s carries on. Then they are back.", provider.name, neighbour.name)
	if err := errors.Join(provider.scale(ctx, 2), s.answered(ctx, shortName, provider.name, neighbour.name)); err != nil {
		return err
	}
	return s.withoutControl(ctx)
}

// withoutControl calls while nobody is there who could change a route.
func (s *story) withoutControl(ctx context.Context) error {
	for _, component := range []string{manager, hubAPIServer} {
		if err := s.fleet.Kill(ctx, component); err != nil {
			return err
		}
	}
	if err := s.fleet.SetFault(ctx, s.provider().name, fault.Fault{Name: fault.APIDown}, true); err != nil {
		return err
	}
	for range questions {
		if _, err := s.curl(ctx, shortName); err != nil {
			return fmt.Errorf("without the hub and the API server of %s: %w", s.provider().name, err)
		}
	}
	s.figure(fmt.Sprintf("The hub is killed, the API server of %s stopped. Calls that failed, of %d", s.provider().name, questions), "none")
	s.measure("Calls that failed while hub and provider's API server were down", "none")
	return nil
}

// startPods makes way for pods that are real, and makes the wish again.
func (s *story) startPods(ctx context.Context) error {
	provider := s.provider()
	for _, m := range s.world.members {
		now := int64(0)
		err := m.client.Resource(pods).Namespace(namespace).DeleteCollection(ctx, metav1.DeleteOptions{GracePeriodSeconds: &now}, metav1.ListOptions{})
		if err != nil {
			return fmt.Errorf("deleting the pods of %s: %w", m.name, err)
		}
	}
	if err := errors.Join(provider.deploy(ctx, 2), s.world.createMultiClusterService(ctx)); err != nil {
		return err
	}
	s.say("Now the pods are processes in network namespaces, called through kube-proxy and CoreDNS.")
	s.say("On the hub: the MultiClusterService again. In %s: a Deployment of two pods.", provider.name)
	return nil
}

// answered returns when exactly these members answer in the neighbour.
func (s *story) answered(ctx context.Context, url string, want ...string) error {
	began := time.Now()
	err := poll(ctx, answerLimit, func(ctx context.Context) error {
		var got []string
		for range questions {
			out, err := s.curl(ctx, url)
			if err != nil {
				return err
			}
			if cluster := clusterOf(out); !slices.Contains(got, cluster) {
				got = append(got, cluster)
			}
		}
		slices.Sort(got)
		if !slices.Equal(got, want) {
			return fmt.Errorf("%s is answered by %s, want %s", url, names(got), names(want))
		}
		return nil
	})
	if err != nil {
		return err
	}
	s.fact(fmt.Sprintf("%s is answered in %s by %s, after", url, s.neighbour().name, names(want)), time.Since(began))
	return nil
}

// curl calls in the neighbour's client pod.
func (s *story) curl(ctx context.Context, url string) (string, error) {
	cmd := exec.CommandContext(ctx, s.sandbox, "exec", "--dir", s.dir, s.neighbour().name, "--", "curl", "-sS", "--max-time", "3", url)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("curl %s in %s: %w: %s", url, s.neighbour().name, err, strings.TrimSpace(string(out)))
	}
	return string(out), nil
}

// clusterOf reads the cluster from what an echo server says.
func clusterOf(answer string) string {
	for _, word := range strings.Fields(answer) {
		if cluster, ok := strings.CutPrefix(word, "cluster="); ok {
			return cluster
		}
	}
	return "somebody else"
}

// deploy makes a Deployment of echo servers.
func (c *cluster) deploy(ctx context.Context, replicas int32) error {
	return c.create(ctx, deployments, namespace, &appsv1.Deployment{
		TypeMeta:   metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"},
		ObjectMeta: metav1.ObjectMeta{Name: serviceName},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas,
			Selector: &metav1.LabelSelector{MatchLabels: podLabels()},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: podLabels()},
				Spec: corev1.PodSpec{
					NodeName:   plan.NodeName,
					Containers: []corev1.Container{{Name: serviceName, Image: serviceName, Args: []string{"--linger=2s"}}},
				},
			},
		},
	})
}

func (c *cluster) scale(ctx context.Context, replicas int) error {
	patch := fmt.Sprintf(`{"spec":{"replicas":%d}}`, replicas)
	_, err := c.client.Resource(deployments).Namespace(namespace).Patch(ctx, serviceName, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	if err != nil {
		return fmt.Errorf("scaling in %s: %w", c.name, err)
	}
	return nil
}
