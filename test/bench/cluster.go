package main

import (
	"context"
	"fmt"
	"path/filepath"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	clusterv1alpha1 "github.com/namesake-io/namesake/api/cluster/v1alpha1"
	networkingv1alpha1 "github.com/namesake-io/namesake/api/networking/v1alpha1"
	workv1alpha1 "github.com/namesake-io/namesake/api/work/v1alpha1"
	workv1alpha2 "github.com/namesake-io/namesake/api/work/v1alpha2"
)

// hubName is the name of the hub's kubeconfig.
const hubName = "hub"

// Kinds of the API under test.
var (
	wishes   = networkingv1alpha1.GroupVersion.WithResource("multiclusterservices")
	clusters = clusterv1alpha1.GroupVersion.WithResource("clusters")
	works    = workv1alpha1.GroupVersion.WithResource("works")
	bindings = workv1alpha2.GroupVersion.WithResource("resourcebindings")
)

// cluster is one API server, as an administrator sees it.
type cluster struct {
	name string
	// kube speaks protobuf, without a bound on requests.
	kube kubernetes.Interface
	// custom is for what is not built in.
	custom dynamic.Interface
}

// connect returns a client for the cluster of that name in a folder.
func connect(dir, name string) (*cluster, error) {
	config, err := clientcmd.BuildConfigFromFlags("", filepath.Join(dir, name+".kubeconfig"))
	if err != nil {
		return nil, fmt.Errorf("reading the kubeconfig of %s: %w", name, err)
	}
	config.QPS = -1
	config.UserAgent = "bench"
	config.WarningHandler = rest.NoWarnings{}
	c := &cluster{name: name}
	if c.custom, err = dynamic.NewForConfig(config); err != nil {
		return nil, fmt.Errorf("connecting to %s: %w", name, err)
	}
	config = rest.CopyConfig(config)
	config.ContentType = runtime.ContentTypeProtobuf
	config.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	if c.kube, err = kubernetes.NewForConfig(config); err != nil {
		return nil, fmt.Errorf("connecting to %s: %w", name, err)
	}
	return c, nil
}

// exists says whether there is an object of a kind that is not built in.
func (c *cluster) exists(ctx context.Context, resource schema.GroupVersionResource, namespace, name string) (bool, error) {
	var err error
	if namespace == "" {
		_, err = c.custom.Resource(resource).Get(ctx, name, getOptions)
	} else {
		_, err = c.custom.Resource(resource).Namespace(namespace).Get(ctx, name, getOptions)
	}
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	return err == nil, err
}

// unstructuredOf returns an object of the API as the dynamic client takes it.
func unstructuredOf(obj any) (*unstructured.Unstructured, error) {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		return nil, fmt.Errorf("encoding a %T: %w", obj, err)
	}
	return &unstructured.Unstructured{Object: fields}, nil
}
