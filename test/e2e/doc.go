// Package e2e holds the end-to-end tests: kubeconfigs in, observations out, on
// fleets of real control planes that bin/sandbox runs.
//
// One fleet of three members serves most tests, each in a namespace of its own
// (a site). All tests are parallel to the testing package; who calls together
// runs beside others, and who calls alone has the fleet to itself, because it
// stops things or measures time. NAMESAKE_E2E_PULL names members that an agent
// stands in for: the tests are the same for them.
//
//	fleet.go    a fleet: programs, components, faults, clients
//	site.go     a namespace of one test: Services, pods, slices, wishes
//	spread.go   what stands in each member, against what should
//	history.go  everything that a watch tells, with times
//	manager.go  which controller-manager works
//	metrics.go  what an API server says of the requests it got
package e2e
