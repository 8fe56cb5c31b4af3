// Package token makes and checks the tokens that requests to the control plane carry, and says what each may do. It
// keeps none: package store holds their hashes, and the server asks here. Before it comes nothing of this module.
package token

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"fmt"
	"io"
	"slices"
	"strings"
)

// Prefix is what every token begins with, so that people and secret scanners know one.
const Prefix = "perseus_"

// size is the number of random bytes in a token.
const size = 32

// Scope is what a token may do.
type Scope string

// The scopes. Rank includes ReadOnly, and Operator all.
const (
	// Rank is for training jobs and node agents: register jobs and ranks, fetch schedules, report, look.
	Rank Scope = "rank"
	// ReadOnly is for dashboards and Prometheus: every GET, metrics included, and nothing that changes anything.
	ReadOnly Scope = "read-only"
	// Operator is for people: everything.
	Operator Scope = "operator"
)

// All lists the scopes, the least powerful first.
func All() []Scope { return []Scope{ReadOnly, Rank, Operator} }

// ParseScopes returns the scopes in a list such as "rank,read-only", sorted as All has them, without doubles. It fails
// where the list is empty or a scope is not known.
func ParseScopes(list string) ([]Scope, error) {
	var scopes []Scope
	for name := range strings.SplitSeq(list, ",") {
		s := Scope(strings.TrimSpace(name))
		if !slices.Contains(All(), s) {
			return nil, fmt.Errorf("scope %q is not known; there are %s", s, FormatScopes(All()))
		}
		scopes = append(scopes, s)
	}
	slices.SortFunc(scopes, func(a, b Scope) int { return slices.Index(All(), a) - slices.Index(All(), b) })
	return slices.Compact(scopes), nil
}

// FormatScopes returns the list that ParseScopes reads.
func FormatScopes(scopes []Scope) string {
	names := make([]string, len(scopes))
	for i, s := range scopes {
		names[i] = string(s)
	}
	return strings.Join(names, ",")
}

// Allows says whether a token with the scopes may do what any one of the wanted scopes may.
func Allows(scopes []Scope, wanted ...Scope) bool {
	for _, s := range scopes {
		if s == Operator && len(wanted) > 0 || s == Rank && slices.Contains(wanted, ReadOnly) || slices.Contains(wanted, s) {
			return true
		}
	}
	return false
}

// New returns a new token with 256 bits from random, which is crypto/rand's Reader but in tests. The token is shown
// once, to whoever asked for it; what is kept is Hash of it.
func New(random io.Reader) (string, error) {
	var bits [size]byte
	if _, err := io.ReadFull(random, bits[:]); err != nil {
		return "", fmt.Errorf("making a token: %w", err)
	}
	return Prefix + hex.EncodeToString(bits[:]), nil
}

// WellFormed says whether a text is what New could have returned: what is not needs no look-up.
func WellFormed(token string) bool {
	rest, ok := strings.CutPrefix(token, Prefix)
	if !ok || len(rest) != 2*size {
		return false
	}
	return strings.Trim(rest, "0123456789abcdef") == ""
}

// Hash returns what is kept of a token. A fast hash will do: tokens are random, not chosen by people, so that there is
// nothing to guess.
func Hash(token string) []byte {
	sum := sha256.Sum256([]byte(token))
	return sum[:]
}

// Matches says whether a token is the one of a hash, in a time that does not depend on where they differ.
func Matches(token string, hash []byte) bool {
	return subtle.ConstantTimeCompare(Hash(token), hash) == 1
}

// FromHeader returns the token in the value of an Authorization header, "Bearer TOKEN". The scheme's case does not
// matter.
func FromHeader(authorization string) (string, bool) {
	scheme, token, ok := strings.Cut(authorization, " ")
	token = strings.TrimSpace(token)
	return token, ok && token != "" && strings.EqualFold(scheme, "Bearer")
}
