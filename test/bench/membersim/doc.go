// Package membersim simulates the API servers of many members in one process. It
// exists to be cheap, so that a hub can be seen at a scale for which no machine
// has real API servers, and is used for nothing else.
//
// A simulated member serves Namespaces, Services and EndpointSlices: get, list,
// watch, create, update and delete, in JSON and protobuf, with label selectors,
// resourceVersions, preconditions and the errors that clients act on. It knows no
// users, no admission, no other kinds and no finalizers. What it does do, it does as a
// real API server: one test runs against both.
//
//	server.go     requests of all members, at one address, each below its name
//	watch.go      watches
//	store.go      what one member holds, and who is told of changes
//	codec.go      JSON and protobuf
//	discovery.go  what is served
package membersim
