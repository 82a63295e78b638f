package chaos

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/namesake-io/namesake/test/chaos/model"
)

// sliceEdits of a dispatched slice, as merge patches. The empty one deletes it.
// ALIEN stands for an address that nobody gave.
var sliceEdits = map[string]string{
	"delete":                         "",
	"endpoints gone":                 `{"endpoints":[]}`,
	"endpoints changed":              `{"endpoints":[{"addresses":["ALIEN"]}]}`,
	"ports changed":                  `{"ports":[{"name":"http","port":1,"protocol":"TCP"}]}`,
	"managed-by gone":                `{"metadata":{"labels":{"endpointslice.kubernetes.io/managed-by":null}}}`,
	"service-name gone":              `{"metadata":{"labels":{"kubernetes.io/service-name":null}}}`,
	"service-name changed":           `{"metadata":{"labels":{"kubernetes.io/service-name":"svc0"}}}`,
	"provision-cluster changed":      `{"metadata":{"annotations":{"endpointslice.karmada.io/provision-cluster":"member1"}}}`,
	"every label gone":               `{"metadata":{"labels":null}}`,
	"every annotation gone":          `{"metadata":{"annotations":null}}`,
	"every label and annotation off": `{"metadata":{"labels":null,"annotations":null}}`,
}

// serviceEdits are those of a Service in a member.
var serviceEdits = map[string]string{
	"delete":                         "",
	"ports changed":                  `{"spec":{"ports":[{"name":"http","port":81,"protocol":"TCP"}]}}`,
	"label gone":                     `{"metadata":{"labels":{"karmada.io/managed":null}}}`,
	"every label and annotation off": `{"metadata":{"labels":null,"annotations":null}}`,
}

// meddleWithSlice edits or deletes a dispatched slice in a member.
func (r *round) meddleWithSlice() bool {
	member, ok := pick(r, r.answering())
	if !ok {
		return false
	}
	slice, ok := pick(r, r.views.dispatched(member))
	edit, _ := pick(r, sortedKeys(sliceEdits))
	if !ok {
		return false
	}
	r.journal.note("%s: meddle with slice %s: %s", member, slice.Name, edit)
	addresses, alien := r.everIn(slice), r.newAddress()
	provider := model.Member(r.providerOf(slice.Name))
	disturb := func(w *model.World, d *model.Deed) {
		w.SetEndpoint(alien, provider, serviceOf(slice), model.Absent, d)
		for _, address := range append(addresses, alien) {
			w.Disturb(model.Member(member), address, d)
		}
	}
	r.do(disturb, func(ctx context.Context) error {
		obj := &discoveryv1.EndpointSlice{ObjectMeta: r.meta(slice.Name)}
		return edited(ctx, r.f.member(member), obj, strings.ReplaceAll(sliceEdits[edit], "ALIEN", string(alien)))
	})
	return true
}

// edited deletes an object or merges a patch into it.
func edited(ctx context.Context, c client.Client, obj client.Object, patch string) error {
	if patch == "" {
		return client.IgnoreNotFound(c.Delete(ctx, obj))
	}
	return client.IgnoreNotFound(c.Patch(ctx, obj, client.RawPatch(types.MergePatchType, []byte(patch))))
}

// everIn returns the addresses that a dispatched slice has or may have: whatever
// its provider's slice ever had.
func (r *round) everIn(slice *discoveryv1.EndpointSlice) []model.Address {
	var out []model.Address
	for i := range slice.Endpoints {
		out = append(out, addressOf(&slice.Endpoints[i]))
	}
	provider := r.providerOf(slice.Name)
	return append(out, r.ever[provider+"/"+strings.TrimPrefix(slice.Name, provider+"-")]...)
}

// providerOf returns the member whose slice is dispatched under a name.
func (r *round) providerOf(name string) string {
	for _, member := range r.names() {
		if strings.HasPrefix(name, member+"-") {
			return member
		}
	}
	return ""
}

// meddleWithService edits or deletes a Service in a member.
func (r *round) meddleWithService() bool {
	member, ok := pick(r, r.answering())
	service := r.service()
	edit, _ := pick(r, sortedKeys(serviceEdits))
	if !ok || !r.views.stands(member, service) {
		return false
	}
	r.journal.note("%s: meddle with Service %s: %s", member, service, edit)
	disturb := func(w *model.World, d *model.Deed) { w.DisturbService(model.Member(member), model.Service(service), d) }
	r.do(disturb, func(ctx context.Context) error {
		return edited(ctx, r.f.member(member), &corev1.Service{ObjectMeta: r.meta(service)}, serviceEdits[edit])
	})
	return true
}

func (e ownEndpoint) String() string {
	if e.ready {
		return string(e.address)
	}
	return fmt.Sprintf("%s (not ready)", e.address)
}
