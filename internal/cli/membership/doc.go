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
//
// For a member that an agent stands in for, it is the other way round: on the hub
// accounts with rights on what is the member's own, in the member the credential
// of one of them.
//
//	member                                       hub
//	namespace karmada-cluster                    namespace karmada-es-<cluster>
//	  ServiceAccount, Role namesake-agent          ServiceAccount, Role namesake-agent
//	  Secret namesake-agent: server, token …       ServiceAccount, Role, Secret namesake-register
//	  ConfigMap namesake (marker)                namespace karmada-cluster
//	  Deployment namesake-agent                    Role namesake-agent-<cluster>
//	ClusterRole namesake-agent                   ClusterRoles namesake-agent-, namesake-register-<cluster>
//	                                             Cluster <cluster>
package membership
