package discovery

import (
	"crypto/sha256"
	"encoding/base32"
	"strconv"
	"strings"
)

// maxNameLength of an object, in characters (DNS-1123 subdomain).
const maxNameLength = 253

// hashLength is the number of base32 characters of a shortened name: 80 bits, so
// that nobody finds two slices with one name by trying.
const hashLength = 16

// hashMark stands before the hash. A plain name that ends in a mark and something
// like a hash is hashed too, so that no plain name is ever another's hashed one.
const hashMark = "--"

// hashAlphabet are the characters of a hash (base32).
const hashAlphabet = "abcdefghijklmnopqrstuvwxyz234567"

// ClusterName is the name of a member.
type ClusterName string

// SliceName is the name of a slice within its namespace.
type SliceName string

// DispatchedName returns the name under which a provider's slice stands in
// consumers: "<provider>-<slice>" as long as that fits and can only mean this
// pair, else a shortened form with a hash of the pair.
//
// A spelling is ambiguous when a longer cluster name fits its front as well:
//
//	cluster a,   slice b-c ──▶ "a-b-c" reads as a-b + c too ──▶ hashed
//	cluster a-b, slice c   ──▶ "a-b-c", the longest fit     ──▶ kept
//
// Of two pairs with one spelling the shorter provider is always hashed, so two
// pairs never meet, whatever else stands in the consumer. clusters are all
// clusters of the hub, in any order, the provider among them.
func DispatchedName(provider ClusterName, slice SliceName, clusters []ClusterName) SliceName {
	plain := string(provider) + "-" + string(slice)
	if len(plain) > maxNameLength || looksHashed(plain) {
		return hashedName(provider, slice, 0)
	}
	for _, other := range clusters {
		if len(other) > len(provider) && len(other) < len(plain) &&
			plain[len(other)] == '-' && plain[:len(other)] == string(other) {
			return hashedName(provider, slice, 0)
		}
	}
	return SliceName(plain)
}

// looksHashed says whether a name could be one that hashedName makes.
func looksHashed(name string) bool {
	front := len(name) - hashLength
	return front >= len(hashMark) && strings.HasSuffix(name[:front], hashMark) &&
		strings.Trim(name[front:], hashAlphabet) == ""
}

// hashedName is "<provider>-<front of slice>--<hash of the pair>". Another
// attempt gives another hash, for the case that a name is taken.
func hashedName(provider ClusterName, slice SliceName, attempt int) SliceName {
	// '/' is in neither name, so two pairs never give one input.
	input := string(provider) + "/" + string(slice)
	if attempt > 0 {
		input += "/" + strconv.Itoa(attempt)
	}
	sum := sha256.Sum256([]byte(input))
	hash := base32.NewEncoding(hashAlphabet).EncodeToString(sum[:])[:hashLength]

	front := string(provider) + "-" + string(slice)
	if limit := maxNameLength - hashLength - len(hashMark); len(front) > limit {
		front = front[:limit]
	}
	// A label of a name must not end with '-' or '.'.
	return SliceName(strings.TrimRight(front, "-.") + hashMark + hash)
}
