package membersim

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
)

// maxBody bounds what a request may carry.
const maxBody = 3 << 20

// Fleet serves members, each below a path of its name: /member1/api/v1 ….
type Fleet struct {
	members map[string]*Member
	// Writes and Reads count requests, watches left out.
	Writes, Reads atomic.Int64
}

// NewFleet returns members of these names.
func NewFleet(names ...string) *Fleet {
	f := &Fleet{members: map[string]*Member{}}
	for _, name := range names {
		f.members[name] = newMember()
	}
	return f
}

// Member returns a member.
func (f *Fleet) Member(name string) *Member { return f.members[name] }

// ServeHTTP implements http.Handler.
func (f *Fleet) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	name, path, _ := strings.Cut(strings.TrimPrefix(req.URL.Path, "/"), "/")
	m, path := f.members[name], "/"+path
	switch {
	case m == nil:
		refuse(w, req, apierrors.NewNotFound(namespaces.groupResource(), name))
		return
	case m.down.Load():
		panic(http.ErrAbortHandler) // the connection breaks
	case path == "/readyz" || path == "/livez" || path == "/healthz":
		fmt.Fprint(w, "ok")
		return
	}
	if what := described(path); what != nil {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(what)
		return
	}
	r, key, found := locate(path)
	if !found {
		http.NotFound(w, req)
		return
	}
	if req.Method == http.MethodGet && isTrue(req.URL.Query().Get("watch")) {
		m.serveWatch(w, req, r, key.Namespace)
		return
	}
	if delay := time.Duration(m.latency.Load()); delay > 0 {
		timer := time.NewTimer(delay)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-req.Context().Done():
			return
		}
	}
	if req.Method == http.MethodGet {
		f.Reads.Add(1)
		m.read(w, req, r, key)
		return
	}
	f.Writes.Add(1)
	m.write(w, req, r, key)
}

// locate returns what a path names: a resource, and a namespace and name where
// they are given.
func locate(path string) (r resource, key types.NamespacedName, found bool) {
	for _, r := range resources {
		prefix := "/api/" + r.group.Version
		if r.group.Group != "" {
			prefix = "/apis/" + r.group.String()
		}
		rest, ok := strings.CutPrefix(path, prefix+"/")
		if !ok {
			continue
		}
		parts := strings.Split(rest, "/")
		if r.namespaced && len(parts) > 2 && parts[0] == namespaces.name {
			key.Namespace, parts = parts[1], parts[2:]
		}
		if parts[0] != r.name || len(parts) > 2 {
			key = types.NamespacedName{}
			continue
		}
		if len(parts) == 2 {
			key.Name = parts[1]
		}
		return r, key, true
	}
	return resource{}, key, false
}

func isTrue(value string) bool { return value == "true" || value == "1" }

// selectorOf returns the label selector of a request.
func selectorOf(req *http.Request) (labels.Selector, error) {
	query := req.URL.Query()
	if query.Get("fieldSelector") != "" {
		return nil, apierrors.NewBadRequest("the simulation knows no field selectors")
	}
	selector, err := labels.Parse(query.Get("labelSelector"))
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	return selector, nil
}

// read answers a get or list.
func (m *Member) read(w http.ResponseWriter, req *http.Request, r resource, key types.NamespacedName) {
	if key.Name != "" {
		obj, err := m.get(r, key)
		if err != nil {
			refuse(w, req, err)
			return
		}
		answer(w, req, http.StatusOK, obj, r.group)
		return
	}
	selector, err := selectorOf(req)
	if err != nil {
		refuse(w, req, err)
		return
	}
	found, version := m.list(r, key.Namespace, selector)
	answer(w, req, http.StatusOK, listOf(r, found, strconv.FormatUint(version, 10)), r.group)
}

// serveWatch answers a watch.
func (m *Member) serveWatch(w http.ResponseWriter, req *http.Request, r resource, namespace string) {
	selector, err := selectorOf(req)
	if err != nil {
		refuse(w, req, err)
		return
	}
	query := req.URL.Query()
	if query.Get("sendInitialEvents") != "" {
		// As a server that cannot list by a watch: clients list then.
		refuse(w, req, apierrors.NewInvalid(metav1.SchemeGroupVersion.WithKind("ListOptions").GroupKind(), "", nil))
		return
	}
	version, err := strconv.ParseUint(query.Get("resourceVersion"), 10, 64)
	if err != nil {
		refuse(w, req, apierrors.NewBadRequest("the simulation watches from a version"))
		return
	}
	m.watch(w, req, selection{resource: r, namespace: namespace, selector: selector}, version)
}

// write carries out a create, update or delete.
func (m *Member) write(w http.ResponseWriter, req *http.Request, r resource, key types.NamespacedName) {
	body, err := io.ReadAll(io.LimitReader(req.Body, maxBody))
	if err != nil {
		return // the client has gone
	}
	obj, code, err := m.carryOut(req, r, key, body)
	if err != nil {
		refuse(w, req, err)
		return
	}
	answer(w, req, code, obj, r.group)
}

// carryOut makes a write and returns the object and the code of the answer.
func (m *Member) carryOut(req *http.Request, r resource, key types.NamespacedName, body []byte) (object, int, error) {
	if req.Method == http.MethodDelete {
		options := &metav1.DeleteOptions{}
		if len(body) > 0 {
			if _, _, err := scheme.Codecs.UniversalDeserializer().Decode(body, nil, options); err != nil {
				return nil, 0, apierrors.NewBadRequest(err.Error())
			}
		}
		obj, err := m.remove(r, key, options.Preconditions)
		return obj, http.StatusOK, err
	}
	obj, err := decode(r, body)
	if err != nil {
		return nil, 0, err
	}
	if obj.GetNamespace() == "" {
		obj.SetNamespace(key.Namespace)
	}
	if obj.GetNamespace() != key.Namespace {
		return nil, 0, apierrors.NewBadRequest("the namespace of the provided object does not match the namespace sent on the request")
	}
	manager := req.URL.Query().Get("fieldManager")
	if manager == "" {
		manager, _, _ = strings.Cut(req.UserAgent(), "/")
	}
	switch req.Method {
	case http.MethodPost:
		obj, err = m.create(r, obj, manager)
		return obj, http.StatusCreated, err
	case http.MethodPut:
		obj, err = m.update(r, obj, manager)
		return obj, http.StatusOK, err
	}
	return nil, 0, apierrors.NewMethodNotSupported(r.groupResource(), strings.ToLower(req.Method))
}
