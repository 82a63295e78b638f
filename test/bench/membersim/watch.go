package membersim

import (
	"bytes"
	"context"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/scheme"
)

// since returns the changes of a resource after a version, and what is closed
// when there are more. gone says that some are not known any more.
func (m *Member) since(r resource, version uint64) (found []change, news <-chan struct{}, gone bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if version < m.forgotten[r.name] {
		return nil, nil, true
	}
	log := m.changes[r.name]
	first := len(log)
	for first > 0 && log[first-1].version > version {
		first--
	}
	return append([]change(nil), log[first:]...), m.news, false
}

// selection is what a watch shows.
type selection struct {
	resource  resource
	namespace string
	selector  labels.Selector
}

// shows returns what a change is to those who see no more than a selection, and of
// which object. Empty: nothing. What leaves the selection is shown as it was.
func (s selection) shows(c change) (watch.EventType, object) {
	if s.namespace != "" && c.object.GetNamespace() != s.namespace {
		return "", nil
	}
	is := c.kind != watch.Deleted && s.selector.Matches(labels.Set(c.object.GetLabels()))
	was := c.was != nil && s.selector.Matches(labels.Set(c.was.GetLabels()))
	switch {
	case is && was:
		return watch.Modified, c.object
	case is:
		return watch.Added, c.object
	case was && c.kind == watch.Deleted:
		return watch.Deleted, c.object
	case was:
		left, ok := c.was.DeepCopyObject().(object)
		if !ok {
			return "", nil
		}
		left.SetResourceVersion(c.object.GetResourceVersion())
		return watch.Deleted, left
	}
	return "", nil
}

// watch tells changes after a version until the client goes.
func (m *Member) watch(w http.ResponseWriter, req *http.Request, s selection, version uint64) {
	info := negotiate(req.Header.Get("Accept"))
	changes, news, gone := m.since(s.resource, version)
	if gone {
		refuse(w, req, apierrors.NewResourceExpired("too old resource version"))
		return
	}
	mediaType := info.MediaType
	if mediaType == runtime.ContentTypeProtobuf {
		mediaType += ";stream=watch"
	}
	w.Header().Set("Content-Type", mediaType)
	w.WriteHeader(http.StatusOK)
	flusher, ok := w.(http.Flusher)
	if !ok {
		return
	}
	flusher.Flush()
	for {
		for _, c := range changes {
			version = c.version
			if kind, obj := s.shows(c); kind != "" && writeEvent(w, info, s.resource, kind, obj) != nil {
				return
			}
		}
		flusher.Flush()
		if !wake(req.Context(), news) || m.down.Load() {
			return
		}
		if changes, news, gone = m.since(s.resource, version); gone {
			return
		}
	}
}

// wake waits for news.
func wake(ctx context.Context, news <-chan struct{}) bool {
	select {
	case <-news:
		return true
	case <-ctx.Done():
		return false
	}
}

// writeEvent writes one event in its frame.
func writeEvent(w http.ResponseWriter, info runtime.SerializerInfo, r resource, kind watch.EventType, obj runtime.Object) error {
	var raw, framed bytes.Buffer
	if err := scheme.Codecs.EncoderForVersion(info.Serializer, r.group).Encode(shallow(obj), &raw); err != nil {
		return err
	}
	event := &metav1.WatchEvent{Type: string(kind), Object: runtime.RawExtension{Raw: raw.Bytes()}}
	if err := info.StreamSerializer.Serializer.Encode(event, &framed); err != nil {
		return err
	}
	_, err := info.StreamSerializer.NewFrameWriter(w).Write(framed.Bytes())
	return err
}
