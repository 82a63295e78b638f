package node

import (
	"runtime"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/namesake-io/namesake/sandbox/internal/plan"
)

// object is the Node. Its internal addresses are those that pods and kube-proxy
// see; the external one is where the API server finds logs and exec.
func (a *Agent) object() *corev1.Node {
	capacity := corev1.ResourceList{
		corev1.ResourceCPU:    *resource.NewQuantity(int64(runtime.NumCPU()), resource.DecimalSI),
		corev1.ResourceMemory: resource.MustParse("16Gi"),
		corev1.ResourcePods:   *resource.NewQuantity(500, resource.DecimalSI),
	}
	now := metav1.Now()
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: plan.NodeName,
			Labels: map[string]string{
				corev1.LabelHostname:       plan.NodeName,
				corev1.LabelOSStable:       runtime.GOOS,
				corev1.LabelArchStable:     runtime.GOARCH,
				corev1.LabelTopologyZone:   plan.Zone,
				corev1.LabelTopologyRegion: "sandbox",
			},
		},
		Spec: corev1.NodeSpec{
			PodCIDR:  a.member.Pods4.String(),
			PodCIDRs: []string{a.member.Pods4.String(), a.member.Pods6.String()},
		},
		Status: corev1.NodeStatus{
			Capacity: capacity, Allocatable: capacity,
			Addresses: []corev1.NodeAddress{
				{Type: corev1.NodeInternalIP, Address: a.member.Node4.String()},
				{Type: corev1.NodeInternalIP, Address: a.member.Node6.String()},
				{Type: corev1.NodeExternalIP, Address: "127.0.0.1"},
				{Type: corev1.NodeHostName, Address: plan.NodeName},
			},
			DaemonEndpoints: corev1.NodeDaemonEndpoints{KubeletEndpoint: corev1.DaemonEndpoint{Port: int32(a.member.KubeletPort)}},
			NodeInfo: corev1.NodeSystemInfo{
				OperatingSystem: runtime.GOOS, Architecture: runtime.GOARCH,
				KubeletVersion: "v1.37.2-sandbox", OSImage: "Namesake sandbox", ContainerRuntimeVersion: "sandbox://1",
			},
			Conditions: []corev1.NodeCondition{{
				Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "SandboxNodeReady",
				LastHeartbeatTime: now, LastTransitionTime: now,
			}},
		},
	}
}
