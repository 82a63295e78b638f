// Package membership is what a join leaves behind and an unjoin takes away: in
// the member an account with its rights, its credential and a marker that says
// which hub it belongs to; on the hub a Secret.
//
//	member                                       hub
//	namespace karmada-cluster                    namespace karmada-cluster
//	  ServiceAccount namesake                      Secret <cluster>: token, caBundle
//	  Secret namesake-token                      Cluster <cluster>
//	  ConfigMap namesake (marker)
//	ClusterRole, ClusterRoleBinding namesake-hub
package membership
